"""`krein inspect`: describe data with one sentence of advice, or a model file."""

from __future__ import annotations

import json
import os
from array import array
from collections import Counter
from typing import Annotated, Any

import click
import numpy as np

from ..compare import Pairs, open_pairs
from ..compare.cache import object_digests
from ..core.ranks import short_labels
from ..core.shapes import COUNT, Array
from ..core.space import Signature
from ..io import DataError, NamedObjects, Source
from ..io.modelfile import ModelFileError, is_model, read_model, read_versions
from ..measures import Combined, get_measure
from ..measures.base import plain
from ..measures.precomputed import (
    AsymmetryError,
    check_square,
    looks_like,
    mistaken_for,
    open_matrix,
)
from ..model.file import from_tree
from ..model.schema import Context, decode
from . import options
from .group import krein_command
from .measure import MATRIX_REMEDIES, ChosenMeasure, choose_measure
from .options import shortened
from .output import printable, say
from .reading import (
    describe_classes,
    describe_single,
    how_to_label,
    locating,
    open_input,
    say_ranks,
)

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


# Data


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
    from ..landmarks.base import given_pairs  # slow to import, and not needed for a model

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
    from ..core.space import double_centre, estimate_spectrum

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


# A model file: what it was fitted to, how it compares, what it contains


def describe_model(path: str, max_size: int | None = None) -> dict[str, Any]:
    """Return the description of a model file; missing entries are None."""
    tree = read_model(path, max_size)
    version, written = read_versions(path, max_size)
    file = {"bytes": os.path.getsize(path), "version": version, "format": written}
    try:
        _check_contents(tree)
        return {"model": str(path), **_describe_contents(tree), **file}
    except (ImportError, MemoryError):
        raise
    # valid checksums, but not written by krein: as in `load`, any error is possible
    except Exception as error:
        raise ModelFileError(
            f"{path} is not a krein model, or was written by another version"
        ) from error


def _check_contents(tree: dict[str, Any]) -> None:
    """Raise any error if a model could not be loaded, or if what is shown is not what it should be.

    The code of the user's own measure is not needed.
    """
    content = tree["fitted"]["model_"]["fields"]
    if "function" in content["measure"]:
        own = {**content, "measure": get_measure(_unknown)}
        model = {**tree["fitted"]["model_"], "fields": own}
        tree = {**tree, "fitted": {**tree["fitted"], "model_": model}}
    from_tree(tree, only_model=True)
    shown = Annotated[int, COUNT] | None
    for part, name, hint in (
        ("fitted", "n_samples_seen_", shown),
        ("fitted", "comparisons_to_fit_", shown),
        ("fitted", "class_count_", Annotated[Array, "C"] | None),
        ("fitted", "signature_", Signature | None),
        ("params", "calibrate", bool | None),
    ):
        decode(tree[part].get(name), hint, name, Context())


def _unknown(a: Any, b: Any) -> float:
    raise NotImplementedError("the measure of this model is not part of its file")


def _describe_contents(tree: dict[str, Any]) -> dict[str, Any]:
    params, fitted = tree["params"], tree["fitted"]
    measure, measure_params = _measure(params)
    model = fitted["model_"]["fields"]
    labels, landmarks = model.get("classes"), model["landmarks"]["fields"]
    columns, names, rule = model.get("feature_names"), landmarks["names"], params.get("landmarks")
    known = _known_objects(model)
    return {
        "estimator": tree["estimator"],
        "classes": None if labels is None else plain(labels),
        "class_sizes": _class_sizes(fitted, model),
        "objects": fitted.get("n_samples_seen_"),
        "measure": measure,
        "measure_params": measure_params,
        "columns": None if columns is None else columns.tolist(),
        "landmarks": len(landmarks["indices"]),
        "landmark_rows": plain(landmarks["indices"]),
        "landmark_names": None if names is None else names.tolist(),
        "landmark_rule": rule if isinstance(rule, str) else None,
        "label_ranks": model["ranks"]["fields"]["separator"] if model.get("ranks") else None,
        "comparisons": model.get("comparisons"),
        "candidates": None if known is None else known.get("n_candidates"),
        "hits": None if known is None else known.get("score"),
        "expected": _expected(model),
        "signature": fitted.get("signature_"),
        "calibrated": params.get("calibrate"),
        "compared": fitted.get("comparisons_to_fit_"),
    }


