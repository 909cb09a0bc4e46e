"""`krein fit`: fit a model to labelled objects and write it to a file."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from inspect import signature
from typing import Any

import click

from ...estimators import MODELS
from ...io import Source
from .. import hittables, options
from ..classes import describe_classes, hint_at_balance, say_ranks
from ..group import krein_command
from ..measure import ChosenMeasure, check_rule
from ..messages import printable
from ..output import check_target
from ..reading import (
    LabelledObjects,
    check_group_option,
    column_names,
    locating,
    naming_skip_unreadable,
    read_groups,
    read_labelled,
    say_groups,
    unreadable,
)
from ..status import too_few_for_novelty
from ..terminal import say, say_worth, warnings_as_lines


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
    class_weight: str | None,
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
    check_target(output, force=force, reads=(data.data, data.labels))
    check_rule(settings["landmarks"], settings["n_landmarks"])
    check_landmark_rule(model, settings["landmarks"])
    settings["calibrate"] = calibration_of(model, calibrate)
    settings["class_weight"] = class_weight
    if data.hits:
        if model != "krein" or cluster is not None:
            raise click.UsageError("--hits is for --model krein, in memory")
        hittables.refuse_others("model", "calibrate", "random_state", "n_jobs", "output", "force")
        estimator = make_estimator(
            model, ChosenMeasure("precomputed", {}), **settings | {"cache": None}
        )
        with warnings_as_lines():
            hittables.fit_table(data, estimator, output)
        return
    if data.groups is not None and model != "krein" and not settings["calibrate"]:
        raise click.UsageError("--groups are held out together for calibration: add --calibrate")
    check_group_option(data)
    start = time.perf_counter()
    read = read_labelled(data, in_chunks=True)
    say_data(read, class_weight)
    estimator = make_estimator(
        model, read.measure, symmetrize=data.symmetrize, verbose=1, **settings
    )
    if data.groups is not None and (cluster is not None or not read.whole):
        raise click.UsageError("--groups needs all objects in memory, and at most 20,000 of them")
    if cluster is not None:
        fit_on_cluster(estimator, read.source, cluster, wait)
    elif read.whole:
        fit_in_memory(estimator, read, data)
    else:
        estimator.fit(read.source)
    keep_column_names(estimator, read.source)
    estimator.save(output)
    say_model(model, estimator, read)
    say("time", f"{time.perf_counter() - start:.1f} s")
    say("written", output)


def check_landmark_rule(model: str, landmarks: str | None) -> None:
    """Refuse a rule for landmarks that the model does not take."""
    if model == "krein" and landmarks not in (None, "stratified"):
        raise click.UsageError(
            "--landmarks is for the other models: krein always draws landmarks from each class; "
            "--n-landmarks sets their number"
        )


def calibration_of(model: str, calibrate: bool | None) -> bool:
    """Return whether to calibrate a model afterwards: as the user wants, or by default if None.

    A model that is always calibrated needs nothing more; not to calibrate it is refused.
    """
    always = "calibrate" not in signature(MODELS[model].estimator).parameters
    if always and calibrate is False:
        raise click.UsageError(
            f"--no-calibrate cannot be used with --model {model}, which is always calibrated"
        )
    return not always and (MODELS[model].calibrate if calibrate is None else calibrate)


def say_data(read: LabelledObjects, class_weight: str | None) -> None:
    """Print what has been read, and how it is compared."""
    n = len(read.chunk)
    number = f"{n:,}" if read.whole else f"more than {n - 1:,}"
    say("data", f"{number} objects: {printable(read.source.understood, 200)}")
    if read.whole:
        say("classes", describe_classes(read.labels))
        say_ranks(read.labels)
        hint_at_balance(read.labels, class_weight)
    say("measure", str(read.measure))


def fit_in_memory(estimator: Any, read: LabelledObjects, data: options.DataOptions) -> None:
    """Fit to all objects, with their groups and names."""
    with locating(read.chunk):
        held = read_groups(data, read)
        if held is not None:
            held = objects_groups(held, read, estimator)
        estimator.fit(read.chunk.objects, read.labels, groups=held)
    estimator.name_objects(read.chunk.names)


def keep_column_names(estimator: Any, source: Source) -> None:
    """Keep the names of columns of vectors, as scikit-learn stores those of a data frame."""
    import numpy as np

    columns = column_names(source)
    if columns is not None:
        names = np.array(columns, dtype=np.str_)
        estimator.feature_names_in_ = names.astype(object)
        estimator.model_ = replace(estimator.model_, feature_names=names)


def say_model(model: str, estimator: Any, read: LabelledObjects) -> None:
    """Print what the model consists of, what it cost, and what its parts are worth."""
    if not read.whole:
        classes = f"{len(estimator.classes_)} classes"
        say("objects", f"{estimator.n_samples_seen_:,} in {classes}, read in chunks")
        if read.source.n_dropped:
            say("left out", unreadable(read.source.n_dropped), err=True)
    p, q, _ = estimator.signature_
    say(
        "model",
        f"{model}{', calibrated' if getattr(estimator, 'calibrate', True) else ''}, "
        f"{len(estimator.landmarks_):,} landmarks ({estimator.landmarks}), "
        f"{p} positive and {q} negative dimensions",
    )
    say("compared", describe_cost(estimator, estimator.n_samples_seen_))
    say_worth(getattr(estimator, "worth_", None))
    if estimator.cache is not None and read.source.kind != "matrix":
        reused = estimator.comparisons_reused_
        total = reused + estimator.comparisons_to_fit_
        say("cache", f"reused {reused:,} of {total:,} comparisons, kept in {estimator.cache}")
    if (warning := too_few_for_novelty(estimator.model_)) is not None:
        say("novelty", warning)


def objects_groups(groups: str | list[str], read: LabelledObjects, estimator: Any) -> Any:
    """Return the group of each object, found by the measure if need be; say how many there are."""
    import numpy as np

    from ...compare import open_pairs
    from ...evaluation.groups import find_groups

    pairs = open_pairs(
        estimator.measure,
        read.chunk.objects,
        measure_params=estimator.measure_params,
        symmetrize=estimator.symmetrize,
        n_jobs=estimator.n_jobs,
        verbose=estimator.verbose,
    )
    codes = np.unique(read.labels, return_inverse=True)[1]
    found = find_groups(groups, pairs, codes, estimator.random_state)
    assert found is not None
    compared = pairs.counter.compared
    say_groups(found, f"; {compared:,} pairs compared" if compared else "")
    return found


def make_estimator(model: str, chosen: ChosenMeasure, **params: Any) -> Any:
    """Return the estimator that the options describe."""
    made = MODELS[model].estimator
    known = signature(made).parameters
    for name, value in params.items():
        if name not in known and value:
            raise click.UsageError(f"--{name} cannot be used with --model {model}")
    given = {name: value for name, value in params.items() if name in known}
    if given.get("landmarks", "") is None:
        del given["landmarks"]  # the model's own default
    return made(chosen.given, measure_params=chosen.params or None, **given)


def fit_on_cluster(estimator: Any, source: Source, address: str, wait: float) -> None:
    """Distribute the objects to the workers of a cluster, and fit there."""
    import dask

    from ...data.collection import spread
    from ...data.dask import connect, lost

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
    from ...measures import get_measure

    pairs, per_prediction = estimator.comparisons_to_fit_, estimator.model_.comparisons
    measure = get_measure(estimator.measure, estimator.measure_params)
    if measure.accepts == "values":  # some are read more than once, so a share would be meaningless
        return f"none, the matrix is given; {per_prediction:,.0f} values per prediction"
    return (
        f"{pairs:,} pairs, {100 * pairs / n**2:.1f} % of {n**2:,}; "
        f"{per_prediction:,.0f} per prediction"
    )
