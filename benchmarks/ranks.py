"""Calibration by rank: Swiss-Prot families grouped by function; needs `KREIN_DATA`.

Labels are paths, e.g. "protease;Trypsin_His+Trypsin_Ser". The model is fitted to the families only,
and the probability of a group is the sum over its families. Each half of the data is labelled by a
model fitted to the other half.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedKFold

from krein import KreinClassifier
from krein.datasets import load_swissprot
from krein.evaluation.result import ModelResult

from .accuracy import folder, no_data
from .timing import row

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
    return rows
