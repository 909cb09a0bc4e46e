"""`krein inspect`: describe data with one sentence of advice, or a model file."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from typing import Any

import click
import numpy as np

from ...compare import Pairs, open_pairs
from ...compare.cache import object_digests
from ...core.shapes import Array
from ...io import DataError, NamedObjects, Source
from ...io.modelfile import is_model
from ...measures.precomputed import (
    AsymmetryError,
    check_square,
    looks_like,
    mistaken_for,
    open_matrix,
)
from .. import options
from ..about import describe_model, show_model
from ..classes import describe_classes, describe_single, say_ranks
from ..group import krein_command
from ..measure import MATRIX_REMEDIES, ChosenMeasure, choose_measure
from ..messages import printable
from ..reading import how_to_label, locating, open_input
from ..terminal import say

SAMPLE = 500
"""Number of objects that are kept to choose a measure for them."""

NEGATIVE = 0.01
"""Up to this share of the spectrum, the negative part may be noise."""

LARGE = 20_000
"""Above this number of objects, a model that needs a single pass is recommended."""


@krein_command("inspect")
@options.labelled_data
@click.option(
    "--spectrum",
    is_flag=True,
    help="Also compare objects, to find out how indefinite the measure is, and which objects have "
    "the same value to all others.",
)
@click.option(
    "--sample",
    type=click.IntRange(2),
    default=500,
    help="Number of objects compared with each other for --spectrum.",
)
@options.seed
@options.as_json
def command(
    data: options.DataOptions, spectrum: bool, sample: int, random_state: int, as_json: bool
) -> None:
    """Describe DATA: objects, classes, lengths, duplicates, the measure; and give advice.

    Objects are read in chunks, and not compared unless you ask for the spectrum. For a model
    written by krein fit, the command describes what it was fitted to and how it compares objects.

    \b
      krein inspect families.fasta --label-pattern 'family=(\\S+)'
      krein inspect distances.csv --distance --spectrum
      krein inspect model.krein
    """
    chosen = None
    if is_model(data.data):
        about = describe_model(data.data, data.max_size)
    else:
        about, chosen = describe_data(data, sample if spectrum else 0, random_state)
    if as_json:
        click.echo(json.dumps(about, ensure_ascii=False, indent=1))
    elif chosen is None:
        show_model(about)
    else:
        show_data(about, chosen)


def describe_data(
    data: options.DataOptions, size: int, seed: int
) -> tuple[dict[str, Any], ChosenMeasure]:
    """Return the description of data, and how its objects are compared.

    `size` of them are compared to estimate the spectrum; with 0, it is left out.
    """
    source = open_input(data)
    overview = Overview(size or SAMPLE, seed)
    if source.kind == "matrix":
        chunk = source.read()
        overview.add(chunk)
        chosen = choose_measure("matrix", [], data)
        found = look_at_matrix(chunk, data.distance, size, seed)
    else:
        for chunk in source.chunks(4096):
            overview.add(chunk)
        some = overview.sampled(chunk)
        chosen = choose_measure(source.kind, some.objects, data)
        found = NO_VALUES | look_at_values(some, chosen, data.symmetrize) if size else NO_VALUES
    lengths = np.array(overview.lengths)
    about: dict[str, Any] = {
        "data": source.shown,
        "understood": source.understood,
        "objects": overview.n,
        "classes": dict(Counter(overview.labels).most_common()) if overview.labels else None,
        "lengths": [int(f(lengths)) for f in (np.min, np.median, np.max)] if len(lengths) else None,
        "duplicates": overview.duplicates,
        "measure": chosen.measure,
        "measure_params": chosen.params,
        **found,
    }
    about["advice"] = advise(source, about, data.distance, data.symmetrize)
    return about, chosen


class Overview:
    """Counts over chunks of objects, and a random sample of them (a reservoir)."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.n = size, 0
        self.labels: list[str] = []
        self.lengths = array("q")  # if objects have a length
        self.duplicates = {"objects": 0, "conflicting": 0, "names": 0}
        self._sample: list[tuple[str, Any, int | None]] = []  # name, object, line
        self._rng = np.random.default_rng(seed)
        self._seen: dict[bytes, str | None] = {}  # the label of each object, by its digest
        self._names: set[str] = set()

    def add(self, chunk: NamedObjects) -> None:
        """Count the objects of a chunk."""
        self.labels += chunk.labels or []
        if chunk.kind in ("sequences", "strings", "series"):
            self.lengths.extend(len(item) for item in chunk.objects)
        for i, digest in enumerate(object_digests(chunk.objects)):
            name, label = chunk.names[i], chunk.labels[i] if chunk.labels else None
            key = bytes(digest)
            if key in self._seen:
                self.duplicates["objects"] += 1
                self.duplicates["conflicting"] += self._seen[key] != label
            else:
                self._seen[key] = label
            self.duplicates["names"] += name in self._names
            self._names.add(name)
            if chunk.kind != "matrix":
                line = None if chunk.lines is None else chunk.lines[i]
                self._draw((name, chunk.objects[i], line))
            self.n += 1

    def _draw(self, one: tuple[str, Any, int | None]) -> None:
        if self.n < self.size:
            self._sample.append(one)
        elif (at := int(self._rng.integers(self.n + 1))) < self.size:
            self._sample[at] = one

    def sampled(self, like: NamedObjects) -> NamedObjects:
        """Return the sample as a chunk of the same file and kind; objects keep their lines."""
        names, objects, lines = map(list, zip(*self._sample, strict=True))
        numbers = np.stack(objects) if like.kind == "vectors" else objects
        known = None if None in lines else lines
        return NamedObjects(names, numbers, None, 0, like.path, like.kind, known)


