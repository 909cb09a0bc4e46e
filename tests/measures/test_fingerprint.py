"""Fingerprints are equal for equal contents, in any process, and different otherwise."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from functools import lru_cache, partial, update_wrapper, wraps
from types import SimpleNamespace

import numpy as np
import pytest

from krein.compare import open_pairs
from krein.compare.cache import object_digests
from krein.measures import get_measure
from krein.measures.fingerprints import fingerprint

Pair = namedtuple("Pair", "a b")


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Marked(set):
    __slots__ = ("mark",)

    def __init__(self, items, mark):
        super().__init__(items)
        self.mark = mark


class Quantity(np.ndarray):
    """Numbers with a unit."""

    def __new__(cls, numbers, unit):
        found = np.asarray(numbers).view(cls)
        found.unit = unit
        return found

    def __array_finalize__(self, source):
        self.unit = getattr(source, "unit", None)

    def __reduce__(self):
        return (Quantity, (np.asarray(self), self.unit))


class Node:
    def __init__(self, name):
        self.name, self.near = name, []


@pytest.mark.parametrize(
    "objects",
    [
        [1, 1.0, True, "1", b"1", [1], (1, 2), None, {"a": 1}, {1, 2}, np.array([1.0])],
        np.random.default_rng(0).normal(size=(5, 3)),
        [np.zeros(3), np.zeros((3, 1)), np.zeros(3, dtype=np.float32), np.ones(3)],
        ["ab", "a", "", "abc"],
        [["a", "b"], ["ab"], [["a"], "b"], []],
        [Slotted(1), Slotted(2), SimpleNamespace(value=1), SimpleNamespace(value=2), Slotted({1})],
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), Decimal("1.0"), Decimal("1.1")],
        [re.compile("a"), re.compile("b"), range(3), range(4), Pair(1, 2), (1, 2), Pair(2, 1)],
        [Counter("aab"), Counter("ab"), defaultdict(int, a=1), defaultdict(float, a=1), {"a": 1}],
        [OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), frozenset("ab"), {"a", "b"}],
        [np.ma.masked_array([1.0, 2.0], [m, False]) for m in (False, True)],
        [
            Quantity([1.0], "m"),
            Quantity([1.0], "s"),
            np.array([1.0]),
            Marked("a", 1),
            Marked("a", 2),
        ],
        [np.array(["2020", "2021"], "M8[Y]"), np.array(["2020", "2022"], "M8[Y]")],
        [
            np.array([(1, 2)], [("a", int), ("b", int)]),
            np.array([(1, 2)], [("b", int), ("a", int)]),
        ],
    ],
)
def test_fingerprints_depend_only_on_contents(objects):
    digests = object_digests(objects)
    assert len({bytes(d) for d in digests}) == len(objects)
    copies = [np.array(o, subok=True) if isinstance(o, np.ndarray) else o for o in objects]
    np.testing.assert_array_equal(object_digests(copies), digests)


def test_the_order_of_a_mapping_does_not_count():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_sharing_does_not_count():
    one = Slotted([1, 2])
    assert fingerprint([one, one]) == fingerprint([Slotted([1, 2]), Slotted([1, 2])])


def test_cyclic_objects_are_identified_by_their_contents():
    def ring(*names):
        nodes = [Node(name) for name in names]
        for i, node in enumerate(nodes):
            node.near = [nodes[i - 1], nodes[(i + 1) % len(nodes)]]
        return nodes[0]

    assert fingerprint(ring(*"abcd")) == fingerprint(ring(*"abcd"))
    assert fingerprint(ring(*"abcd")) != fingerprint(ring(*"abdc"))
    crowd = [Node(i) for i in range(60)]  # with far too many simple paths to follow
    for node in crowd:
        node.near = crowd
    assert fingerprint(crowd[0]) != fingerprint(crowd[1])


def test_fingerprints_are_the_same_in_any_process():
    code = """
from types import SimpleNamespace
from krein.compare.cache import object_digests
from krein.measures import get_measure

class Slotted:
    __slots__ = ("letters",)

class Letters(set):
    pass

class Cal:
    def __init__(self):
        self.skip = {"a", "b", "c", "d"}
    def __call__(self, a, b):
        return a * b

