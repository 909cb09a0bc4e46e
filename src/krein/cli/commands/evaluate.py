"""`krein evaluate`: compare models on the same folds, and write a report."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from ...estimators import MODELS
from ...io import DataError, NamedObjects
from ...io.streams import shown
from .. import hittables, options
from ..classes import describe_classes, hint_at_balance
from ..group import command_line, krein_command
from ..measure import check_rule
from ..messages import printable, shortened
from ..output import check_report
from ..reading import (
    LabelledObjects,
    check_group_option,
    leave_out_unreadable,
    locating,
    naming_skip_unreadable,
    open_input,
    read_groups,
    read_labelled,
    require_labels,
)
from ..terminal import say, say_worth, warnings_as_lines

EVALUATION = ("folds", "label_ranks", "rank_above", "random_state")
"""Options that also apply to a table of hits."""

EVALUATED = (*MODELS, "svm-clip", "knn", "logistic", "features")


def split_models(
    context: click.Context, option: click.Parameter, value: str | None
) -> list[str] | None:
    """Return the names in a list separated by commas."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in EVALUATED:
            raise click.BadParameter(f"unknown model {name!r}; choose from {', '.join(EVALUATED)}")
    if not names or len(set(names)) < len(names):
        raise click.BadParameter("list each model once, separated by commas")
    return names


