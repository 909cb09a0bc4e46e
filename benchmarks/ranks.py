"""Answers by rank: calibration, recall, precision and unknown genera; needs `KREIN_DATA`.

Swiss-Prot families are grouped by function, and the probability of a group is the sum over its
families. Of 16S genes, the model learns every rank from species; the same queries are answered by
naive Bayes as QIIME 2 does it (Bokulich et al. 2018: 7-mers hashed to 8,192 features, a smoothing
of 0.001, answers from a probability of 0.7) and by SINTAX (vsearch) at 0.8. A program that states
higher probabilities answers more at the same threshold, so recall is also compared at the precision
of the others. Eight folds of the reference show the calibration for sequences whose genus or
species is unknown. The folds run on all processors.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
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
            f"{figures['nodes']} nodes, {100 * figures['accuracy']:.1f} % correct; "
            f"{100 * figures['answered']:.1f} % answered at 0.9, "
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
    ranks, found = fitted(X, y, new)
    programs = {
        "learned": named(ranks, RankAnswers.of_fields(found)),
        "sums": named(ranks, RankAnswers.of_classes(ranks, found["probabilities"])),
        "naive Bayes": naive_bayes(X, y, new),
    }
    if shutil.which("vsearch"):
        programs["SINTAX"] = sintax(X, paths, new)
    rows = []
    for depth, rank in enumerate(RANKS, 2):
        truth = known_names(paths, wanted, depth)
        for program, answers in programs.items():
            names, p = answers[depth - 1]
            error = calibration_error(p, names == truth)
            target = "≤ 3" if program == "learned" else ""
            rows.append(row(f"16S, {program}: {rank} calibration", 100 * error, target, unit="%"))
            if rank in ("genus", "species"):
                least = LEAST.get(program, (0.7, 0.8))
                rows += [at(program, rank, names, p, truth, t) for t in least]
        if rank in ("genus", "species"):
            for program in (one for one in LEAST if one in programs):
                names, p = programs[program][depth - 1]
                precision = (names == truth)[p >= LEAST[program][0]].mean()
                names, p = programs["learned"][depth - 1]
                rows.append(at_precision(program, rank, names, p, truth, precision))
    return rows + folds(X, y, paths)


LEAST = {"naive Bayes": (0.7,), "SINTAX": (0.8,)}
"""The probability from which the others answer by default."""

N_FOLDS = 8


def folds(X: list[str], y: np.ndarray, paths: list[list[str]]) -> list[dict]:
    """Every rank of the reference, held out in eight folds."""
    place = np.random.default_rng(0).permutation(len(X)) % N_FOLDS
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        answers = list(pool.map(partial(fold, X, y, place), range(N_FOLDS)))
    rows = []
    for depth, rank in enumerate(RANKS, 2):
        p, right, known = [], [], []
        for k, each in enumerate(answers):
            rest = [paths[i] for i in np.flatnonzero(place != k)]
            truth = known_names(rest, [paths[i] for i in np.flatnonzero(place == k)], depth)
            p.append(each[depth - 1][1])
            right.append(each[depth - 1][0] == truth)
            known.append(truth != "")
        p, right, known = map(np.concatenate, (p, right, known))
        answered = p >= 0.7
        detail = (
            f"at 0.7: recall {100 * (answered & right)[known].mean():.1f} %, precision "
            f"{100 * right[answered].mean():.1f} %; {(~known).sum()} unknown"
        )
        error = 100 * calibration_error(p, right)
        rows.append(row(f"16S, eight folds: {rank} calibration", error, "≤ 3", detail, unit="%"))
    return rows


def fold(X: list[str], y: np.ndarray, place: np.ndarray, k: int) -> Answers:
    train, test = np.flatnonzero(place != k), np.flatnonzero(place == k)
    ranks, found = fitted([X[i] for i in train], y[train], [X[i] for i in test])
    return named(ranks, RankAnswers.of_fields(found))


def fitted(X: list[str], y: np.ndarray, new: list[str]) -> tuple[list[Rank], np.ndarray]:
    """The ranks of a model, and what it tells about new sequences."""
    model = KreinClassifier("smith-waterman", n_jobs=1).fit(X, y).model_
    return model.taxonomy, model.assess(new, ranks=True)


def known_names(paths: list[list[str]], wanted: list[list[str]], depth: int) -> np.ndarray:
    """The true names at a rank; empty for those that a reference with these paths lacks."""
    listed = {";".join(path[:depth]) for path in paths if len(path) >= depth}
    found = [";".join(path[:depth]) if len(path) >= depth else "" for path in wanted]
    return np.array([name if name in listed else "" for name in found])


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


def at_precision(
    program: str, rank: str, names: np.ndarray, p: np.ndarray, truth: np.ndarray, least: float
) -> dict:
    """The highest recall at a precision of at least that of another program."""
    order = np.argsort(-p, kind="stable")
    right = np.cumsum((names == truth)[order])
    last = np.append(np.diff(p[order]) < 0, True)  # equal probabilities are answered together
    best = np.flatnonzero(last & (right >= least * np.arange(1, len(p) + 1))).max(initial=0)
    detail = f"precision {100 * least:.1f} %, reached at a probability of {p[order][best]:.2f}"
    recall = 100 * right[best] / (truth != "").sum()
    return row(
        f"16S, learned: {rank} recall at the precision of {program}", recall, "", detail, "%"
    )


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
