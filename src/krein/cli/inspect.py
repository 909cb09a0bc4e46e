"""`krein inspect`: describe a file, and give advice."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import click
import numpy as np

from ..io.modelfile import ModelFileError, is_model, read_model, read_versions
from ..io.streams import STDIN
from ..measures import get_measure
from ..measures.base import plain
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
        pass

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


# -------------------------------------------------------------------------------------------------
# Describe a model file: what it was fitted to, how it compares, what it contains.
# -------------------------------------------------------------------------------------------------


def describe_model(path: str, max_size: int | None = None) -> dict[str, Any]:
    """Return the description of a model file; missing entries are None."""
    tree = read_model(path, max_size)
    version, written = read_versions(path, max_size)
    try:
        return _described(path, tree, version, written)
    # valid checksums, but not written by krein
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ModelFileError(
            f"{path} is not a krein model, or was written by another version"
        ) from error


def _described(path: str, tree: dict[str, Any], version: str, written: int) -> dict[str, Any]:
    params, fitted = tree["params"], tree["fitted"]
    measure, measure_params = _measure(params)
    labels, landmarks = fitted.get("classes_"), fitted.get("landmarks_")
    columns = fitted.get("feature_names_in_")
    signature = fitted.get("signature_")
    rule, names = params.get("landmarks"), fitted.get("landmark_names_")
    return {
        "model": str(path),
        "estimator": tree["estimator"],
        "classes": None if labels is None else plain(labels),
        "class_sizes": _class_sizes(fitted),
        "objects": fitted.get("n_samples_seen_"),
        "measure": measure,
        "measure_params": measure_params,
        "columns": None if columns is None else columns.tolist(),
        "landmarks": None if landmarks is None else len(landmarks),
        "landmark_rows": None if landmarks is None else plain(landmarks),
        "landmark_names": None if names is None else names.tolist(),
        "landmark_rule": rule if isinstance(rule, str) else None,
        "comparisons": fitted.get("comparisons_"),
        "candidates": _candidates(fitted),
        "expected": _expected(fitted),
        "signature": None if signature is None else signature["signature"],
        "calibrated": params.get("calibrate"),
        "compared": fitted.get("kernel_evaluations_"),
        "bytes": os.path.getsize(path),
        "version": version,
        "format": written,
    }


def _measure(params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the measure and all its parameters, including defaults."""
    named = params["measure"]
    if isinstance(named, dict) and "function" in named:
        return f"the function {named['function']}", {}
    if isinstance(named, dict):
        return named["measure"], dict(named["params"])
    given = params.get("measure_params")
    pairs = given["mapping"] if isinstance(given, dict) else []
    found = get_measure(named, dict(pairs) or None)
    return named, {} if found.accepts == "values" else found.params()


def _class_sizes(fitted: dict[str, Any]) -> list[float] | None:
    """Return the number of objects per class, if the model keeps the moments of a stream, or all of
    its training objects."""
    stream, known = fitted.get("stream_"), fitted.get("known_")
    if stream is not None:
        sizes = stream["fields"]["moments"]["fields"]["weights"]
    elif known is not None:
        kept = known["fields"]["codes"], known["fields"]["landmark_classes"]
        sizes = np.bincount(np.concatenate(kept), minlength=len(fitted["classes_"]))
        if sizes.sum() != fitted["n_samples_seen_"]:
            return None
    else:
        return None
    return [int(n) if n == int(n) else float(n) for n in sizes.tolist()]


def _candidates(fitted: dict[str, Any]) -> int | None:
    """Return the number of candidates in a second look, if the model has one."""
    known = fitted.get("known_")
    return None if known is None else known["fields"]["n_candidates"]


def _expected(fitted: dict[str, Any]) -> dict[str, float] | None:
    """Return accuracy and log-loss on held-out training objects, if the model keeps their scores.

    The scores are the log-odds of the true labels before probabilities are bounded.
    """
    from scipy.special import log_expit

    from ..core.looks import bounded

    reference = fitted.get("reference_")
    if reference is None:
        return None
    labels, novelty = (reference["fields"][part]["fields"] for part in ("labels", "novelty"))
    weights = labels["weights"]
    right = novelty["predicted"] == labels["codes"]
    n_seen = fitted["looks_"]["fields"]["n_seen"]
    losses = -bounded(log_expit(labels["odds"]), n_seen, labels["n_classes"])
    return {
        "accuracy": float(np.average(right, weights=weights)),
        "log_loss": float(np.average(losses, weights=weights)),
        "held_out": len(right),
    }


def show_model(about: dict[str, Any]) -> None:
    """Print the description of a model file."""

    def row(what: str, value: str | None) -> None:
        if value is not None:
            say(what, printable(value, 2000))

    row("model", f"{about['model']}: {about['estimator']}")
    row("classes", _classes(about))
    row("objects", None if about["objects"] is None else f"{about['objects']:,} training objects")
    params = ", ".join(f"{key}={value}" for key, value in about["measure_params"].items())
    row("measure", about["measure"] + (f" ({params})" if params else ""))
    row("columns", None if about["columns"] is None else ", ".join(about["columns"]))
    rule = f", chosen by {about['landmark_rule']}" if about["landmark_rule"] else ""
    row("landmarks", f"{about['landmarks']:,}, one comparison each per new object{rule}")
    numbers = [str(number) for number in about["landmark_rows"] or ()]
    if about["landmark_names"] not in (None, numbers):
        row("names", _shortened([printable(name, 30) for name in about["landmark_names"]]))
    if about["comparisons"] is not None:
        more = f"; {about['candidates']:,} in a second look" if about["candidates"] else ""
        row("comparisons", f"{about['comparisons']:,.0f} per prediction on average{more}")
    if about["expected"] is not None:
        expected = about["expected"]
        row(
            "expected",
            f"accuracy {100 * expected['accuracy']:.1f} %, log-loss {expected['log_loss']:.3f}, "
            f"on {expected['held_out']:,} held-out training objects",
        )
    if about["signature"] is not None:
        p, q, _ = about["signature"]
        row("signature", f"{p} positive and {q} negative dimensions")
    if about["calibrated"] is not None:
        row("calibrated", "yes" if about["calibrated"] else "no")
    if about["compared"] is not None:
        row("compared", f"{about['compared']:,} pairs compared during the fit")
    row("size", f"{about['bytes']:,} bytes")
    row("written by", f"krein {about['version']}, format {about['format']}")


def _classes(about: dict[str, Any]) -> str | None:
    if about["classes"] is None:
        return None
    names = [printable(str(name), 30) for name in about["classes"]]
    if about["class_sizes"] is not None:
        names = [f"{a} ({n:,})" for a, n in zip(names, about["class_sizes"], strict=True)]
    return f"{len(names)}: {_shortened(names)}"


def _shortened(names: list[str]) -> str:
    """Return up to twelve names, or the first ten and the last."""
    return ", ".join(names if len(names) <= 12 else [*names[:10], "…", names[-1]])