slotted = Slotted()
slotted.letters = frozenset("abcdefgh")
letters = set("abcdefgh")
print(object_digests([letters, SimpleNamespace(letters=letters), slotted, Letters("abcdefgh")]))
for function in (Cal(), lambda a, b: float(a in {"a", "b", "c"} and b in letters)):
    print(get_measure(function).params()["function"])
"""
    told = {
        subprocess.check_output(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in "123"
    }
    assert len(told) == 1


@pytest.mark.parametrize("item", [threading.Lock(), (i for i in "ab"), {"a": threading.Lock()}])
def test_objects_without_a_fingerprint_are_refused(item):
    with pytest.raises(TypeError, match="identifies objects by their contents"):
        object_digests([item])


def weighted(a, b, w):
    return float(w[0] * a * b)


def doubled(function):
    @wraps(function)
    def twice(a, b):
        return 2 * function(a, b)

    return twice


class Cal:
    def __init__(self, w):
        self.w = w

    def __call__(self, a, b):
        return self.w * a * b

    def compare(self, a, b):
        return self.w + a + b


class Scaled:
    """A decorator with a parameter."""

    def __init__(self, function, w):
        update_wrapper(self, function)
        self.w = w

    def __call__(self, a, b):
        return self.w * self.__wrapped__(a, b)


class Other(Cal):
    def __call__(self, a, b):
        return self.w - a * b


def closing(w):
    return lambda a, b: w * a * b


def defaulting(w):
    def default(a, b, *, w=w):
        return w * a * b

    return default


def product(a, b):
    return a * b


LONG, LONGER = np.arange(3000.0), np.arange(3000.0)
LONGER[1500] = -1.0
PAIRS = [
    (partial(weighted, w=LONG), partial(weighted, w=LONGER)),
    (partial(partial(weighted, w=LONG)), partial(partial(weighted, w=LONGER))),
    (Cal(1.0), Cal(5.0)),
    (Cal(1.0), Other(1.0)),
    (Cal(1.0).compare, Cal(2.0).compare),
    (lambda a, b: a * b, lambda a, b: a + b),
    (lambda a, b: 2 * a * b, lambda a, b: 3 * a * b),
    (lambda a, b: a.real * b.real, lambda a, b: a.imag * b.imag),
    (lambda a, b: sum(2 * x for x in (a, b)), lambda a, b: sum(3 * x for x in (a, b))),
    (lambda a, b, w=1.0: w * a * b, lambda a, b, w=2.0: w * a * b),
    (closing(1.0), closing(2.0)),
    (closing(LONG), closing(LONGER)),
    (defaulting(1.0), defaulting(2.0)),
    (doubled(product), product),
    (Scaled(product, 1.0), Scaled(product, 2.0)),
    (Scaled(product, 1.0), Scaled(closing(1.0), 1.0)),
    (lru_cache(product), lru_cache(closing(1.0))),
    (np.add, np.multiply),
    (max, min),
]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=range(len(PAIRS)))
def test_functions_that_differ_need_separate_folders(one, other, tmp_path):
    first, second = (get_measure(function).params() for function in (one, other))
    assert first != second
    assert get_measure(one).params() == first
    open_pairs(get_measure(one), [1.0, 2.0], cache=tmp_path, symmetrize=True)
    with pytest.raises(ValueError, match="name another folder"):
        open_pairs(get_measure(other), [1.0, 2.0], cache=tmp_path, symmetrize=True)


def test_the_same_function_made_twice_has_the_same_fingerprint():
    for make in (closing, defaulting, Cal, lambda w: partial(weighted, w=w)):
        told = [get_measure(make(w)).params() for w in (LONG, LONG.copy())]
        assert told[0] == told[1]


def test_a_recursive_function_has_a_fingerprint():
    def deep(a, b):
        return a * b if a < 2 else deep(a / 2, b)

    assert get_measure(deep).params() == get_measure(deep).params()


def test_a_compiled_function_is_identified_by_its_source():
    import numba

    one, again, other = (numba.njit(f) for f in (product, product, closing(2.0)))
    assert get_measure(one).params() == get_measure(again).params()
    assert get_measure(one).params() != get_measure(other).params()


def test_a_function_needs_a_fingerprint_only_for_a_cache(tmp_path):
    lock = threading.Lock()

    def locked(a, b):
        with lock:
            return a * b

    assert len(open_pairs(locked, [1.0, 2.0])) == 2
    with pytest.raises(TypeError, match=r"function .*locked refers to something .*lock"):
        open_pairs(locked, [1.0, 2.0], cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
