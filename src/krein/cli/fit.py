"""`krein fit`: labelled objects to a model file."""

from __future__ import annotations

import time
from typing import Any

import click

from ..io import Chunk
from . import options
from .group import command as krein_command
from .output import check_target, printable, say
from .reading import (
    Comparison,
    check_rule,
    choose_measure,
    describe_classes,
    labelled,
    open_data,
)


@krein_command("fit")
@click.argument("data", type=click.Path(allow_dash=True))
@options.labelling
@options.measuring
@click.option(
    "--model",
    type=click.Choice(options.MODELS),
    default="ikfd",
    show_default=True,
    help="ikfd: one pass, linear boundaries; ikqd: curved ones; pcvm: often the most accurate, in "
    "some passes.",
)
@options.choosing
@options.calibrating
@options.reading
@options.running
@click.option(
    "-o", "--output", required=True, type=click.Path(), help="The model file, as model.krein."
)
@click.option("--force", is_flag=True, help="Replace the model file where there is one.")
def command(
    data: str,
    labels: str | None,
    label_pattern: str | None,
    measure: str | None,
    measure_params: tuple[str, ...],
    distance: bool,
    symmetrize: bool,
    model: str,
    landmarks: str,
    n_landmarks: int | None,
    calibrate: bool | None,
    seed: int,
    jobs: int | None,
    cache: str | None,
    output: str,
    force: bool,
    **reading: Any,
) -> None:
    """Fit a model to the labelled objects of DATA, and write it to a file.

    DATA is FASTA, FASTQ, CSV, TSV, Parquet, .ts, .npy, .npz, .mat or lines of text, packed by gzip
    or xz or not; - is standard input.

    \b
      krein fit families.fasta --label-pattern 'family=(\\w+)' -o model.krein
      krein fit words.csv --objects word --labels language -o model.krein
      krein fit distances.csv --distance --labels labels.csv -o model.krein
    """
    check_target(output, force=force)
    check_rule(landmarks, n_landmarks)
    source = open_data(
        data, labels=labels, label_pattern=label_pattern, measure=measure, distance=distance,
        **reading,
    )  # fmt: skip
    start = time.perf_counter()
    chunk = source.read()
    y = labelled(chunk, source)
    comparison = choose_measure(source.kind, chunk.objects, measure, measure_params, distance)
    say("data", f"{len(chunk):,} objects: {printable(source.understood, 200)}")
    say("classes", describe_classes(y))
    say("measure", str(comparison))
    estimator = make_estimator(
        model,
        comparison,
        landmarks=landmarks,
        n_landmarks=n_landmarks,
        calibrate=model != "pcvm" if calibrate is None else calibrate,
        symmetrize=symmetrize,
        n_jobs=jobs,
        cache=cache,
        verbose=1,
        random_state=seed,
    )
    fit_objects(estimator, chunk, y)
    estimator.save(output)
    say("model", describe(estimator, model, landmarks))
    say("compared", describe_cost(estimator, len(chunk)))
    if cache is not None and source.kind != "matrix":
        reused = estimator.kernel_reused_
        total = reused + estimator.kernel_evaluations_
        say("cache", f"reused {reused:,} of {total:,} comparisons, kept in {cache}")
    say("time", f"{time.perf_counter() - start:.1f} s")
    say("written", output)


def make_estimator(model: str, comparison: Comparison, **params: Any) -> Any:
    """Return the estimator that the options ask for."""
    from .. import estimators

    made = getattr(estimators, model.upper())
    return made(comparison.measure, measure_params=comparison.params or None, **params)


def fit_objects(estimator: Any, chunk: Chunk, labels: list[str]) -> None:
    """Fit; an error about the i-th object names its place in the file."""
    try:
        estimator.fit(chunk.objects, labels)
    except (ValueError, TypeError) as error:
        raise chunk.located(error) from error


def describe(estimator: Any, model: str, landmarks: str) -> str:
    """Return the model in words."""
    p, q, _ = estimator.signature_
    calibrated = ", calibrated" if estimator.calibrate else ""
    return (
        f"{model}{calibrated}, {len(estimator.landmarks_):,} landmarks ({landmarks}), "
        f"{p} positive and {q} negative dimensions"
    )


def describe_cost(estimator: Any, n: int) -> str:
    """Return what it cost, beside comparing everybody with everybody."""
    pairs = estimator.kernel_evaluations_
    return (
        f"{pairs:,} pairs, {100 * pairs / n**2:.1f} % of {n**2:,}; "
        f"a prediction compares {len(estimator.landmarks_):,}"
    )
