"""What a model file contains, for `krein inspect` and for `/model` of `krein serve`."""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np

from ..core.ranks import short_labels
from ..core.shapes import COUNT, Array
from ..core.space import Signature
from ..io.modelfile import ModelFileError, read_model, read_versions
from ..measures import Combined, get_measure
from ..measures.base import plain
from ..model.file import from_tree
from ..model.schema import Context, decode
from .classes import say_ranks
from .measure import ChosenMeasure
from .messages import printable, shortened
from .terminal import say


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