NO_VALUES: dict[str, Any] = {
    "asymmetry": None, "looks_like": None, "signature": None, "negative_mass": None,
    "sampled": None, "constant": [], "zero": [],
}  # fmt: skip
"""What is not known of objects that were not compared."""


def look_at_values(chunk: NamedObjects, chosen: ChosenMeasure, symmetrize: bool) -> dict[str, Any]:
    """Describe the values of a measure among some objects. O(len(chunk)²) pairs."""
    from ...landmarks.base import given_pairs  # slow to import, and not needed for a model

    with locating(chunk):
        pairs = open_pairs(
            chosen.given,
            chunk.objects,
            measure_params=chosen.params,
            symmetrize=symmetrize,
            verbose=1,
        )
        everyone = np.arange(len(pairs))
        values = pairs.block(everyone, everyone)
    known = given_pairs(values, pairs.kind)
    return {
        "asymmetry": None,
        "looks_like": None,
        **_spectrum(known, len(chunk), 0),
        **_degenerate(values, chunk.names),
    }


def look_at_matrix(chunk: NamedObjects, distance: bool, size: int, seed: int) -> dict[str, Any]:
    """Describe a matrix of values; a large one is sampled. O(size³) beyond reading it."""
    matrix = open_matrix(chunk.objects)
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"{chunk.path}: the matrix must be square, with a row and a column per object; got "
            f"{matrix.shape[0]} × {matrix.shape[1]}"
        )
    asymmetry = None
    try:
        check_square(matrix, "dissimilarity" if distance else "similarity")
    except AsymmetryError as error:
        asymmetry = error.reason
    except ValueError as error:
        raise DataError(f"{chunk.path}: {error}") from error
    name = "precomputed-distance" if distance else "precomputed"
    pairs = open_pairs(name, matrix, symmetrize=True)
    rng = np.random.default_rng(seed)
    n = len(pairs)
    some = np.sort(rng.choice(n, min(n, 2 * (size or SAMPLE)), replace=False))
    values = pairs.block(some, some)
    return {
        **NO_VALUES,
        "asymmetry": asymmetry,
        "looks_like": looks_like(values),
        **(_spectrum(pairs, size if n > 2 * size else n, seed) if size else {}),
        **_degenerate(values, [chunk.names[i] for i in some]),
    }


def _spectrum(pairs: Pairs, size: int, seed: int) -> dict[str, Any]:
    from ...core.space import double_centre, estimate_spectrum

    def block(rows: Any, cols: Any) -> Array:
        values = pairs.block(rows, cols)
        return values if pairs.kind == "similarity" else double_centre(values**2)

    found = estimate_spectrum(block, len(pairs), size=size, rng=np.random.default_rng(seed))
    return {
        "signature": tuple(found.signature),
        "negative_mass": abs(found.negative_mass),  # not −0
        "sampled": found.n_sampled,
    }


