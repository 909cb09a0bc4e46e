"""Measures by name: a module is imported when one of its measures is first used."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import Any

from ..core.shapes import Kind
from ..wording import list_of_measures, parameter
from .base import Measure

_REGISTRY = {
    "balls": "vectors:Balls",
    "combined": "combined:Combined",
    "compression": "compression:Compression",
    "damerau": "strings:Damerau",
    "dtw": "series:DTW",
    "elm": "vectors:ELM",
    "erp": "series:ERP",
    "euclidean": "vectors:Euclidean",
    "hausdorff": "sets:Hausdorff",
    "jaro-winkler": "strings:JaroWinkler",
    "jensen-shannon": "vectors:JensenShannon",
    "lcs": "strings:LCS",
    "levenshtein": "strings:Levenshtein",
    "linear": "vectors:Linear",
    "manhattan": "vectors:Manhattan",
    "modified-hausdorff": "sets:ModifiedHausdorff",
    "msm": "series:MSM",
    "needleman-wunsch": "sequences:NeedlemanWunsch",
    "numeric-edit": "series:NumericEdit",
    "rbf": "vectors:RBF",
    "sigmoid": "vectors:Sigmoid",
    "smith-waterman": "sequences:SmithWaterman",
    "symmetric-kl": "vectors:SymmetricKL",
    "tangent": "images:Tangent",
    "tcrdist": "tcr:TCRdist",
    "tl1": "vectors:TL1",
}

_PRECOMPUTED: dict[str, Kind] = {
    "precomputed": "similarity",
    "precomputed-distance": "dissimilarity",
}
"""Names for precomputed values, and their kinds."""

_EXTRAS = {"sequences": "bio", "strings": "text", "series": "series", "tcr": "series"}
"""The extra of krein that installs the optional dependencies of each module."""


def available() -> list[str]:
    """Return the names of the measures, sorted.

    >>> "elm" in available()
    True
    """
    return sorted(_REGISTRY)


def get_measure(measure: Any, params: dict[str, Any] | None = None) -> Measure:
    """Return the measure for a name, a `Measure` or a function.

    `measure` is a name from `available()`, a `Measure`, which is returned unchanged, or a plain
    function of two objects; `params` are the parameters of a named measure, or describe the
    function (`kind`, `psd`, see `krein.measures.function.FunctionMeasure`).

    Examples
    --------
    >>> from krein.measures import get_measure
    >>> get_measure("smith-waterman", {"gap_open": 5})
    SmithWaterman(matrix='auto', gap_open=5, gap_extend=1, normalize=True, unknown_letters='map', \
both_strands=False)
    """
    if isinstance(measure, Measure):
        if params:
            raise ValueError(
                "measure_params need a measure given by name; this one has its own parameters"
            )
        return measure
    if callable(measure) and not isinstance(measure, type):
        from .function import FunctionMeasure

        return _build(FunctionMeasure, {"function": measure, **(params or {})}, "a function")
    if isinstance(measure, str) and measure in _PRECOMPUTED:
        from .precomputed import Precomputed

        if params:
            named = parameter("measure", repr(measure))
            raise ValueError(f"measure_params cannot be used with {named}: {params}")
        return Precomputed(_PRECOMPUTED[measure])
    if not isinstance(measure, str) or measure not in _REGISTRY:
        known, named = [*available(), *_PRECOMPUTED], str(measure).lower()
        near = get_close_matches(named, known) or [name for name in known if named in name]
        if near:
            meant = " or ".join(map(repr, near))
            raise ValueError(
                f"unknown measure {measure!r}: did you mean {meant}? {list_of_measures()} lists all"
            )
        raise ValueError(
            f"unknown measure {measure!r}; choose one of {', '.join(available())}, "
            "a function of two objects, or 'precomputed' or 'precomputed-distance' "
            "for a matrix of values"
        )
    return _build(measure_class(measure), params or {}, f"the measure {measure!r}")


def measure_class(name: str) -> type[Measure]:
    """Return the class of a measure, given a name from `available()`."""
    module, _, attribute = _REGISTRY[name].partition(":")
    try:
        found: type[Measure] = getattr(import_module(f".{module}", __package__), attribute)
    except ModuleNotFoundError as missing:
        if module not in _EXTRAS or (missing.name or "").startswith("krein"):
            raise
        raise ImportError(
            f"the measure {name!r} needs the package {missing.name!r}, which is not installed: "
            f'pip install "krein[{_EXTRAS[module]}]"'
        ) from missing
    return found


def _build(cls: type[Measure], params: dict[str, Any], called: str) -> Measure:
    """Return `cls(**params)`, or raise an error that names the unknown or missing parameter."""
    known = signature(cls).parameters  # including alternative names
    for name in params:
        if name not in known:
            allowed = ", ".join(field for field in known if field != "function") or "none"
            elsewhere = " (symmetrize belongs to the estimator)" if name == "symmetrize" else ""
            raise ValueError(
                f"{called} has no parameter {name!r}{elsewhere}; its parameters: {allowed}"
            )
    for name, about in known.items():
        if about.default is about.empty and name not in params:
            raise ValueError(f"{called} needs the parameter {name!r}")
    return cls(**params)
