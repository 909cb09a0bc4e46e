"""`krein evaluate`: compare models on the same folds, and write a report."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import click

from ..estimators.registry import MODELS as FAMILIES
from ..io import DataError
from ..io.streams import STDIN
from . import options
from .group import command as krein_command
from .group import typed
from .output import check_target, console, printable, say, warnings_told
from .reading import check_rule, choose_measure, describe_classes, labelled, open_data

MODELS = (*FAMILIES, "svm-clip", "knn", "logistic", "features")


def split_models(
    context: click.Context, option: click.Parameter, value: str | None
) -> list[str] | None:
    """Return the names in a list separated by commas."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in MODELS:
            raise click.BadParameter(f"unknown model {name!r}; choose from {', '.join(MODELS)}")
    if not names or len(set(names)) < len(names):
        raise click.BadParameter("list each model once, separated by commas")
    return names


@krein_command("evaluate")
@click.argument("data", type=click.Path(allow_dash=True))
@options.labelling
@options.measuring
@click.option(
    "--compare",
    callback=split_models,
    metavar="MODELS",
    help=f"Models to compare, separated by commas: {', '.join(FAMILIES)}; and as baselines "
    f"svm-clip (an SVM on the clipped matrix), knn, logistic (on the same landmarks), and "
    f"features (n-grams, gradient boosting or convolutions, without comparisons). svm-clip and "
    f"knn compare all pairs. Default: auto, knn and, if the objects have features, features.",
)
@click.option(
    "--folds",
    type=click.IntRange(2),
    default=10,
    show_default=True,
    help="Number of cross-validation folds.",
)
@click.option(
    "--groups",
    metavar="COLUMN|FILE|identity:T",
    help="Hold out the objects of a group together. Groups come from a column, from a file as "
    "for --labels, or from the measure: identity:0.4 groups objects with an identity of at least "
    "0.4.",
)
@click.option(
    "--label-ranks",
    metavar="SIGN",
    help="Separator of hierarchical labels: also report the figures for each rank.",
)
@click.option(
    "--rank-above",
    type=options.Share(0.5, 1, min_open=True),
    default=0.9,
    show_default=True,
    metavar="P",
    help="Answer with the deepest rank that has at least this probability.",
)
@options.choosing
@options.calibrating
@options.reading
@options.running
@click.option(
    "--report",
    type=click.Path(),
    help="Write an HTML report with figures, a map and uncertain cases.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    data: str,
    labels: str | None,
    label_pattern: str | None,
    measure: str | None,
    measure_params: tuple[str, ...],
    distance: bool,
    symmetrize: bool,
    compare: list[str] | None,
    folds: int,
    groups: str | None,
    label_ranks: str | None,
    rank_above: float,
    landmarks: str | None,
    n_landmarks: int | None,
    calibrate: bool | None,
    seed: int,
    jobs: int | None,
    cache: str | None,
    report: str | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Cross-validate models on DATA, all on the same folds.

    Prints accuracy, log-loss, calibration error, AUGRC, comparisons and time. With --report, also
    writes a report that opens offline. Each pair is compared once and shared by all models and
    folds.

    \b
      krein evaluate families.fasta --label-pattern 'family=(\\S+)' --report report.html
      krein evaluate words.csv --labels language --compare ikfd,pcvm,knn --folds 5
    """
    from .survey import warn_of_matrix

    check_report(report, reads=(data, labels, groups))
    check_rule(landmarks, n_landmarks)
    check_groups(groups, data)
    opened = {"measure": measure, "distance": distance, **reading}
    source = open_data(data, labels=labels, label_pattern=label_pattern, **opened)
    start = time.perf_counter()
    chunk = source.read()
    y = labelled(chunk, source)
    grouped = read_groups(groups, data, opened)
    comparison = choose_measure(source.kind, chunk.objects, measure, measure_params, distance)
    warn_of_matrix(chunk, distance)
    if not as_json:
        say("data", f"{len(chunk):,} objects: {printable(source.understood, 200)}")
        say("classes", describe_classes(y))
        say("measure", str(comparison))
    from ..evaluation import evaluate

    try:
        with warnings_told():
            found = evaluate(
                chunk.objects,
                y,
                compare,
                measure=comparison.measure,
                measure_params=comparison.params or None,
                landmarks=landmarks,
                n_landmarks=n_landmarks,
                calibrate=calibrate is not False,
                folds=folds,
                groups=grouped,
                label_ranks=label_ranks,
                rank_above=rank_above,
                names=chunk.names,
                random_state=seed,
                n_jobs=jobs,
                cache=cache,
                symmetrize=symmetrize,
                verbose=int(sys.stderr.isatty()),
            )
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise chunk.located(error) from error
    show(found, report, as_json, os.path.basename(source.shown), time.perf_counter() - start)


def check_groups(groups: str | None, data: str) -> None:
    """Refuse groups that cannot be read, before the work starts."""
    if groups is None:
        return
    if groups.startswith("identity:"):
        from ..evaluation.groups import parse_identity

        try:
            parse_identity(groups)
        except ValueError as error:
            raise click.UsageError(str(error).replace("groups=", "--groups ", 1)) from error
    elif data == STDIN:
        raise click.UsageError(
            "--groups needs to read the data twice, which standard input does not allow: save "
            "the data to a file"
        )


def read_groups(groups: str | None, data: str, opened: dict[str, Any]) -> str | list[str] | None:
    """Return the group of each object, from a column or a file; "identity:T" is returned
    unchanged."""
    if groups is None or groups.startswith("identity:"):
        return groups
    return open_data(data, labels=groups, **opened).read().labels


def check_report(path: str | None, *, reads: Sequence[str | None] = ()) -> None:
    """Refuse a report that cannot be written, before the work starts."""
    check_target(path, reads=reads)
    if path is not None and find_spec("jinja2") is None:
        raise ModuleNotFoundError(
            'a report needs jinja2: pip install "krein[report]"', name="jinja2"
        )


def show(found: Any, report: str | None, as_json: bool, title: str | None, seconds: float) -> None:
    """Print the results of an evaluation, and write its report."""
    if report is not None:
        from ..report import write_report

        write_report(found, report, title=title, command=typed())
    if as_json:
        click.echo(json.dumps(found.summary(), ensure_ascii=False))
        return
    _print_table(found)
    if found.ranks is not None:
        for row in found.best.by_rank(*found.ranks):
            right = row["answered_right"]
            say(
                f"rank {row['rank']}",
                f"{found.best.name}: {row['nodes']:,} names, {100 * row['accuracy']:.1f} % "
                f"correct, calibration {row['calibration_error']:.3f}; "
                f"{100 * row['answered']:.1f} % labelled"
                + ("" if right is None else f", {100 * right:.1f} % of them correct"),
            )
    n = len(found.names)
    pairs = found.pairs
    if not pairs.given:
        share = 100 * pairs.compared / n**2
        reused = f", reused {pairs.reused:,} from the cache" if pairs.reused else ""
        say("compared", f"{pairs.compared:,} pairs, {share:.1f} % of {n**2:,}{reused}")
    say("time", f"{seconds:.1f} s")
    if report is not None:
        say("report", report)


def _print_table(found: Any) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("model", no_wrap=True)
    columns = ("comparisons", "accuracy", "log-loss", "calibration", "AUGRC", "to fit", "seconds")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, model in found.models.items():
        s = model.summary()
        table.add_row(
            Text(name),
            f"{s['comparisons']:,.0f}",
            f"{100 * s['accuracy']['mean']:.1f} ± {100 * s['accuracy']['std']:.1f} %",
            f"{s['log_loss']['mean']:.3f}",
            f"{s['calibration_error']:.3f}",
            f"{s['augrc']:.4f}",
            f"{s['evaluations']:,}",
            f"{sum(s['seconds'].values()):.1f}",
        )
    out = console()
    out.print(table)
    out.print(
        Text(
            "comparisons: per prediction; accuracy: with its spread over the folds; calibration: "
            "expected calibration error; AUGRC: errors left when rejecting, 0 is best; to fit: "
            "pairs compared; seconds: all folds, with the model's own pairs at the speed of this "
            "run",
            style="dim",
        )
    )
