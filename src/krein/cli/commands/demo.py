"""`krein demo`: a demonstration that needs no file."""

from __future__ import annotations

import sys
import time

import click

from ..group import krein_command
from ..options import as_json, seed
from ..output import check_report
from ..terminal import say
from .evaluate import show, split_models


@krein_command("demo")
@click.option(
    "--compare",
    default="krein,logistic,svm-clip,knn",
    callback=split_models,
    metavar="MODELS",
    help="Models to compare, separated by commas; see krein evaluate.",
)
@click.option("--folds", type=click.IntRange(2), default=3, help="As there.")
@click.option(
    "--report", type=click.Path(), default="krein-demo.html", help="File to write the report to."
)
@seed
@as_json
def command(compare: list[str], folds: int, report: str, random_state: int, as_json: bool) -> None:
    """Classify scikit-learn's 1,797 digits by tangent distance, and write a report.

    Tangent distance allows an image to shift, rotate and grow a little before it is compared. It is
    not a kernel, and krein does not need one. The model krein compares a new digit with a few
    landmarks and, if it is still uncertain, with its nearest candidates. logistic compares it with
    landmarks only; svm-clip and knn compare it with all training digits.

    \b
      krein demo
    """
    check_report(report)
    from sklearn.datasets import load_digits

    from ...evaluation import evaluate

    start = time.perf_counter()
    digits = load_digits()
    if not as_json:
        n, classes = len(digits.target), len(set(digits.target.tolist()))
        say("data", f"{n:,} digits, images of 8 × 8 pixels, in {classes} classes")
        say("measure", "tangent: Euclidean distance up to small deformations")
    found = evaluate(
        digits.images,
        digits.target.astype(str),
        compare,
        measure="tangent",
        folds=folds,
        names=[f"digit {i}" for i in range(len(digits.target))],
        random_state=random_state,
        verbose=int(sys.stderr.isatty()),
    )
    show(found, report, as_json, "Digits by tangent distance", time.perf_counter() - start)
