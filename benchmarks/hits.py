"""Tables of hits: probabilities from the results of DIAMOND, BLAST and vsearch, and what they cost.

References are searched against themselves, and queries against the references. The same lists of
hits answer in three ways: krein; the best hit, with isotonic regression of its score on held-out
references; and a vote of the ten best hits. The programs are Debian packages (diamond-aligner,
ncbi-blast+, vsearch); rows of a program that is not installed say so.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import roc_auc_score

from krein import KreinClassifier, datasets
from krein.compare import open_pairs
from krein.evaluation.heldout import reliability
from krein.evaluation.hits import BestHit, HitVote
from krein.io.hits import HitTable, queries, references
from krein.neighbours import graph

from .accuracy import folder
from .classes import sequences, taxa
from .timing import alone, row

HITS = 50
"""Hits per query that the programs are asked for."""

SPLITS, FDR = 20, 0.05

Table = dict[str, str]  # names and labels


@dataclass(frozen=True)
class Searched:
    """Tables of a program, and the labels of references and queries."""

    name: str
    among: Path  # references against references
    new: Path  # queries against references
    known: Table
    true: Table


def run() -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        if folder() is None:
            rows.append(row("Swiss-Prot and 16S", float("nan"), "", "set KREIN_DATA"))
        else:
            rows += proteins(here) + genes(here)
        rows += simulated() + million(here)
    return rows


# -- searches --------------------------------------------------------------------------------------


def command(*words: Any) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def absent(program: str, what: str) -> dict | None:
    if shutil.which(program):
        return None
    return row(what, float("nan"), "", f"{program} is not installed")


def write_fasta(path: Path, found: dict[str, str]) -> Path:
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in found.items()))
    return path


def swissprot() -> tuple[dict[str, str], Table, dict[str, str], Table]:
    """Three quarters of the sequences of 24 classes, and one quarter of those of all 30."""
    X, y = datasets.load_swissprot()
    rng = np.random.default_rng(0)
    known = rng.choice(np.unique(y), 24, replace=False)
    order = rng.permutation(len(X))
    first, last = np.split(order, [3 * len(X) // 4])
    first = first[np.isin(np.asarray(y)[first], known)]
    return tuple(  # type: ignore[return-value]
        {f"s{i}": some[i] for i in rows} for rows in (first, last) for some in (X, y)
    )


def proteins(here: Path) -> list[dict]:
    reference, known, new, true = swissprot()
    fasta = write_fasta(here / "refs.fasta", reference), write_fasta(here / "new.fasta", new)
    found = []
    if (missing := absent("diamond", "Swiss-Prot, DIAMOND")) is not None:
        found.append(missing)
    else:
        command("diamond", "makedb", "--in", fasta[0], "-d", here / "refs")
        tables = []
        for path in fasta:
            tables.append(here / f"{path.stem}.tsv")
            how = ["-k", HITS, "--sensitive", "-p", 1, "-o", tables[-1]]
            command("diamond", "blastp", "-q", path, "-d", here / "refs", *how)
        searched = Searched("Swiss-Prot, DIAMOND --sensitive", *tables, known, true)
        for score in ("bits", "identity", "evalue"):
            found += compared(searched, score)
        found += lists(searched)
    if (missing := absent("blastp", "Swiss-Prot, BLAST")) is not None:
        return [*found, missing]
    some = dict(list(reference.items())[:1500]), dict(list(new.items())[:500])
    fasta = write_fasta(here / "some.fasta", some[0]), write_fasta(here / "few.fasta", some[1])
    command("makeblastdb", "-in", fasta[0], "-dbtype", "prot", "-out", here / "some")
    tables = []
    for path in fasta:
        tables.append(here / f"{path.stem}.tsv")
        how = ["-outfmt", 7, "-evalue", 1e-3, "-max_target_seqs", HITS, "-out", tables[-1]]
        command("blastp", "-query", path, "-db", here / "some", *how)
    part = Searched("Swiss-Prot, 1,500 references, BLAST", *tables, known, true)
    return found + compared(part, "bits", {name: true[name] for name in some[1]})


def genes(here: Path) -> list[dict]:
    data = folder()
    assert data is not None
    if (missing := absent("vsearch", "16S, vsearch")) is not None:
        return [missing]
    place = data / "taxonomy16s"
    fasta = [
        write_fasta(here / f"{name}.fasta", sequences(place / f"{name}.fasta.gz"))
        for name in ("ref_seqs", "query")
    ]
    tables = []
    for path in fasta:
        tables.append(here / f"{path.stem}.tsv")
        how = ["--id", 0.7, "--maxaccepts", HITS, "--maxrejects", 200, "--threads", 1]
        out = ["--blast6out", tables[-1], "--output_no_hits"]
        command("vsearch", "--usearch_global", path, "--db", fasta[0], *how, *out)
    found = []
    for rank, depth in (("genus", 6), ("family", 5)):
        known, true = (
            {name: ";".join(path[:depth]) for name, path in taxa(place / file).items()}
            for file in ("ref_taxa.tsv.gz", "query_taxa.tsv.gz")
        )
        searched = Searched(f"16S {rank}, vsearch --id 0.7", *tables, known, true)
        found += compared(searched, None)
    return found


def simulated() -> list[dict]:
    """Simulated families, of which remote members have hits by chance only."""
    found = []
    for divergence in (1.0, 1.3, 1.6):
        X, y = datasets.make_protein_families(2000, divergence=divergence, random_state=0)
        pairs = open_pairs("smith-waterman", X, measure_params={"normalize": False}, n_jobs=1)
        values = pairs.block(np.arange(2000), np.arange(800))
        np.fill_diagonal(values, -np.inf)
        order = np.argsort(-values, axis=1)[:, :25]
        whole = graph(np.take_along_axis(values, order, axis=1), order, 800)
        clf = KreinClassifier("precomputed").fit(whole[:800], y[:800])
        P = clf.predict_proba(whole[800:])
        best = BestHit().fit(whole[:800], y[:800]).predict_proba(whole[800:])
        with mock.patch("krein.core.hits.KNOTS", (0.0, 1.0)):
            one = KreinClassifier("precomputed").fit(whole[:800], y[:800])
            ramp = judged(one.predict_proba(whole[800:]), y[800:])
        (right, loss, error), (_, other, _) = judged(P, y[800:]), judged(best, y[800:])
        detail = f"800 references, 1,200 queries, accuracy {100 * right:.1f} %, log-loss {loss:.3f}"
        detail += f"; best hit: {other:.3f}; krein with one ramp of trust: {ramp[1]:.3f}"
        name = f"simulated families, divergence {divergence:g}"
        found += [
            row(f"{name}: log-loss ÷ best hit", loss / other, "below 1", detail, ""),
            row(f"{name}: calibration error", error, "", "", ""),
        ]
    return found


# -- answers ---------------------------------------------------------------------------------------


def compared(searched: Searched, score: str | None, true: Table | None = None) -> list[dict]:
    """Fit to references, and answer the queries with known labels in three ways."""
    true = searched.true if true is None else true
    start = time.process_time()
    own = references(
        HitTable(str(searched.among), score=score),
        lambda names: [name in searched.known for name in names],
    )
    y = np.array([searched.known[name] for name in own.queries])
    clf = KreinClassifier("precomputed").fit(own.graph, y)
    found = queries(HitTable(str(searched.new), score=score), own.queries)
    place = {name: i for i, name in enumerate(found.queries)}
    nothing = sparse.csr_matrix((1, len(y)))  # for queries without a hit
    hits = sparse.vstack([found.graph, nothing]).tocsr()[[place.get(name, -1) for name in true]]
    P = clf.predict_proba(hits)
    seconds = time.process_time() - start
    labels = np.array(list(true.values()))
    listed = np.isin(labels, clf.classes_)
    codes = np.searchsorted(clf.classes_, labels[listed])
    name = f"{searched.name}, {own.score}"
    answers = {
        "krein": P[listed],
        "best hit with isotonic regression": BestHit()
        .fit(own.graph, y)
        .predict_proba(hits)[listed],
        "vote of ten": HitVote().fit(own.graph, y).predict_proba(hits)[listed],
    }
    figures = {who: judged(Q, codes) for who, Q in answers.items()}
    others = "; ".join(
        f"{who}: {100 * right:.1f} %, {loss:.3f}, {error:.3f}"
        for who, (right, loss, error) in figures.items()
        if who != "krein"
    )
    right, loss, error = figures["krein"]
    least = min(loss for who, (_, loss, _) in figures.items() if who != "krein")
    detail = f"{len(clf.classes_)} classes, {listed.sum():,} queries, accuracy "
    detail += f"{100 * right:.1f} %, log-loss {loss:.3f}; {others} (accuracy, log-loss, "
    detail += f"calibration error); {seconds:.1f} s of processor time without the search"
    rows = [
        row(f"{name}: log-loss ÷ best of the others", loss / least, "below 1", detail, ""),
        row(f"{name}: calibration error", error, "at most 0.02", unit=""),
    ]
    if 0 < listed.sum() < len(labels):
        p = clf.novelty(hits)
        detail = f"{(~listed).sum():,} queries of classes that the references lack"
        rows.append(row(f"{name}: novelty, AUROC", roc_auc_score(~listed, -p), "", detail, ""))
    return rows


def judged(P: np.ndarray, codes: np.ndarray) -> tuple[float, float, float]:
    """Return accuracy, log-loss and calibration error."""
    right = float((P.argmax(axis=1) == codes).mean())
    loss = float(-np.log(P[np.arange(len(P)), codes]).mean())
    return right, loss, reliability(P, codes).error


def lists(searched: Searched) -> list[dict]:
    """The share of wrong labels on lists, over splits of the references into halves."""
    own = references(HitTable(str(searched.among)))
    y = np.array([searched.known[name] for name in own.queries])
    wrong, size = [], []
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, 2)
        clf = KreinClassifier("precomputed").fit(own.graph[train][:, train], y[train])
        hits = own.graph[test][:, train]
        chosen = clf.select(hits, FDR)
        size.append(chosen.mean())
        wrong.append((clf.predict(hits) != y[test])[chosen].mean())
    error = np.std(wrong) / np.sqrt(SPLITS)
    detail = f"± {error:.3f} over {SPLITS} halves of the references; lists contain "
    detail += f"{100 * np.mean(size):.0f} % of the objects"
    name = f"{searched.name}, lists at {FDR:g}: wrong labels"
    return [row(name, float(np.mean(wrong)), f"at most {FDR:g}", detail, "")]


# -- cost ------------------------------------------------------------------------------------------


def write_million(path: Path, prefix: str, queries: int = 40_000, k: int = 25) -> None:
    """Write hits of objects in 200 classes, most of them within the class, in BLAST's format."""
    rng = np.random.default_rng(len(prefix))
    n = 40_000
    own = np.arange(queries) % 200
    targets = (rng.integers(n // 200, size=(queries, k)) * 200 + own[:, None]) % n
    stray = rng.random((queries, k)) < 0.2
    targets[stray] = rng.integers(n, size=int(stray.sum()))
    bits = np.sort(rng.gamma(8, 30, size=(queries, k)), axis=1)[:, ::-1]
    with open(path, "w") as file:
        for i in range(queries):
            for t, b in zip(targets[i].tolist(), bits[i].tolist(), strict=True):
                file.write(
                    f"{prefix}{i}\tref{t}\t{b / 8:.1f}\t250\t9\t0\t1\t250\t1\t250\t1e-20\t{b:.1f}\n"
                )


def _fit_and_predict(among: str, new: str) -> float:
    start = time.process_time()
    own = references(HitTable(among))
    y = np.array([int(name[3:]) % 200 for name in own.queries])
    clf = KreinClassifier("precomputed").fit(own.graph, y)
    clf.predict_proba(queries(HitTable(new), own.queries).graph)
    return time.process_time() - start


def _read(path: str) -> float:
    start = time.process_time()
    references(HitTable(path))
    return time.process_time() - start


def _read_with_pandas(path: str) -> float:
    start = time.process_time()
    pd.read_csv(path, sep="\t", header=None)
    return time.process_time() - start


def million(here: Path) -> list[dict]:
    among, new = here / "million.tsv", here / "new-million.tsv"
    write_million(among, "ref")
    write_million(new, "query", queries=10_000)
    both = alone(_fit_and_predict, str(among), str(new))
    read, pandas = (alone(how, str(among)) for how in (_read, _read_with_pandas))
    size = among.stat().st_size / 2**20
    detail = f"{size:.0f} MB: {read.result:.2f} s to the graph of both directions, and "
    detail += f"{pandas.result:.2f} s; {read.resident / 2**20:.0f} and "
    detail += f"{pandas.resident / 2**20:.0f} MB of memory, with the interpreter and its libraries"
    return [
        row("1,000,000 hits: fit and 10,000 queries", both.result, "at most 20", unit="s"),
        row("the same: memory", both.resident / 2**30, "at most 1", unit="GB"),
        row("1,000,000 hits: reading ÷ pandas.read_csv", read.result / pandas.result, "", detail),
    ]
