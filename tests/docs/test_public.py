"""`krein.__all__` is the whole public interface, and every public class describes itself."""

import importlib
import inspect
import pkgutil
import re
import sys
from types import ModuleType

import pytest
from numpydoc.docscrape import NumpyDocString

import krein
from krein.data import Dataset, Engine
from krein.io import Source
from krein.landmarks import Rule
from krein.measures import available
from krein.measures.registry import measure_class

from .test_reference import NAMES, is_record, resolved

PARTS = {
    "compare",
    "data",
    "datasets",
    "evaluation",
    "io",
    "landmarks",
    "measures",
    "model",
    "neighbours",
    "reject",
    "report",
}
"""Public packages, each with names of its own in the reference."""

INSIDE = {
    "__main__": "python -m krein",
    "cli": "the command",
    "core": "the mathematics; the reference lists its public part",
    "estimators": "krein exports them",
    "version": "krein.__version__",
    "wording": "how messages name parameters",
}
"""The other modules, and how users reach them."""

NOT_CALLED = {
    "krein.compare.Pairs": "open_pairs makes it",
}
"""Classes with parameters that users do not create, and what creates them."""

UNLISTED = {
    "krein.measures.precomputed.Precomputed": "created for measure='precomputed'",
}
"""Classes with parameters that the reference does not list, and what creates them."""

ESTIMATORS = [getattr(krein, name) for name in krein.__all__ if not name.startswith("load")]


def test_all_is_what_the_package_shows():
    assert {name for name in dir(krein) if not name.startswith("_")} == {*krein.__all__, *PARTS}


def test_every_public_name_resolves():
    for name in krein.__all__:
        assert getattr(krein, name).__module__.startswith("krein.")
    for name in PARTS:
        assert isinstance(getattr(krein, name), ModuleType)


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'SVC'"):
        _ = krein.SVC


def test_every_module_is_public_or_has_a_reason():
    found = {module.name for module in pkgutil.iter_modules(krein.__path__)}
    assert found == PARTS | set(INSIDE)


def test_nothing_else_of_krein_is_reachable():
    inside = {
        name
        for name, found in vars(krein).items()
        if not name.startswith("_")
        and not isinstance(found, ModuleType)
        and (getattr(found, "__module__", None) or "").startswith("krein")
    }
    assert inside <= set(krein.__all__)


def sections(cls):
    return NumpyDocString(inspect.getdoc(cls))


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_an_estimator_describes_itself(cls):
    told = sections(cls)
    assert told["Attributes"]
    assert all(entry.type and entry.desc for entry in told["Attributes"])
    assert told["Examples"]
    assert all(name in krein.__all__ for names, _ in told["See Also"] for name, _role in names)


@pytest.mark.parametrize("name", sorted(set(krein.__all__) - {c.__name__ for c in ESTIMATORS}))
def test_a_public_function_describes_itself(name):
    told = sections(getattr(krein, name))
    assert told["Summary"]
    expected = list(inspect.signature(getattr(krein, name)).parameters)
    assert [entry.name for entry in told["Parameters"]] == expected
    assert told["Examples"]
    assert all(other in krein.__all__ for names, _ in told["See Also"] for other, _role in names)


def classes_to_create():
    """Yield the documented classes that users create with arguments of their own."""
    for name in (*NAMES, *UNLISTED):
        found = resolved(name)
        if not isinstance(found, type) or name in NOT_CALLED or name.startswith("krein.core"):
            continue
        if is_record(found) or issubclass(found, Exception) or found in (Dataset, Engine, Source):
            continue  # protocols, and what functions return or raise
        if inspect.signature(found).parameters:
            yield name


CREATED = sorted(classes_to_create())

NO_DEFAULT = inspect.Parameter.empty


def default_told(cls, entry):
    """Return the default that a docstring states (`default=VALUE`), evaluated in its module."""
    stated = re.search(r"default=(.+)", entry.type)
    return eval(stated[1], vars(sys.modules[cls.__module__])) if stated else NO_DEFAULT


def test_estimators_rules_and_measures_are_among_the_classes_to_create():
    created = [resolved(name) for name in CREATED]
    assert set(ESTIMATORS) <= set(created)
    rules = [r for r in map(resolved, NAMES) if isinstance(r, type) and issubclass(r, Rule)]
    measures = [measure_class(name) for name in available()]
    for cls in (*rules, *measures):
        assert cls in created or not inspect.signature(cls).parameters


@pytest.mark.parametrize("name", CREATED)
def test_parameters_are_described_in_order_with_their_defaults(name):
    cls = resolved(name)
    told, parameters = sections(cls), inspect.signature(cls).parameters
    assert [entry.name for entry in told["Parameters"]] == list(parameters)
    for entry in told["Parameters"]:
        assert entry.type, entry.name
        assert entry.desc, entry.name
        found, default = default_told(cls, entry), parameters[entry.name].default
        assert (found, type(found)) == (default, type(default)), entry.name
    assert told["Examples"]


@pytest.mark.parametrize("name", available())
def test_a_measure_says_what_it_is_and_names_what_the_reference_lists(name):
    cls = measure_class(name)
    told = sections(cls)
    assert told["Summary"]
    for names, description in told["See Also"]:
        assert description
        for other, _role in names:
            assert other in NAMES or f"{cls.__module__}.{other}" in NAMES
            assert other != cls.__name__


def test_classes_that_are_not_created_are_documented():
    for name in NOT_CALLED:
        module, _, attribute = name.rpartition(".")
        assert name in NAMES
        assert hasattr(importlib.import_module(module), attribute)
