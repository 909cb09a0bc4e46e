"""Describe a model file: what it was fitted to, how it compares, what it contains."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..io.modelfile import ModelFileError, read_model, read_versions
from ..measures import get_measure
from ..measures.base import plain
from .output import printable, say


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

    from ..core.pooling import bounded

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
