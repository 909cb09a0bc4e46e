"""`krein inspect`: describe a file, and give advice."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import click

from ..io.compression import STDIN
from ..io.modelfile import is_model
from . import options
from .group import command as krein_command
from .output import printable, say
from .reading import choose_measure, describe_classes, open_data


@krein_command("inspect")
@click.argument("data", type=click.Path(allow_dash=True))
@options.labelling
@options.measuring
@options.reading
@click.option(
    "--sample",
    type=click.IntRange(2),
    default=500,
    show_default=True,
    help="Number of objects compared with each other to estimate the spectrum.",
)
@click.option("--seed", type=options.SEED, default=0, show_default=True, help="Seed of the sample.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def command(
    data: str,
    labels: str | None,
    label_pattern: str | None,
    measure: str | None,
    measure_params: tuple[str, ...],
    distance: bool,
    symmetrize: bool,
    sample: int,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Describe DATA: objects, classes, lengths, duplicates, how indefinite; and give advice.

    Objects are read in chunks, and if there are many, a random sample is compared. For a model
    written by krein fit, the command describes what it was fitted to and how it compares objects.

    \b
      krein inspect families.fasta --label-pattern 'family=(\\S+)'
      krein inspect distances.csv --distance
      krein inspect model.krein
    """
    if data != STDIN and is_model(data):
        from .describe import describe_model, show_model

        described = describe_model(data, reading["max_size"])
        if as_json:
            click.echo(json.dumps(described, ensure_ascii=False, indent=1))
        else:
            show_model(described)
        return
    from .survey import Overview, advise, look_at_matrix, look_at_values

    source = open_data(
        data, labels=labels, label_pattern=label_pattern, measure=measure, distance=distance,
        **reading,
    )  # fmt: skip
    survey = Overview(sample, seed)
    if source.kind == "matrix":
        chunk = source.read()
        survey.add(chunk)
        comparison = choose_measure("matrix", [], None, measure_params, distance)
        found = look_at_matrix(chunk, distance, sample, seed)
    else:
        for chunk in source.chunks(4096):
            survey.add(chunk)
        comparison = choose_measure(source.kind, survey.objects, measure, measure_params, distance)
        found = look_at_values(survey.sampled(), comparison.measure, comparison.params, symmetrize)
    about: dict[str, Any] = {
        "data": source.shown,
        "understood": source.understood,
        "objects": survey.n,
        "classes": dict(Counter(survey.labels).most_common()) if survey.labels else None,
        "lengths": survey.lengths(),
        "duplicates": survey.duplicates(),
        "measure": comparison.measure,
        "measure_params": comparison.params,
        **found,
    }
    about["advice"] = advise(source.kind, about, distance, symmetrize)
    if as_json:
        click.echo(json.dumps(about, ensure_ascii=False, indent=1))
        return
    _show(about, survey.labels, str(comparison))


def _show(about: dict[str, Any], labels: list[str], measure: str) -> None:
    def row(what: str, value: str) -> None:
        say(what, printable(value, 2000))

    row("data", about["data"])
    row("objects", f"{about['objects']:,}: {about['understood']}")
    row("classes", describe_classes(labels) if labels else "no labels")
    if about["lengths"]:
        shortest, median, longest = about["lengths"]
        row("lengths", f"{shortest:,} to {longest:,}, median {median:,}")
    row("duplicates", _duplicates(about["duplicates"]))
    row("measure", measure)
    row("symmetric", about["asymmetry"] or "yes")
    p, q, z = about["signature"]
    of = "" if about["sampled"] == about["objects"] else f", in a sample of {about['sampled']:,}"
    row("signature", f"{p} positive, {q} negative, {z} zero eigenvalues{of}")
    row("negative", f"{100 * about['negative_mass']:.2f} % of the spectrum{of}")
    for name, told in (("constant", "the same value to all others"), ("zero", "0 to all others")):
        if about[name]:
            shown = ", ".join(printable(n, 30) for n in about[name][:5])
            more = f" and {len(about[name]) - 5} more" if len(about[name]) > 5 else ""
            row("degenerate", f"{told}: {shown}{more}")
    click.echo()
    click.secho(printable(about["advice"], 2000), bold=True)


def _duplicates(found: dict[str, int]) -> str:
    if not found["objects"] and not found["names"]:
        return "none"
    parts = []
    if found["objects"]:
        n = found["objects"]
        parts.append("1 repeated object" if n == 1 else f"{n:,} repeated objects")
    if found["conflicting"]:
        parts.append(f"{found['conflicting']:,} of them with different labels")
    if found["names"]:
        parts.append(f"{found['names']:,} repeated names")
    return ", ".join(parts)