def _degenerate(values: Array, names: list[str]) -> dict[str, list[str]]:
    """Return the objects that have the same value to all others, and so carry no information."""
    off = ~np.eye(len(values), dtype=bool)
    lowest = np.where(off, values, np.inf).min(axis=1)
    highest = np.where(off, values, -np.inf).max(axis=1)
    flat = (lowest == highest) if len(values) > 2 else np.zeros(len(values), dtype=bool)
    zero = flat & (lowest == 0)
    return {
        "constant": [names[i] for i in np.flatnonzero(flat & ~zero)],
        "zero": [names[i] for i in np.flatnonzero(zero)],
    }


def measure_options(about: dict[str, Any]) -> str:
    """Return the options of `krein fit` for the comparison used here.

    >>> measure_options({"measure": "smith-waterman", "measure_params": {"matrix": "NUC.4.4"}})
    '--measure smith-waterman --measure-param matrix=NUC.4.4'
    """
    params = [
        f"--measure-param {name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in about["measure_params"].items()
    ]
    return " ".join([f"--measure {about['measure']}", *params])


def advise(source: Source, about: dict[str, Any], distance: bool, symmetrize: bool) -> str:
    """Return one sentence: what to do with the data."""
    if mistaken := mistaken_for(about["looks_like"], distance, remedies=MATRIX_REMEDIES):
        return mistaken
    if about["asymmetry"] and not symmetrize:
        return "The two directions differ: use --symmetrize to average them."
    if not about["classes"]:
        return f"There are no labels: to fit a model, use {how_to_label(source)}."
    counts = about["classes"]
    if len(counts) < 2:
        return "All objects have the same label: there is nothing to classify."
    rare = [name for name, n in counts.items() if n < 2]
    if rare:
        return f"{describe_single(rare, counts)}."
    model = " --model ikfd (one pass)" if about["objects"] > LARGE else " the default model"
    name = "" if source.kind == "matrix" else f" {measure_options(about)} and"
    remedy = f"use{name}{model}"
    share = about["negative_mass"]
    if share is None:
        return (
            f"To fit a model, {remedy}; krein evaluate shows how good it is, and --spectrum how "
            f"indefinite the measure is."
        )
    if share > NEGATIVE:
        return (
            f"{100 * share:.0f} % of the spectrum is negative: keep it, because krein uses it "
            f"and clipping would lose it; {remedy}."
        )
    if source.kind == "vectors":
        return (
            f"The measure is (nearly) a kernel and the objects are vectors: gradient boosting or "
            f"an SVM may work as well; with krein, {remedy}."
        )
    return (
        f"Hardly any of the spectrum is negative ({100 * share:.2g} %), so a kernel method works "
        f"too, but it compares all pairs; to compare fewer, {remedy}."
    )


def show_data(about: dict[str, Any], chosen: ChosenMeasure) -> None:
    """Print the description of data."""
    say("data", about["data"])
    say("objects", f"{about['objects']:,}: {about['understood']}")
    say("classes", describe_classes(about["classes"]) if about["classes"] else "no labels")
    say_ranks(about["classes"] or ())
    if about["lengths"]:
        shortest, median, longest = about["lengths"]
        say("lengths", f"{shortest:,} to {longest:,}, median {median:,}")
    say("duplicates", _duplicates(about["duplicates"]))
    say("measure", str(chosen))
    if about["asymmetry"] or about["signature"]:
        say("symmetric", about["asymmetry"] or "yes")
    if about["signature"] is not None:
        p, q, z = about["signature"]
        whole = about["sampled"] == about["objects"]
        of = "" if whole else f", in a sample of {about['sampled']:,}"
        say("signature", f"{p} positive, {q} negative, {z} zero eigenvalues{of}")
        say("negative", f"{100 * about['negative_mass']:.2f} % of the spectrum{of}")
    for key, problem in (("constant", "the same value to all others"), ("zero", "0 to all others")):
        if names := about[key]:
            shown = ", ".join(printable(name, 30) for name in names[:5])
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            say("degenerate", f"{problem}: {shown}{more}")
    click.echo()
    click.secho(printable(about["advice"], 2000), bold=True)


def _duplicates(found: dict[str, int]) -> str:
    parts = []
    if n := found["objects"]:
        parts.append("1 repeated object" if n == 1 else f"{n:,} repeated objects")
    if n := found["conflicting"]:
        parts.append(f"{n:,} of them with different labels")
    if n := found["names"]:
        parts.append(f"{n:,} repeated names")
    return ", ".join(parts) or "none"
