"""Run the command on a few hundred damaged files; `make fuzz` tries many more."""

import os
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import krein
import krein.io
from krein import IKFD
from krein.io.modelfile import FORMAT, read_versions

from . import damage, fuzz, guided, kills
from .seeds import make_seeds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return make_seeds(tmp_path_factory.mktemp("good"))


def test_the_good_files_are_read(seeds, tmp_path):
    fuzz.warm_up()
    for seed in seeds:
        for command in seed.commands:
            case = damage.Case(0, seed.name, seed.content, command, "nothing")
            outcome = fuzz.run(case, tmp_path)
            assert outcome.kind == "read", (seed.name, command, outcome)


def test_damage_depends_on_seed_and_number_alone(seeds):
    some = list(damage.cases(seeds, 1, 40, 5))
    assert some == list(damage.cases(seeds, 1, 0, 45))[40:]
    assert some != list(damage.cases(seeds, 2, 40, 5))


def test_damaged_files_are_refused_in_one_line_or_read(tmp_path):
    counts = fuzz.fuzz(150, seed=1, keep=tmp_path, every=25)
    kept = "\n".join(path.read_text() for path in tmp_path.glob("*.txt"))
    outcomes = Counter()
    for key, number in counts.items():
        outcomes[key.partition("|")[0]] += number
    assert set(outcomes) <= set(fuzz.ALLOWED), f"{outcomes}\n{kept}"
    assert outcomes["refused"] > 75


def test_good_files_are_read_from_named_pipes(seeds, tmp_path):
    """The same text gives the same output; what is read out of order is refused in one line."""
    for seed in seeds:
        command, found = seed.commands[0], []
        for fifo in (False, True):
            case = damage.Case(0, seed.name, seed.content, command, "nothing", fifo)
            outcome = fuzz.run(case, tmp_path)
            lines = (tmp_path / "printed").read_bytes().splitlines()
            found.append((outcome.kind, [line for line in lines if not line.startswith(b"time")]))
            (tmp_path / seed.name).unlink()
        text = Path(seed.name.removesuffix(".gz")).suffix not in (
            ".npy", ".npz", ".mat", ".parquet", ".krein"
        )  # fmt: skip
        if text:
            assert found[1] == found[0], seed.name
        else:
            assert found[1][0] == "refused", seed.name


def test_forged_headers_pass_the_checksums(seeds, tmp_path):
    """So that it is the contents of a header that are checked, and not its seal."""
    path, changed = tmp_path / "m.krein", Counter()
    models = [seed for seed in seeds if seed.repack == "model"]
    for case in islice(damage.forgeries(models), 0, None, 31):
        path.write_bytes(case.content)
        assert read_versions(path)[1] == FORMAT, case.how
        changed[case.how.rpartition(" ")[2]] += 1
    assert {"0", "-1", "nan", str(2**31), str(10**18), "twice", "emptied"} <= set(changed)


def test_the_guided_search_starts_from_files_that_are_read(seeds, tmp_path, monkeypatch):
    read = Counter()
    for name, module in (("load", krein), ("open_source", krein.io)):
        plain = getattr(module, name)

        def counted(*args, plain=plain):
            found = plain(*args)
            read[plain.__name__] += 1
            return found

        monkeypatch.setattr(module, name, counted)
    for i, seed in enumerate(seeds):
        for how, content in enumerate(guided.contents(seed)):
            guided.read(bytes([i, how]) + content, seeds, tmp_path)
    models = sum(seed.repack == "model" for seed in seeds)
    assert read["load"] == 2 * models
    assert read["open_source"] > len(seeds)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (0, "", "read"),
        (1 << 8, "krein: error: no\n", "refused"),
        (1 << 8, "", "not one line"),
        (1 << 8, "krein: error: a\nkrein: error: b\n", "not one line"),
        (1 << 8, f"krein: error: {'x' * 300}\n", "overlong line"),
        (1 << 8, "krein: error: \x1b[31m\n", "control characters"),
        (1 << 8, "Traceback (most recent call last):\n", "traceback"),
        (1 << 8, "krein: error: E: (--debug shows where)\n", "traceback"),
        (99 << 8, "", "exit 99"),
        (11, "", "signal 11"),
    ],
)
def test_outcomes_are_told_apart(status, said, kind):
    assert fuzz._kind(status, said, b"") == kind


def test_killed_runs_are_resumed_to_the_same_arrays():
    kills.kill(3, n=120)  # raises an AssertionError if a model, table, count or file is wrong


def test_models_that_differ_in_one_bit_are_told_apart(tmp_path):
    clf = IKFD("levenshtein").fit(["haus", "maus", "house", "mouse"] * 3, [0, 0, 1, 1] * 3)
    clf.save(tmp_path / "a.krein")
    clf.comparisons_to_fit_ += 1
    clf.save(tmp_path / "b.krein")
    assert kills.same_model(tmp_path / "b.krein", tmp_path / "a.krein")
    clf.dual_coef_[0, 0] = np.nextafter(clf.dual_coef_[0, 0], np.inf)
    clf.save(tmp_path / "b.krein")
    assert not kills.same_model(tmp_path / "b.krein", tmp_path / "a.krein")


def test_half_written_files_are_detected(tmp_path):
    (tmp_path / ".krein-here-1-0.part").touch()
    (Path(tmp_path) / "cache").mkdir()
    (tmp_path / "cache" / ".writing-here-1-0").touch()
    assert len(kills.left_behind(tmp_path)) == 2
