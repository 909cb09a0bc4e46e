"""The cache of finished blocks: interrupted, damaged, shared, full or mixed up."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from krein.compare import open_new_pairs, open_pairs

from . import worker

TOTAL = 60 * 12
BLOCK = 5 * 12
WORDS = worker.WORDS
EXPECTED = np.array([[worker.compare(a, WORDS[j]) for j in worker.COLS] for a in WORDS])


def start(folder, out, *death, pause=0.0):
    command = [sys.executable, "-m", worker.__name__, str(folder), str(out), *map(str, death)]
    environment = {**os.environ, "PAUSE": str(pause), "PYTHONWARNINGS": "ignore::RuntimeWarning"}
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, env=environment)


def finish(folder, out):
    """Run to completion; return how many pairs were compared and how many were reused."""
    assert start(folder, out).wait() == 0
    with np.load(out) as result:
        np.testing.assert_array_equal(result["values"], EXPECTED)
        return tuple(int(count) for count in result["counts"])


def left_behind(folder):
    return list(Path(folder).rglob(".writing-*"))


def blocks(folder):
    return sorted((Path(folder) / "blocks").glob("*.npy"))


def run(folder, words=WORDS, measure="levenshtein", **kwargs):
    pairs = open_pairs(measure, words, cache=folder, **kwargs)
    pairs.counter.compared = 0
    pairs.block_rows = lambda n_cols: 5
    values = np.vstack(list(pairs.map_columns(lambda rows, values: values, worker.COLS)))
    return values, pairs


def test_a_second_run_compares_nothing(tmp_path):
    first, pairs = run(tmp_path / "new" / "folder")
    assert (pairs.evaluations, pairs.counter.reused) == (TOTAL, 0)
    again, pairs = run(tmp_path / "new" / "folder", n_jobs=2)
    assert (pairs.evaluations, pairs.counter.reused) == (0, TOTAL)
    np.testing.assert_array_equal(first, again)
    diagonal = pairs.diagonal(np.arange(9))
    assert pairs.evaluations == 9
    np.testing.assert_array_equal(pairs.diagonal(np.arange(9)), diagonal)
    assert pairs.evaluations == 9


@pytest.mark.slow
def test_killed_before_a_disk_operation(tmp_path):
    """Processes are killed at different operations; finished blocks are never lost."""
    folder, out = tmp_path / "cache", tmp_path / "out.npz"
    kept = 0
    for death in (1, 2, 3, 4, 5, 6, 3, 9):
        assert start(folder, out, death).wait() == -signal.SIGKILL
        assert len(blocks(folder)) >= kept
        kept = len(blocks(folder))
    assert kept > 2
    evaluated, reused = finish(folder, out)
    assert (evaluated, reused) == (TOTAL - kept * BLOCK, kept * BLOCK)
    assert left_behind(folder) == []
    assert finish(folder, out) == (0, TOTAL)


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    folder, out = tmp_path / "cache", tmp_path / "out.npz"
    for _ in range(3):
        process = start(folder, out, pause=0.002)
        before = len(blocks(folder))
        while process.poll() is None and len(blocks(folder)) == before:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.wait()
    kept = len(blocks(folder))
    assert kept >= 3
    assert finish(folder, out) == (TOTAL - kept * BLOCK, kept * BLOCK)


def test_two_processes_on_one_folder(tmp_path):
    folder = tmp_path / "cache"
    outs = [tmp_path / "a.npz", tmp_path / "b.npz"]
    processes = [start(folder, out, pause=0.0005) for out in outs]
    for process, out in zip(processes, outs, strict=True):
        assert process.wait() == 0
        with np.load(out) as result:
            np.testing.assert_array_equal(result["values"], EXPECTED)
    assert len(blocks(folder)) == TOTAL // BLOCK
    assert left_behind(folder) == []
    assert finish(folder, outs[0]) == (0, TOTAL)


def test_a_damaged_block_is_compared_again(tmp_path):
    expected, _ = run(tmp_path)
    one, two, three = blocks(tmp_path)[:3]
    contents = bytearray(one.read_bytes())
    contents[140] ^= 1
    one.write_bytes(contents)
    two.write_bytes(two.read_bytes()[:-7])
    three.write_bytes(b"")
    values, pairs = run(tmp_path)
    np.testing.assert_array_equal(values, expected)
    assert (pairs.evaluations, pairs.counter.reused) == (3 * BLOCK, TOTAL - 3 * BLOCK)
    assert run(tmp_path)[1].evaluations == 0


def test_another_measure_is_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(ValueError, match=r"blocks of levenshtein\(normalize=False\), not of lcs"):
        run(tmp_path, measure="lcs")
    with pytest.raises(ValueError, match=r"not of levenshtein\(normalize=True\)"):
        run(tmp_path, measure_params={"normalize": True})
    assert run(tmp_path)[1].evaluations == 0


def test_blocks_are_never_served_to_other_objects(tmp_path):
    run(tmp_path)
    others = [*WORDS[:17], "other", *WORDS[18:]]
    values, pairs = run(tmp_path, words=others)
    # of the 12 blocks of 5 rows, only that of row 17 has changed
    assert (pairs.evaluations, pairs.counter.reused) == (BLOCK, TOTAL - BLOCK)
    np.testing.assert_array_equal(values, run(None, words=others)[0])
    backwards = WORDS[::-1]
    values, pairs = run(tmp_path, words=backwards)
    assert pairs.counter.reused == 0
    np.testing.assert_array_equal(values, run(None, words=backwards)[0])


def test_blocks_without_their_manifest_are_not_served_to_another_measure(tmp_path):
    run(tmp_path)
    (tmp_path / "manifest.json").unlink()
    values, pairs = run(tmp_path, measure="lcs")
    assert pairs.counter.reused == 0
    np.testing.assert_array_equal(values, run(None, measure="lcs")[0])


def test_one_folder_serves_folds_refits_and_predictions(tmp_path):
    folds = [np.flatnonzero(np.arange(60) % 3 != k) for k in range(3)]
    spent = []
    for _ in range(2):
        for fold in folds:
            words = [WORDS[i] for i in fold]
            pairs = open_pairs("levenshtein", words, cache=tmp_path)
            core = pairs.block(np.arange(8), np.arange(8))
            landmarks = words[:8]
            new = open_new_pairs("levenshtein", WORDS, landmarks, cache=tmp_path)
            np.testing.assert_array_equal(new.block(fold[:8], np.arange(8)), core)
            spent.append(pairs.evaluations + new.evaluations)
    assert min(spent[:3]) > 0
    assert spent[3:] == [0, 0, 0]


def test_another_function_is_refused(tmp_path):
    run(tmp_path, measure=worker.compare)
    with pytest.raises(ValueError, match="name another folder"):
        run(tmp_path, measure=lambda a, b: worker.compare(a, b))
    with pytest.raises(ValueError, match="symmetrized"):
        run(tmp_path, measure=worker.compare, symmetrize=True)


def test_subsets_and_new_objects_share_the_folder(tmp_path):
    run(tmp_path)
    part = open_pairs("levenshtein", WORDS[10:40], cache=tmp_path)
    part.block(np.arange(30), np.arange(4))
    landmarks = [WORDS[3], WORDS[50]]
    for evaluated in (8, 0):
        pairs = open_new_pairs("levenshtein", ["new", "ones", "x", ""], landmarks, cache=tmp_path)
        pairs.block(np.arange(4), np.arange(2))
        assert pairs.evaluations == evaluated


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match=r"not a cache folder \(it contains 'thesis.tex'\)"):
        run(tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        run(file / "below")


def test_a_damaged_manifest_or_another_format_is_reported(tmp_path):
    run(tmp_path)
    manifest = tmp_path / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(good[:20])
    with pytest.raises(ValueError, match="cannot be read"):
        run(tmp_path)
    manifest.write_text(json.dumps({**json.loads(good), "format": 99}))
    with pytest.raises(ValueError, match="has format 99"):
        run(tmp_path)


def test_a_full_disk_is_reported_and_leaves_a_usable_folder(tmp_path, monkeypatch):
    real, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="the disk is full; finished blocks are kept") as caught:
        run(tmp_path)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert left_behind(tmp_path) == []
    kept = len(blocks(tmp_path))
    assert kept >= 3
    assert run(tmp_path)[1].counter.reused == kept * BLOCK


def test_a_function_is_tested_for_symmetry_once(tmp_path):
    pairs = open_pairs(worker.compare, WORDS, cache=tmp_path)
    assert 0 < pairs.evaluations <= 16
    assert open_pairs(worker.compare, WORDS, cache=tmp_path).evaluations == 0
    with pytest.raises(ValueError, match="not symmetric"):
        open_pairs(lambda a, b: float(a < b), WORDS, cache=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_finished_blocks_outlive_a_function_that_fails(tmp_path):
    trouble = tmp_path / "trouble"  # a file: a changed variable would make it another function
    trouble.touch()

    def fragile(a, b):
        if trouble.exists() and (a, b) == (WORDS[33], WORDS[0]):
            raise ValueError("boom")
        return worker.compare(a, b)

    folder = tmp_path / "cache"
    with pytest.raises(ValueError, match="row object 33 and column object 0"):
        run(folder, measure=fragile)
    assert len(blocks(folder)) == 6
    trouble.unlink()
    values, pairs = run(folder, measure=fragile)
    np.testing.assert_array_equal(values, EXPECTED)
    assert pairs.counter.reused == 6 * BLOCK


def test_symmetric_blocks_are_kept_too(tmp_path):
    everything = np.arange(60)
    first = open_pairs("levenshtein", WORDS, cache=tmp_path)
    K = first.block(everything, everything)
    again = open_pairs("levenshtein", WORDS, cache=tmp_path)
    np.testing.assert_array_equal(again.block(everything, everything), K)
    assert again.evaluations == 0
    assert again.counter.reused == first.evaluations


@pytest.mark.parametrize("measure", ["levenshtein", worker.compare])
def test_cross_validation_on_one_folder(measure, tmp_path):
    from sklearn.model_selection import cross_val_score

    from krein import IKFD

    y = [word > "c" for word in WORDS]
    scores = [
        cross_val_score(IKFD(measure=measure, cache=cache, random_state=0), WORDS, y, cv=3)
        for cache in (None, tmp_path, tmp_path)
    ]
    np.testing.assert_array_equal(scores[1], scores[0])
    np.testing.assert_array_equal(scores[2], scores[0])
