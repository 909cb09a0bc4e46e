"""Answers by rank: calibration, recall, precision and unknown genera; needs `KREIN_DATA`.

Swiss-Prot families are grouped by function, and the probability of a group is the sum over its
families. Of 16S genes, the model learns every rank from species; the same queries are answered by
naive Bayes as QIIME 2 does it (Bokulich et al. 2018: 7-mers hashed to 8,192 features, a smoothing
of 0.001, answers from a probability of 0.7) and by SINTAX (vsearch) at 0.8.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB

from krein import KreinClassifier
from krein.core.ranks import Rank, RankAnswers
from krein.datasets import load_swissprot
from krein.evaluation.result import ModelResult

from .accuracy import folder, no_data
from .classes import sequences, taxa
from .timing import row

RANKS = ("phylum", "class", "order", "family", "genus", "species")

GROUPS = {
    "actin-like": ("Actins", "Hsp70"),
    "DNA-binding": ("Helix_Loop", "Homeobox", "Hth_Lysr", "Steroid_Finger", "Zinc_Finger"),
    "electron transfer": ("4fe4s", "Cox2", "Cytochrome_B", "Cytochrome_P450"),
    "extracellular": ("Egf", "Ig_Mhc", "Snake_Toxin"),
    "membrane": ("G_Protein_Receptor", "Sugar_Transport"),
    "P-loop": ("Abc_Transporter", "Atpase_Alpha", "Efactor_Gtp"),
    "protease": ("Asp_Protease", "Thiol_Protease", "Trypsin"),
}
"""Groups by prefixes of the family names; a family in no group forms its own."""


def path_of(family: str) -> str:
    """Return the label as a path with two ranks."""
    for group, beginnings in GROUPS.items():
        if family.startswith(beginnings):
            return f"{group};{family}"
    return f"{family};{family}"


def run(most: int | None = None) -> list[dict]:
    if folder() is None:
        return no_data()
    X, families = load_swissprot()
    chosen = np.random.default_rng(0).permutation(len(X))[:most]
    X, labels = np.asarray(X)[chosen], np.array([path_of(str(families[i])) for i in chosen])
    classes = np.unique(labels)
    P, folds = np.empty((len(X), len(classes))), np.empty(len(X), dtype=np.intp)
    halves = StratifiedKFold(2, shuffle=True, random_state=0)
    comparisons = 0.0
    for k, (train, test) in enumerate(halves.split(labels, labels)):
        clf = KreinClassifier("smith-waterman").fit(X[train], labels[train])
        P[test], folds[test] = clf.predict_proba(X[test]), k
        comparisons += clf.comparisons_ / 2
    found = ModelResult(
        "krein", "KreinClassifier", classes, labels, folds, P, 0, comparisons, {}, [], None
    )
    rows = []
    for figures in found.by_rank(";", 0.9):
        detail = (
            f"{figures['nodes']} nodes, {100 * figures['accuracy']:.1f} % correct, log-loss "
            f"{figures['log_loss']:.3f}; {100 * figures['answered']:.1f} % answered at 0.9, "
            f"{100 * figures['answered_right']:.1f} % of these correct"
        )
        name = f"calibration error at rank {figures['rank']}"
        rows.append(row(name, 100 * figures["calibration_error"], "≤ 2", detail, "%"))
    return rows + taxonomy()


# -- 16S genes, with naive Bayes and SINTAX --------------------------------------------------------


def taxonomy() -> list[dict]:
    """Every rank of 16S genes, by three programs: stated probability and whether it is right."""
    data = folder()
    assert data is not None
    place = data / "taxonomy16s"
    reference, queries = (
        sequences(place / name) for name in ("ref_seqs.fasta.gz", "query.fasta.gz")
    )
    known, true = taxa(place / "ref_taxa.tsv.gz"), taxa(place / "query_taxa.tsv.gz")
    paths, wanted = [known[name] for name in reference], [true[name] for name in queries]
    X, new = list(reference.values()), list(queries.values())
    y = np.array([";".join(path) for path in paths])
    clf = KreinClassifier("smith-waterman").fit(X, y)
    model, found = clf.model_, clf.assess(new, ranks=True)
    ranks = model.taxonomy
    fields = ("rank_nodes", "rank_probabilities", "rank_unknown", "rank_novelty")
    programs = {
        "learned": named(ranks, RankAnswers(*(found[field] for field in fields))),
        "sums": named(ranks, RankAnswers.of_classes(ranks, found["probabilities"])),
        "naive Bayes": naive_bayes(X, y, new),
    }
    if shutil.which("vsearch"):
        programs["SINTAX"] = sintax(X, paths, new)
    listed = {";".join(path[:depth]) for path in paths for depth in range(1, 8)}
    rows = []
    for depth, rank in enumerate(RANKS, 2):
        truth = np.array([";".join(path[:depth]) if len(path) >= depth else "" for path in wanted])
        truth[~np.isin(truth, list(listed))] = ""
        for program, answers in programs.items():
            names, p = answers[depth - 1]
            error = calibration_error(p, names == truth)
            target = "≤ 3" if program == "learned" else ""
            rows.append(row(f"16S, {program}: {rank} calibration", 100 * error, target, unit="%"))
            if rank in ("genus", "species"):
                least = {"naive Bayes": (0.7,), "SINTAX": (0.8,)}.get(program, (0.7, 0.8))
                rows += [at(program, rank, names, p, truth, t) for t in least]
    return rows


Answers = list[tuple[np.ndarray, np.ndarray]]
"""For each rank, the name of each query and its probability."""


def at(
    program: str, rank: str, names: np.ndarray, p: np.ndarray, truth: np.ndarray, least: float
) -> dict:
    answered, right, known = p >= least, names == truth, truth != ""
    recall = 100 * (answered & right)[known].mean()
    precision = 100 * right[answered].mean()
    wrong = 100 * answered[~known].mean()
    detail = f"precision {precision:.1f} %; {wrong:.1f} % of {(~known).sum()} unknown given one"
    return row(f"16S, {program}: {rank} recall at {least}", recall, "", detail, unit="%")


def calibration_error(p: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    place = np.minimum((bins * p).astype(int), bins - 1)
    return sum(abs((p - right)[place == k].sum()) for k in range(bins)) / len(p)


def named(ranks: list[Rank], answers: RankAnswers) -> Answers:
    return [
        (np.array(rank.nodes)[answers.nodes[:, r, 0]], answers.probabilities[:, r, 0])
        for r, rank in enumerate(ranks)
    ]


def naive_bayes(X: list[str], y: np.ndarray, new: list[str]) -> Answers:
    grams = HashingVectorizer(
        analyzer="char_wb", ngram_range=(7, 7), n_features=8192, alternate_sign=False, norm="l2"
    )
    model = MultinomialNB(alpha=0.001, fit_prior=False).fit(grams.transform(X), y)
    ranks = Rank.each(model.classes_.tolist(), ";")
    return named(ranks, RankAnswers.of_classes(ranks, model.predict_proba(grams.transform(new))))


def sintax(X: list[str], paths: list[list[str]], new: list[str]) -> Answers:
    with tempfile.TemporaryDirectory() as name:
        db, query, out = (Path(name, each) for each in ("db.fasta", "query.fasta", "out"))
        lines = []
        for i, (one, path) in enumerate(zip(X, paths, strict=True)):
            lineage = ",".join(f"{r}:{t}" for r, t in zip("dpcofgs", path, strict=False))
            lines.append(f">{i};tax={lineage};\n{one}\n")
        db.write_text("".join(lines))
        query.write_text("".join(f">{i}\n{s}\n" for i, s in enumerate(new)))
        command = ["vsearch", "--sintax", query, "--db", db, "--tabbedout", out]
        command += ["--threads", "1", "--randseed", "1"]
        subprocess.run(command, check=True, capture_output=True)
        found: dict[int, list[tuple[str, float]]] = {}
        for line in out.read_text().splitlines():
            cells = line.split("\t")
            parts = re.findall(r"[dpcofgs]:(.*?)\(([\d.]+)\)(?:,|$)", cells[1])
            found[int(cells[0])] = [(part, float(p)) for part, p in parts]
    answers = []
    for depth in range(1, 8):
        each = [found.get(i, [])[:depth] for i in range(len(new))]
        full = [parts if len(parts) == depth else [] for parts in each]
        names = np.array([";".join(part for part, _ in parts) for parts in full])
        p = np.array([parts[-1][1] if parts else 0.0 for parts in full])
        answers.append((names, p))
    return answers
