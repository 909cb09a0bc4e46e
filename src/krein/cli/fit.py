"""`krein fit`: fit a model to labelled objects and write it to a file."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from inspect import signature
from typing import Any

import click

from ..estimators import MODELS
from ..io import NamedObjects, Source
from . import hits, options
from .group import krein_command
from .output import check_target, printable, say, say_worth, warnings_as_lines
from .predictor import too_few_for_novelty
from .reading import (
    Comparison,
    check_group_option,
    check_rule,
    choose_measure,
    column_names,
    describe_classes,
    hint_at_balance,
    leave_out_small_classes,
    leave_out_unreadable,
    locating,
    naming_skip_unreadable,
    open_input,
    read_groups,
    require_labels,
    say_ranks,
    unreadable,
    warn_of_matrix,
)


@krein_command("fit")
@options.labelled_data
@options.hit_table
@click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    default="krein",
    help="; ".join(f"{name}: {family.about}" for name, family in MODELS.items()) + ".",
)
@options.skip_unreadable
@options.min_class_size
@options.class_weight
@options.groups
@options.choosing
@options.calibrating
@options.running
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Compare objects on a Dask cluster: tcp://host:port of its scheduler, or local to start "
    "one on this machine.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=60.0,
    metavar="SECONDS",
    help="How long to wait for workers before giving up.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="Model file to write, such as model.krein.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing model file.")
@naming_skip_unreadable()
def command(
    data: options.DataOptions,
    model: str,
    skip_unreadable: bool,
    min_class_size: int | None,
    class_weight: str | None,
    groups: str | None,
    calibrate: bool | None,
    cluster: str | None,
    wait: float,
    output: str,
    force: bool,
    **settings: Any,
) -> None:
    """Fit a model to the labelled objects of DATA, and write it to a file.

    DATA is FASTA, FASTQ, CSV, TSV, JSON lines, Parquet, .ts, .npy, .npz, .mat or lines of text,
    optionally compressed with gzip, xz or bzip2; - is standard input. A large file is read in
    chunks, as often as needed, so it may be larger than memory.

    \b
      krein fit families.fasta --label-pattern 'family=(\\S+)' -o model.krein
      krein fit words.csv --objects word --labels language -o model.krein
      krein fit distances.csv --distance --labels labels.csv -o model.krein
      krein fit words.csv --objects word --labels language --cluster local -o model.krein
      krein fit people.csv --measure 'name=levenshtein,age=euclidean*0.1' -o model.krein
      krein fit refs-vs-refs.tsv --hits --labels taxonomy.tsv -o model.krein
    """
    import numpy as np

    check_target(output, force=force, reads=(data.data, data.labels))
    check_rule(settings["landmarks"], settings["n_landmarks"])
    if model == "krein" and settings["landmarks"] not in (None, "stratified"):
        raise click.UsageError(
            "--landmarks is for the other models: krein always draws landmarks from each class; "
            "--n-landmarks sets their number"
        )
    settings["calibrate"] = calibrates(model, calibrate)
    if data.hits:
        if model != "krein" or cluster is not None:
            raise click.UsageError("--hits is for --model krein, in memory")
        settings |= {"class_weight": class_weight, "cache": None}
        estimator = make_estimator(model, Comparison("precomputed", {}), **settings)
        with warnings_as_lines():
            hits.fit(data, estimator, output, groups, min_class_size, class_weight)
        return
    if groups is not None and model != "krein" and not settings["calibrate"]:
        raise click.UsageError("--groups are held out together for calibration: add --calibrate")
    check_group_option(groups, data.data)
    source = open_input(data, skip_unreadable)
    start = time.perf_counter()
    chunk, whole = first_objects(source)
    require_labels(chunk, source, whole=False)
    comparison = choose_measure(source.kind, chunk.objects, data)
    chunk, source = leave_out_unreadable(chunk, source, comparison, whole=whole)
    chunk, source = leave_out_small_classes(chunk, source, min_class_size, whole=whole)
    y = require_labels(chunk, source, whole=whole)
    warn_of_matrix(chunk, data.distance)
    number = f"{len(chunk):,}" if whole else f"more than {len(chunk) - 1:,}"
    say("data", f"{number} objects: {printable(source.understood, 200)}")
    if whole:
        say("classes", describe_classes(y))
        say_ranks(y)
        hint_at_balance(y, class_weight)
    say("measure", str(comparison))
    settings["class_weight"] = class_weight
    estimator = make_estimator(model, comparison, symmetrize=data.symmetrize, verbose=1, **settings)
    if groups is not None and (cluster is not None or not whole):
        raise click.UsageError("--groups needs all objects in memory, and at most 20,000 of them")
    if cluster is not None:
        fit_on_cluster(estimator, source, cluster, wait)
    elif whole:
        with locating(chunk):
            held = read_groups(groups, data, source, chunk)
            if held is not None:
                held = objects_groups(held, chunk, y, estimator)
            estimator.fit(chunk.objects, y, groups=held)
        estimator.name_objects(chunk.names)
    else:
        estimator.fit(source)
    columns = column_names(source)
    if columns is not None:  # as scikit-learn stores those of a data frame
        names = np.array(columns, dtype=np.str_)
        estimator.feature_names_in_ = names.astype(object)
        estimator.model_ = replace(estimator.model_, feature_names=names)
    estimator.save(output)
    if not whole:
        classes = f"{len(estimator.classes_)} classes"
        say("objects", f"{estimator.n_samples_seen_:,} in {classes}, read in chunks")
        if source.n_unreadable:
            say("left out", unreadable(source.n_unreadable), err=True)
    p, q, _ = estimator.signature_
    say(
        "model",
        f"{model}{', calibrated' if getattr(estimator, 'calibrate', True) else ''}, "
        f"{len(estimator.landmarks_):,} landmarks ({estimator.landmarks}), "
        f"{p} positive and {q} negative dimensions",
    )
    say("compared", describe_cost(estimator, estimator.n_samples_seen_))
    say_worth(getattr(estimator, "worth_", None))
    if settings["cache"] is not None and source.kind != "matrix":
        reused = estimator.comparisons_reused_
        total = reused + estimator.comparisons_to_fit_
        say("cache", f"reused {reused:,} of {total:,} comparisons, kept in {settings['cache']}")
    if (warning := too_few_for_novelty(estimator.model_)) is not None:
        say("novelty", warning)
    say("time", f"{time.perf_counter() - start:.1f} s")
    say("written", output)


def objects_groups(
    groups: str | list[str], chunk: NamedObjects, y: list[str], estimator: Any
) -> Any:
    """Return the group of each object, found by the measure if need be; say how many there are."""
    import numpy as np

    from ..compare import open_pairs
    from ..evaluation.groups import find_groups

    pairs = open_pairs(
        estimator.measure,
        chunk.objects,
        measure_params=estimator.measure_params,
        symmetrize=estimator.symmetrize,
        n_jobs=estimator.n_jobs,
        verbose=estimator.verbose,
    )
    codes = np.unique(y, return_inverse=True)[1]
    found = find_groups(groups, pairs, codes, estimator.random_state)
    assert found is not None
    sizes = np.bincount(found)
    spent = f"; {pairs.counter.compared:,} pairs compared" if pairs.counter.compared else ""
    largest = f"the largest of {sizes.max():,} objects"
    say("groups", f"{len(sizes):,} groups, {largest}, held out together{spent}")
    return found


def make_estimator(model: str, comparison: Comparison, **params: Any) -> Any:
    """Return the estimator that the options describe."""
    made = MODELS[model].estimator
    known = signature(made).parameters
    for name, value in params.items():
        if name not in known and value:
            raise click.UsageError(f"--{name} cannot be used with --model {model}")
    given = {name: value for name, value in params.items() if name in known}
    if given.get("landmarks", "") is None:
        del given["landmarks"]  # the model's own default
    return made(comparison.given, measure_params=comparison.params or None, **given)


def calibrates(model: str, wanted: bool | None) -> bool:
    """Whether to ask a model for calibration: as the user wants, or by default if None."""
    always = "calibrate" not in signature(MODELS[model].estimator).parameters
    if always and wanted is False:
        raise click.UsageError(
            f"--no-calibrate cannot be used with --model {model}, which is always calibrated"
        )
    return not always and (MODELS[model].calibrate if wanted is None else wanted)


def first_objects(source: Source) -> tuple[NamedObjects, bool]:
    """Return the objects and True, or the first ones and False if there are too many for memory."""
    from ..data.dataset import IN_MEMORY_OBJECTS

    if source.kind == "matrix" or not source.rereadable:
        return source.read(), True
    first = next(iter(source.chunks(IN_MEMORY_OBJECTS + 1)))
    return (first, False) if len(first) > IN_MEMORY_OBJECTS else (source.read(), True)


def fit_on_cluster(estimator: Any, source: Source, address: str, wait: float) -> None:
    """Distribute the objects to the workers of a cluster, and fit there."""
    import dask

    from ..data.dask import connect, lost, spread

    if source.kind == "matrix":
        raise click.UsageError(
            "--cluster compares objects, but a matrix already contains the comparisons"
        )
    try:
        client = connect(address)
    except (ConnectionError, ImportError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for name in ("distributed", "distributed.client", "asyncio"):  # which print tracebacks
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client, dask.config.set({"krein.wait": wait}):
        try:
            threads = sum(client.nthreads().values())
            say("cluster", f"{threads} threads; watch them at {client.dashboard_link}")
            estimator.fit(*spread(source, client))
        except OSError as error:
            if type(error) is ConnectionError:  # already a readable message
                raise click.ClickException(str(error)) from error
            if isinstance(error, ConnectionError) or client.status != "running":
                raise click.ClickException(str(lost(client))) from error
            raise


def describe_cost(estimator: Any, n: int) -> str:
    """Return the number of comparisons, relative to all pairs, and the number per prediction."""
    from ..measures import get_measure

    pairs, per_prediction = estimator.comparisons_to_fit_, estimator.model_.comparisons
    measure = get_measure(estimator.measure, estimator.measure_params)
    if measure.accepts == "values":  # some are read more than once, so a share would be meaningless
        return f"none, the matrix is given; {per_prediction:,.0f} values per prediction"
    return (
        f"{pairs:,} pairs, {100 * pairs / n**2:.1f} % of {n**2:,}; "
        f"{per_prediction:,.0f} per prediction"
    )