@krein_command("evaluate")
@options.labelled_data
@options.hit_table
@click.option(
    "--compare",
    callback=split_models,
    metavar="MODELS",
    help=f"Models to compare, separated by commas: {', '.join(MODELS)}; and as baselines "
    f"svm-clip (an SVM on the clipped matrix), knn, logistic (on the same landmarks), and "
    f"features (n-grams, gradient boosting or convolutions, without comparisons). svm-clip and "
    f"knn compare all pairs. Default: krein, knn and, if the objects have features, features.",
)
@click.option(
    "--folds", type=click.IntRange(2), default=10, help="Number of cross-validation folds."
)
@options.groups
@click.option(
    "--test",
    type=click.Path(),
    metavar="FILE",
    help="Fit to DATA and report the results on the objects of this file, instead of folds; it is "
    "read and labelled in the same way.",
)
@options.skip_unreadable
@options.min_class_size
@options.class_weight
@options.label_ranks
@options.choosing
@options.calibrating
@options.running
@click.option(
    "--report",
    type=click.Path(),
    help="Write an HTML report with figures, a map and uncertain cases.",
)
@options.as_json
@naming_skip_unreadable()
def command(
    data: options.DataOptions,
    compare: list[str] | None,
    test: str | None,
    class_weight: str | None,
    calibrate: bool | None,
    report: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Cross-validate models on DATA, all on the same folds.

    Prints accuracy, log-loss, calibration error, comparisons and time. With --report, also
    writes a report that opens offline. Each pair is compared once and shared by all models and
    folds.

    \b
      krein evaluate families.fasta --label-pattern 'family=(\\S+)' --report report.html
      krein evaluate words.csv --labels language --compare ikfd,pcvm,knn --folds 5
      krein evaluate families.fasta --test new.fasta --label-pattern 'family=(\\S+)'
      krein evaluate refs-vs-refs.tsv --hits --labels taxonomy.tsv --report report.html
    """
    check_report(report, reads=(data.data, data.labels, data.groups, test))
    if test is not None and data.groups is not None:
        raise click.UsageError("--groups is for folds, which --test replaces")
    check_rule(settings["landmarks"], settings["n_landmarks"])
    if data.hits:
        if test is not None or compare is not None:
            raise click.UsageError(
                "--test and --compare cannot be used with --hits: krein, the best hit and a vote "
                "are compared on folds of the references"
            )
        hittables.refuse_others(*EVALUATION, "report", "as_json")
        known = {name: settings[name] for name in EVALUATION}
        found, seconds = hittables.evaluate_table(data, as_json, class_weight=class_weight, **known)
        show(found, report, as_json, os.path.basename(shown(data.data)), seconds)
        return
    check_group_option(data)
    start = time.perf_counter()
    read = read_labelled(data)
    chunk, chosen = read.chunk, read.measure
    groups = read_groups(data, read)
    if not as_json:
        say("data", f"{len(chunk):,} objects: {printable(read.source.understood, 200)}")
        say("classes", describe_classes(read.labels))
        hint_at_balance(read.labels, class_weight)
        say("measure", str(chosen))
    names, tested = chunk.names, None
    if test is not None:
        ranked = settings["label_ranks"] is not None
        new = test_objects(test, data, read, ranked)
        assert new.labels is not None
        names, tested = new.names, (new.objects, new.labels)
        if not as_json:
            say("test", f"{len(new):,} objects in {len(set(new.labels)):,} classes")
    from ...evaluation import evaluate

    with warnings_as_lines(), locating(chunk):
        found = evaluate(
            chunk.objects,
            read.labels,
            compare,
            measure=chosen.given,
            measure_params=chosen.params or None,
            calibrate=calibrate is not False,
            groups=groups,
            test=tested,
            class_weight=class_weight,
            names=names,
            symmetrize=data.symmetrize,
            verbose=1,
            **settings,
        )
    show(found, report, as_json, os.path.basename(read.source.shown), time.perf_counter() - start)


def test_objects(
    path: str, data: options.DataOptions, fitted: LabelledObjects, ranked: bool
) -> NamedObjects:
    """Return the objects of a test file with labels that are fitted; say how many are left out.

    Others are kept if labels are paths (`ranked`): they are scored at the ranks that are known.
    """
    known = set(fitted.labels)
    source = open_input(replace(data, data=path))
    if source.kind == "matrix":
        raise click.UsageError("--test is for objects; a matrix of values is divided into folds")
    chunk, source = leave_out_unreadable(source.read(), source, fitted.measure, like=fitted.chunk)
    labels = require_labels(chunk, source, whole=False)
    keep = [i for i, label in enumerate(labels) if label in known]
    if not keep:
        raise DataError(f"{source.shown}: none of its labels occurs in {data.data}")
    if ranked and len(keep) < len(chunk):
        n = len(chunk) - len(keep)
        say("by rank", f"{n:,} test objects of unknown classes are scored by rank only", err=True)
        return chunk
    if len(keep) < len(chunk):
        others = sorted(set(labels) - known)
        shown = ", ".join(shortened(label) for label in others[:3])
        more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        n = len(chunk) - len(keep)
        say("left out", f"{n:,} test objects of unknown classes: {shown}{more}", err=True)
    return chunk.keeping(keep)


def show(found: Any, report: str | None, as_json: bool, title: str | None, seconds: float) -> None:
    """Print the results of an evaluation, and write its report."""
    if report is not None:
        from ...report import write_report

        write_report(found, report, title=title, command=command_line())
    if as_json:
        click.echo(json.dumps(found.summary(), ensure_ascii=False))
        return
    _print_table(found)
    if found.by_rank is not None:
        for row in found.by_rank[found.best.name]:
            say(row["name"].replace("_", " "), f"{found.best.name}: {describe_rank(row)}")
    for name, model in found.models.items():
        say_worth(model.worth, name)
    pairs = found.pairs
    if not pairs.given:
        share = 100 * pairs.compared / pairs.all
        reused = f", reused {pairs.reused:,} from the cache" if pairs.reused else ""
        say("compared", f"{pairs.compared:,} pairs, {share:.1f} % of {pairs.all:,}{reused}")
    say("time", f"{seconds:.1f} s")
    if report is not None:
        say("report", report)


def describe_rank(row: Mapping[str, Any]) -> str:
    """Return the figures of a rank.

    >>> row = {"nodes": 3, "objects": 9, "accuracy": 0.8, "calibration_error": 0.02}
    >>> describe_rank(row | {"answered": 0.5, "answered_right": 1.0, "unknown": 0})
    '3 names, 9 objects, 80.0 % correct, calibration 0.020; 50.0 % labelled, 100.0 % of them right'
    """
    told = f"{row['nodes']:,} names, {row['objects']:,} objects"
    if row["objects"]:
        told += (
            f", {100 * row['accuracy']:.1f} % correct, calibration {row['calibration_error']:.3f}"
        )
        told += f"; {100 * row['answered']:.1f} % labelled"
        if row["answered_right"] is not None:
            told += f", {100 * row['answered_right']:.1f} % of them right"
    if row["unknown"]:
        told += f"; {row['unknown']:,} more without a training object of that name, "
        told += f"{100 * row['answered_unknown']:.1f} % of them labelled"
    return told


def _print_table(found: Any) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("model", no_wrap=True)
    columns = ("comparisons", "accuracy", "log-loss", "calibration", "to fit", "seconds")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    folds = found.n_train is None
    for name, model in found.models.items():
        s = model.summary()
        spread = f" ± {100 * s['accuracy']['std']:.1f}" if folds else ""
        table.add_row(
            Text(name),
            f"{s['comparisons']:,.0f}",
            f"{100 * s['accuracy']['mean']:.1f}{spread} %",
            f"{s['log_loss']['mean']:.3f}",
            f"{s['calibration_error']:.3f}",
            f"{s['evaluations']:,}",
            f"{sum(s['seconds'].values()):.1f}",
        )
    wide = None if sys.stdout.isatty() else 200
    out = Console(file=sys.stdout, markup=False, highlight=False, emoji=False, width=wide)
    out.print(table)
    out.print(
        Text(
            "comparisons: per prediction; "
            f"{'accuracy: ± standard deviation over the folds; ' * folds}"
            "calibration: expected calibration error; to fit: pairs compared; seconds: "
            f"{'for all folds, ' * folds}as if the model alone had compared its pairs",
            style="dim",
        )
    )
