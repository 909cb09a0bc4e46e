"""Many classes, and what a fit costs beyond its comparisons, in processor time of one thread.

References run in the same process: scikit-learn's `LogisticRegressionCV` on the same columns, and
SINTAX (vsearch, a Debian package) on the same queries, if it is installed.
"""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from krein import KreinClassifier, datasets
from krein.compare import open_pairs
from krein.core.ranks import Ranks
from krein.evaluation.heldout import reliability

from .accuracy import folder
from .timing import alone, exponent, row

RANKS = {"genus": 6, "family": 5, "order": 4}


def run() -> list[dict]:
    rows = [digits(), demo(), *swissprot(), few_each()]
    sizes = (50, 200, 1000, 2000)
    found = [alone(many, C) for C in sizes]
    times, memory = [one.result for one in found], [one.resident for one in found]
    detail = ", ".join(f"{C} classes: {t:.0f} s" for C, t in zip(sizes, times, strict=True))
    rows += [
        row("20,000 objects: time ∝ C^", exponent(list(sizes), times), "at most 1.1", detail, ""),
        row("20,000 objects: memory ∝ C^", exponent(list(sizes), memory), "at most 1.1", unit=""),
        row("20,000 objects, 2,000 classes: fit", times[-1], "at most 180", unit="s"),
        row("the same: memory", memory[-1] / 2**30, "at most 2", unit="GB"),
    ]
    return rows + taxonomy()


