"""The reference is complete: it lists every public name, each with an example that runs."""

import importlib
import inspect
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from krein.measures import Measure

PAGES = Path(__file__).parents[2] / "docs" / "reference"
PARTS = ("compare", "data", "datasets", "evaluation", "io", "landmarks", "measures", "report")
MODULES = ["krein", *(f"krein.{part}" for part in PARTS)]


def documented():
    """Yield every name that a reference page lists, in full."""
    for page in sorted(PAGES.glob("*.md")):
        module = None
        for line in page.read_text().splitlines():
            if found := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
                module = found[1]
            elif (found := re.match(r"   (\w[\w.]*)$", line)) and module:
                yield f"{module}.{found[1]}"


NAMES = list(documented())


def resolved(name):
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} cannot be imported")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(module):
    found = importlib.import_module(module)
    public = {f"{module}.{name}" for name in found.__all__ if callable(getattr(found, name))}
    assert public <= set(NAMES)


def test_every_measure_is_documented():
    from krein.measures import available
    from krein.measures.registry import measure_class

    found = {resolved(name) for name in NAMES}
    assert set(map(measure_class, available())) <= found


@pytest.mark.parametrize("name", NAMES)
def test_documented_name_has_an_example(name):
    text = inspect.getdoc(resolved(name)) or ""
    assert len(text) > 40, f"{name} is not described"
    if not is_record(resolved(name)):
        assert ">>>" in text, f"{name} has no example"


def is_record(found):
    """Whether a class is a record, shown in the example of the function that returns it."""
    fields_alone = is_dataclass(found) or hasattr(found, "_fields")
    return isinstance(found, type) and fields_alone and not issubclass(found, Measure)
