"""Forge every field of models of all kinds of objects; `make fuzz` tries many more ways."""

import os
import signal

import numpy as np
import pytest

from . import forger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

EVERY = 8
"""Every eighth way to forge a field is tried, and as many in the slow tests; `make fuzz` tries all,
in models of every kind."""


def fields(kind):
    """Return the fields of a model that no kind before has."""
    before = set()
    for other in forger.KINDS[: forger.KINDS.index(kind)]:
        before |= {(p.owner, p.field) for p, _ in forger.places(forger.kind_of(other).tree)}
    found = {}
    for place, _ in forger.places(forger.kind_of(kind).tree):
        if (place.owner, place.field) not in before:
            found.setdefault((place.owner, place.field), place)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, EVERY // 2])
@pytest.mark.parametrize("kind", forger.KINDS)
def test_forged_models_are_refused_or_give_valid_answers(kind, first):
    cases = [
        case
        for i, place in enumerate(fields(kind), first)
        for case in forger.attack_field(kind, place, EVERY, i)
    ]
    wrong = [str(case) for case in cases if case.outcome not in forger.ALLOWED]
    assert not wrong, "\n".join(wrong)


def test_every_field_that_a_model_may_have_is_attacked():
    """The fields come from the annotations: a new one needs a model that has it."""
    attacked = {
        (place.owner, place.field)
        for kind in forger.KINDS
        for place, _ in forger.places(forger.kind_of(kind).tree)
    }
    assert forger.declared() <= attacked, sorted(forger.declared() - attacked)


def test_forgeries_that_break_a_model_are_noticed(monkeypatch):
    """So that the attack can fail: by a wrong answer, an error, memory, time or a signal."""
    tree = {"fitted": {"x": 1.0}, "estimator": "none"}
    monkeypatch.setattr(forger, "kind_of", lambda name: forger.Kind(tree, None))
    monkeypatch.setattr(forger, "SECONDS", 1)
    place = forger.Place(("x",), forger.ESTIMATOR, "x")

    def outcome(attack):
        monkeypatch.setattr("krein.model.file.from_tree", lambda tree: tree)
        monkeypatch.setattr(forger, "answers", lambda model, new: attack())
        return forger.attack_field("made", place, 100, 0)[0].outcome

    def endless():
        while True:
            pass

    assert outcome(lambda: None) == "answers"
    assert outcome(lambda: "wrong") == "loaded, but wrong"
    assert outcome(lambda: 1 / 0) == "loaded, but ZeroDivisionError: division by zero"
    assert outcome(lambda: os.kill(os.getpid(), signal.SIGTERM)) == f"signal {signal.SIGTERM:d}"
    assert outcome(endless) == "too slow"
    if forger._address_space() is not None:
        assert outcome(lambda: np.ones(forger.MEMORY) and None) == "memory"
