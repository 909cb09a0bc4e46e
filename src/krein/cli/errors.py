"""Errors of the library in the words of the command."""

from __future__ import annotations

import re

_OPTIONS = {
    "objects": "--objects",
    "labels": "--labels",
    "names": "--names",
    "format": "--input-format",
    "symmetrize": "--symmetrize",
    "n_jobs": "--jobs",
    "n_landmarks": "--n-landmarks",
    "landmarks": "--landmarks",
    "measure": "--measure",
    "folds": "--folds",
}
_WORD = re.compile(
    # what is quoted is the user's own, unless it is the value of a parameter
    r"\b(?P<name>" + "|".join(_OPTIONS) + r")=(?P<value>True\b|'[^']*'|[\w-]+)?|'(?:[^'\\]|\\.)*'"
)
_PARAMS = re.compile(r"measure_params=\{'(\w+)': '?(\w+)'?\}")


def told(error: BaseException) -> str:
    """Return what an error says, in one line, with options instead of Python's parameters."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    message = " ".join(str(error).split())
    if not isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError):
        return f"{type(error).__name__}: {message} (--debug shows where)"
    message = message.replace("krein.measures.available()", "krein fit --help")
    return _WORD.sub(_option, _PARAMS.sub(r"--measure-param \1=\2", message))


def _option(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if name is None:
        return found[0]
    if value is None or value == "True":
        return _OPTIONS[name]
    return f"{_OPTIONS[name]} {value.strip(chr(39))}"
