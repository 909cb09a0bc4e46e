"""How messages name parameters, as in Python or as on the command line, and kinds of values.

Code that raises an error or a warning asks for the name here, so that nobody has to translate a
finished message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_options: Mapping[str, str] = {}  # option by parameter, while a command runs


@contextmanager
def options_for_parameters(options: Mapping[str, str]) -> Iterator[None]:
    """Name options instead of parameters, for the whole process."""
    global _options
    before, _options = _options, options
    try:
        yield
    finally:
        _options = before


def parameter(name: str, value: object = "") -> str:
    """Return how to set a parameter.

    >>> print(parameter("labels", "COLUMN"), parameter("symmetrize", True), parameter("max_size"))
    labels=COLUMN symmetrize=True max_size=
    >>> with options_for_parameters({"labels": "--labels", "symmetrize": "--symmetrize"}):
    ...     print(parameter("labels", "COLUMN"), parameter("symmetrize", True))
    --labels COLUMN --symmetrize
    """
    option = _options.get(name)
    if option is None:
        return f"{name}={value}"
    return option if value is True or value == "" else f"{option} {str(value).strip(chr(39))}"


def option(name: str, value: object) -> str:
    """Return how to set an option that only the command has, in parentheses; "" in Python.

    >>> option("min_class_size", 2)
    ''
    """
    return f" ({_options[name]} {value})" if name in _options else ""


def measure_parameter(name: str, value: str) -> str:
    """Return how to set a parameter of a measure.

    >>> measure_parameter("matrix", "NUC.4.4")
    "measure_params={'matrix': 'NUC.4.4'}"
    """
    option = _options.get("measure_params")
    if option is None:
        return f"measure_params={{{name!r}: {value!r}}}"
    return f"{option} {name}={value}"


def own_measure() -> str:
    """Return how to pass a measure of your own to a model that was fitted with it."""
    return "--measure FILE.py:FUNCTION" if _options else "krein.load(path, measure=…)"


def article(noun: str) -> str:
    """Return a noun with its indefinite article; initials are spelt out.

    >>> article("integer"), article("UserDict"), article("SVC"), article("PCVM")
    ('an integer', 'a UserDict', 'an SVC', 'a PCVM')
    """
    vowels = "AEFHILMNORSX" if noun[:2].isupper() else "AEIOaeio"
    return f"{'an' if noun.startswith(tuple(vowels)) else 'a'} {noun}"


_KINDS = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bytes": "bytes object",
    "ndarray": "array",
}


def kind_of(value: object) -> str:
    """Return what kind of value was found where another one is expected.

    >>> kind_of(3), kind_of("Anne"), kind_of(None), kind_of({1})
    ('an integer (3)', "a string ('Anne')", 'None', 'a set ({1})')
    >>> import numpy as np
    >>> kind_of(np.eye(2))
    'an array (array([[1., 0.], [0., 1.]]))'
    """
    if value is None:
        return "None"
    text, kind = " ".join(repr(value).split()), type(value).__name__
    shown = text if len(text) <= 30 else text[:30] + "…"
    return f"{article(_KINDS.get(kind, kind))} ({shown})"


def list_of_measures() -> str:
    """Return where the names of all measures are listed."""
    return "krein fit --help" if _options else "krein.measures.available()"