def _measure(params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the measure and all its parameters, including defaults."""
    named = params["measure"]
    if isinstance(named, dict) and "function" in named:
        return f"the function {named['function']}", {}
    if isinstance(named, dict) and named["measure"] == Combined.name:
        return get_measure(named["measure"], named["params"]).title, {}
    if isinstance(named, dict):
        return named["measure"], dict(named["params"])
    given = params.get("measure_params")
    pairs = given["mapping"] if isinstance(given, dict) else []
    found = get_measure(named, dict(pairs) or None)
    return named, {} if found.accepts == "values" else found.params()


def _known_objects(model: dict[str, Any]) -> dict[str, Any] | None:
    """Return the known objects of the second look."""
    second = model.get("second_look")
    return None if second is None else second["fields"]["known"]["fields"]


def _class_sizes(fitted: dict[str, Any], model: dict[str, Any]) -> list[float] | None:
    """Return the number of objects per class, if the model knows it, or all training objects."""
    known = _known_objects(model)
    if "class_count_" in fitted:
        sizes = np.asarray(fitted["class_count_"])
    elif known is not None:
        kept = known["codes"], model["landmarks"]["fields"]["codes"]
        sizes = np.bincount(np.concatenate(kept), minlength=len(model["classes"]))
        if sizes.sum() != fitted["n_samples_seen_"]:
            return None
    else:
        return None
    return [int(n) if n == int(n) else float(n) for n in sizes.tolist()]


def _expected(model: dict[str, Any]) -> dict[str, float] | None:
    """Return accuracy and log-loss on held-out training objects, if the model keeps their scores.

    The scores are the log-odds of the true labels before probabilities are bounded.
    """
    from scipy.special import log_expit

    if model.get("reference") is None:
        return None
    reference, n_seen = model["reference"]["fields"], model["cascade"]["fields"]["n_seen"]
    weights = reference["weights"]
    right = reference["predicted"] == reference["codes"]
    share = 1 / (n_seen + 1)  # of the uniform distribution, which bounds the probabilities
    P = (1 - share) * np.exp(log_expit(reference["odds"])) + share / len(model["classes"])
    losses = -np.log(P)
    return {
        "accuracy": float(np.average(right, weights=weights)),
        "log_loss": float(np.average(losses, weights=weights)),
        "held_out": len(right),
    }


def show_model(about: dict[str, Any]) -> None:
    """Print the description of a model file."""
    say("model", f"{about['model']}: {about['estimator']}")
    _show_training(about)
    if about["hits"] is None:
        _show_comparisons(about)
    else:
        scored = f", scored by {about['hits']}" if about["hits"] else ""
        say("hits", f"among {about['objects']:,} known objects{scored}; nothing is compared")
        _show_landmark_names(about)
    if (expected := about["expected"]) is not None:
        say(
            "expected",
            f"accuracy {100 * expected['accuracy']:.1f} %, log-loss {expected['log_loss']:.3f}, "
            f"on {expected['held_out']:,} held-out training objects",
        )
    if about["hits"] is None and about["signature"] is not None:
        p, q, _ = about["signature"]
        say("signature", f"{p} positive and {q} negative dimensions")
    if about["calibrated"] is not None:
        say("calibrated", "yes" if about["calibrated"] else "no")
    if about["hits"] is None and about["compared"] is not None:
        say("compared", f"{about['compared']:,} pairs compared during the fit")
    say("size", f"{about['bytes']:,} bytes")
    say("written by", f"krein {about['version']}, format {about['format']}")


def _show_training(about: dict[str, Any]) -> None:
    """Print what a model was fitted to, and how it compares objects."""
    if about["classes"] is not None:
        short = short_labels([str(name) for name in about["classes"]])
        names = [shortened(name) for name in short]
        if about["class_sizes"] is not None:
            names = [f"{a} ({n:,})" for a, n in zip(names, about["class_sizes"], strict=True)]
        say("classes", f"{len(names)}: {_shortened(names)}")
        if about["label_ranks"] is not None:
            say_ranks(map(str, about["classes"]))
    if about["objects"] is not None:
        say("objects", f"{about['objects']:,} training objects")
    say("measure", str(ChosenMeasure(about["measure"], about["measure_params"])))
    if about["columns"] is not None:
        say("columns", ", ".join(about["columns"]))


def _show_comparisons(about: dict[str, Any]) -> None:
    """Print what new objects are compared with."""
    rule = f", chosen by {about['landmark_rule']}" if about["landmark_rule"] else ""
    say("landmarks", f"{about['landmarks']:,}, one comparison each per new object{rule}")
    _show_landmark_names(about)
    if about["comparisons"] is not None:
        more = f"; {about['candidates']:,} in a second look" if about["candidates"] else ""
        say("comparisons", f"{about['comparisons']:,.0f} per prediction on average{more}")


def _show_landmark_names(about: dict[str, Any]) -> None:
    numbers = [str(number) for number in about["landmark_rows"] or ()]
    if about["landmark_names"] not in (None, numbers):
        say("names", _shortened([printable(name, 30) for name in about["landmark_names"]]))


def _shortened(names: list[str]) -> str:
    """Return up to twelve names, or the first ten and the last."""
    return ", ".join(names if len(names) <= 12 else [*names[:10], "…", names[-1]])