def cpu(function: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def digits() -> dict:
    """The fit's own time on digits, relative to logistic regression on the same columns."""
    X, y = datasets.load_digits_images()
    pairs = open_pairs("tangent", X[:1198])
    all_rows = np.arange(1198)
    D, y = pairs.block(all_rows, all_rows), y[:1198]
    own, clf = cpu(lambda: KreinClassifier("precomputed-distance", n_jobs=1).fit(D, y))
    F = StandardScaler().fit_transform(D[:, clf.landmarks_])
    bare, _ = cpu(lambda: LogisticRegressionCV(Cs=3, cv=3, max_iter=1000).fit(F, y))
    detail = f"{own:.2f} s and {bare:.2f} s"
    return row("digits: fit ÷ logistic regression", own / bare, "at most 15", detail)


def demo() -> dict:
    """Processor time of `krein demo`: four models, three folds."""
    command = [sys.executable, "-m", "krein", "demo", "--report"]
    with tempfile.TemporaryDirectory() as name:
        seconds, _ = used([*command, str(Path(name, "r.html"))])
    return row("demo, all models", seconds, "at most 20", unit="s")


def swissprot() -> list[dict]:
    """What a fit costs beyond its comparisons: the second fit finds them all in the cache."""
    if folder() is None:
        return []
    X, y = datasets.load_swissprot()
    with tempfile.TemporaryDirectory() as name:
        first, second = (
            cpu(lambda: KreinClassifier("smith-waterman", n_jobs=1, cache=name).fit(X, y))
            for _ in range(2)
        )
    detail = f"{first[0]:.0f} s with {first[1].comparisons_to_fit_:,} comparisons"
    return [row("Swiss-Prot: fit beyond comparisons", second[0], "at most 8", detail, unit="s")]


def classes(C: int, n: int, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(C), n)
    return 2 * rng.normal(size=(C, d))[y] + rng.normal(size=(C * n, d)), y


def many(C: int) -> float:
    X, y = classes(C, 20_000 // C)
    return cpu(lambda: KreinClassifier("manhattan", n_jobs=1).fit(X, y))[0]


def _few_each() -> float:
    return cpu(lambda: KreinClassifier("manhattan", n_jobs=1).fit(*classes(400, 5)))[0]


def few_each() -> dict:
    found = alone(_few_each)
    memory = f"{found.resident / 2**30:.1f} GB of memory"
    return row("400 classes of 5 objects: fit", found.result, "at most 60, 2 GB", memory, unit="s")


def sequences(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if line.startswith(">"):
                name = line[1:].split()[0]
                found[name] = ""
            else:
                found[name] += line.strip().upper()
    return found


def taxa(path: Path) -> dict[str, list[str]]:
    with gzip.open(path, "rt") as lines:
        pairs = (line.rstrip("\n").split("\t")[:2] for line in lines)
        return {name: [part.strip() for part in lineage.split(";")] for name, lineage in pairs}


def taxonomy() -> list[dict]:
    """Genera of 16S genes, and the same queries answered by SINTAX."""
    data = folder()
    if data is None:
        return [row("16S", float("nan"), "", "set KREIN_DATA")]
    place = data / "taxonomy16s"
    reference, queries = (
        sequences(place / name) for name in ("ref_seqs.fasta.gz", "query.fasta.gz")
    )
    known, true = taxa(place / "ref_taxa.tsv.gz"), taxa(place / "query_taxa.tsv.gz")
    y = np.array([";".join(known[name][:6]) for name in reference])
    seconds, clf = cpu(
        lambda: KreinClassifier("smith-waterman", n_jobs=1).fit(list(reference.values()), y)
    )
    predict, P = cpu(lambda: clf.predict_proba(list(queries.values())))
    cost = clf.last_comparisons_ / len(queries)
    rows = [
        row("16S: fit", seconds, "at most 120", f"{len(clf.classes_)} genera", unit="s"),
        row("16S: 935 queries", predict, "", f"{cost:.0f} comparisons per query", unit="s"),
    ]
    ranks = Ranks.of(clf.classes_.tolist(), ";")
    for name, depth in RANKS.items():
        Q = ranks.probabilities(P, depth - 1)
        nodes = np.array(ranks.nodes[depth - 1])
        wanted = np.array([";".join(true[query][:depth]) for query in queries])
        listed = np.isin(wanted, nodes)
        right = nodes[Q.argmax(axis=1)] == wanted
        codes = np.where(listed, np.searchsorted(nodes, wanted).clip(max=len(nodes) - 1), -1)
        error = 100 * reliability(Q, codes).error
        known_error = 100 * reliability(Q[listed], codes[listed]).error
        target = {"genus": "95.5", "family": "98.5"}.get(name, "")
        detail = f"of {listed.sum()} queries whose {name} the reference contains; "
        detail += f"{100 * right.mean():.1f} % of all"
        rows.append(
            row(f"16S: {name} recall", 100 * right[listed].mean(), target, detail, unit="%")
        )
        detail = f"{known_error:.1f} % without queries whose {name} the reference does not contain"
        rows.append(row(f"16S: {name} calibration error", error, "at most 2", detail, unit="%"))
    return rows + commands(clf, reference, known, queries)


COPIES = 10


def commands(clf: KreinClassifier, reference: dict, known: dict, queries: dict) -> list[dict]:
    """Processor time of `krein predict` and of SINTAX for the same reads, one thread each.

    Both start anew. SINTAX reads its reference, and `krein predict` its model.
    """
    if not shutil.which("vsearch"):
        return []
    rows = []
    with tempfile.TemporaryDirectory() as name:
        db, query, model = (Path(name, each) for each in ("db.fasta", "q.fasta", "m.krein"))
        clf.save(model)
        lines = []
        for key, seq in reference.items():
            lineage = ",".join(f"{r}:{t}" for r, t in zip("dpcofg", known[key], strict=False))
            lines.append(f">{key};tax={lineage};\n{seq}\n")
        db.write_text("".join(lines))
        reads = [(f"{key}_{k}", seq) for k in range(COPIES) for key, seq in queries.items()]
        order = np.random.default_rng(0).permutation(len(reads))
        copied = [reads[i] for i in order]
        vsearch = ["vsearch", "--sintax", query, "--db", db, "--threads", "1"]
        vsearch += ["--tabbedout", Path(name, "out")]
        krein = [sys.executable, "-m", "krein", "predict", model, query, "--jobs", "1"]
        krein += ["-o", Path(name, "out.csv")]
        sets = {"935 distinct reads": (list(queries.items()), 3), "10 copies of each": (copied, 1)}
        for text, (some, target) in sets.items():
            query.write_text("".join(f">{key}\n{seq}\n" for key, seq in some))
            times = [(used(krein), used(vsearch)) for _ in range(REPEATS)]
            own, its = (min(pair[side] for pair in times) for side in (0, 1))
            detail = f"{own[0]:.1f} s and {its[0]:.1f} s; elapsed {own[1]:.1f} s and {its[1]:.1f} s"
            wanted = f"at most {target}"
            rows.append(row(f"16S: predict ÷ SINTAX, {text}", own[0] / its[0], wanted, detail))
    return rows


REPEATS = 2


def used(command: list) -> tuple[float, float]:
    """The processor time (user and system) and the elapsed time of a command, in seconds."""
    # modules are compiled, as in an installed package
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=own)
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed
