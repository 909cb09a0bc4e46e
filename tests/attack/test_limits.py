"""Decompression bombs, endless lines, masked arrays, and control characters in messages."""

import gzip
import io
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.io import loadmat, savemat

from krein import IKFD, KreinClassifier
from krein.cli import krein
from krein.cli.messages import one_line
from krein.compare.cache import BlockCache, CacheError, _machine, remove_stale, temporary_path
from krein.io import DataError, open_source
from krein.io.arrays import open_archive
from krein.io.writing import atomic_write
from krein.measures import get_measure

MIB = 2**20


def long_line(folder):
    (folder / "a.csv").write_bytes(b"name,word\nx," + b"a" * 3000)
    return folder / "a.csv"


def long_record(folder):
    (folder / "a.fasta").write_bytes(b">x\n" + b"ACGT\n" * 800)
    return folder / "a.fasta"


def long_cell(folder):
    (folder / "b.csv").write_bytes(b'name,word\nx,"' + b"a\n" * 2000 + b'"\n')
    return folder / "b.csv"


def many_cells(folder):
    (folder / "c.csv").write_bytes(b"a,b\n" + b"1," * 900 + b"\n")
    return folder / "c.csv"


def many_values(folder):
    (folder / "a.ts").write_bytes(b"@univariate true\n@data\n" + b"1," * 900 + b"1\n")
    return folder / "a.ts"


@pytest.mark.parametrize(
    "make", [long_line, long_record, long_cell, many_cells, many_values], ids=lambda f: f.__name__
)
def test_oversized_input_is_refused_and_the_limit_can_be_raised(make, tmp_path):
    path = make(tmp_path)
    with pytest.raises(DataError, match=r"if this is intended, raise max_size="):
        open_source(path, max_size=2000).read()
    found = CliRunner().invoke(krein, ["inspect", str(path), "--max-size", "2000"])
    assert found.exit_code == 1
    assert found.stderr.count("\n") == 1
    assert "raise --max-size" in found.stderr
    try:
        open_source(path).read()
    except DataError as error:
        assert "max_size" not in str(error)  # noqa: PT017 - some have other errors


def test_features_of_objects_that_are_not_compared_take_no_memory(tmp_path):
    """A line of a million letters is far longer than all words, and has as many n-grams."""
    words = ["haus", "house", "maus", "mouse", "laus", "louse"] * 4
    KreinClassifier("levenshtein").fit(words, ["de", "en"] * 12).save(tmp_path / "m.krein")
    letters = 10**6
    (tmp_path / "new.txt.gz").write_bytes(gzip.compress(b"haus\n" + b"ab" * (letters // 2)))
    command = ["predict", str(tmp_path / "m.krein"), str(tmp_path / "new.txt.gz")]
    CliRunner().invoke(krein, [*command[:2], str(tmp_path / "none.txt")])  # imports
    tracemalloc.start()
    found = CliRunner().invoke(krein, command)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.exit_code == 0, found.stderr
    status = [line.split(",")[5] for line in found.stdout.splitlines()]
    assert status[2] == "novel"
    assert len(status) == 3
    assert peak < 50 * letters


def parquet_cell(content, rows, mib):
    """Return a column whose last cell is large; the others have one number or letter."""
    import pyarrow as pa

    if content == "text":
        return pa.array(["a"] * (rows - 1) + ["a" * (mib * MIB)])
    numbers = pa.array(np.zeros(mib * MIB // 8))
    if content == "lists of lists":
        numbers = pa.ListArray.from_arrays(pa.array([*range(rows), len(numbers)]), numbers)
        return pa.ListArray.from_arrays(pa.array([*range(rows), rows]), numbers)
    return pa.ListArray.from_arrays(pa.array([*range(rows), len(numbers)]), numbers)


@pytest.mark.parametrize(
    ("content", "mib", "limit"),
    [("text", 40, None), ("numbers", 12, 4 * MIB), ("lists of lists", 12, 4 * MIB)],
)
@pytest.mark.parametrize("rows", [1, 9])
def test_sizes_of_parquet_cells_are_checked_before_their_values(
    content, mib, limit, rows, tmp_path
):
    """A cell of repeated values takes a few hundred bytes in the file, whatever its length."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path, names = tmp_path / "a.parquet", [str(i) for i in range(rows)]
    table = pa.table({"name": names, "object": parquet_cell(content, rows, mib)})
    parquet.write_table(table, path, compression="gzip", write_statistics=False)
    source = open_source(path, objects="object", names="name", max_size=limit)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"a\.parquet, .*row.* would take .* raise max_size"):
        source.read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert os.path.getsize(path) < 64_000
    assert peak < 8 * MIB
    larger = open_source(path, objects="object", names="name", max_size=256 * MIB)
    assert len(larger.read().objects) == rows


def test_large_rows_of_parquet_are_read_in_small_batches(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    series = [np.arange(1.0 + 100 * i) for i in range(60)]
    parquet.write_table(pa.table({"series": series}), tmp_path / "a.parquet")
    whole = open_source(tmp_path / "a.parquet").read().objects
    rows, batches = [], parquet.ParquetFile.iter_batches

    def counted(file, size, **options):
        rows.append(size)
        return batches(file, size, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    small = open_source(tmp_path / "a.parquet", max_size=100_000).read().objects
    for a, b in zip(small, whole, strict=True):
        np.testing.assert_array_equal(a, b)
    assert rows
    assert max(rows) <= 4  # of about 24 kB each


def claimed_array(folder):
    """Write an array of 1 MiB whose header claims 512 MiB."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**16, 2**10)}
    )
    (folder / "a.npy.gz").write_bytes(gzip.compress(header.getvalue() + bytes(MIB)))
    return folder / "a.npy.gz"


def packed_array(folder):
    np.savez_compressed(folder / "a.npz", X=np.zeros((40, MIB), dtype=np.uint8))
    return folder / "a.npz"


def packed_line(folder):
    (folder / "a.fasta.gz").write_bytes(gzip.compress(b">x\n" + b"A" * (40 * MIB), 1))
    return folder / "a.fasta.gz"


@pytest.mark.parametrize(
    ("make", "limit"),
    [(claimed_array, None), (packed_array, MIB), (packed_line, MIB)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_compressed_files_do_not_use_the_memory_they_claim(make, limit, tmp_path):
    path = make(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="raise max_size="):
            open_source(path, max_size=limit).read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * MIB  # imports included; the contents take 40 MiB or more


@pytest.mark.parametrize(
    "how", [{"do_compression": True}, {"do_compression": False}, {"format": "4"}], ids=str
)
def test_matlab_files_are_read_as_scipy_reads_them(how, tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "X": rng.normal(size=(5, 3)), "whole": np.arange(12, dtype=np.int16).reshape(3, 4),
        "one": np.array([[2.5]]), "text": "hällo" if "format" not in how else "hello",
    }  # fmt: skip
    if "format" not in how:
        arrays |= {
            "cube": rng.normal(size=(2, 3, 4)), "flags": np.array([[True, False]]),
            "cells": np.array(["a", "bc", "ä"], dtype=object), "struct": {"a": 1},
            "single": rng.normal(size=(2, 2)).astype(np.float32), "empty": np.empty((0, 3)),
        }  # fmt: skip
    savemat(tmp_path / "a.mat", arrays, **how)
    truth = loadmat(tmp_path / "a.mat")
    with open_archive(str(tmp_path / "a.mat"), "mat") as (headers, read):
        found = dict(zip(headers, read(list(headers)), strict=True))
    assert set(found) == set(arrays) - {"struct"}
    for name, array in found.items():
        if name == "cells":
            assert array.tolist() == ["a", "bc", "ä"]
        else:
            np.testing.assert_array_equal(array, truth[name])
            assert array.dtype.kind == truth[name].dtype.kind


def test_messages_are_one_printable_line():
    assert one_line("a\x1b[31m\nb\x07") == "a\\x1b[31m b\\x07"
    assert len(one_line("x" * 5000 + " the way out")) < 300
    assert one_line("x" * 5000 + " the way out").endswith("the way out")


def test_a_file_may_be_named_like_a_parameter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels=None.csv").write_text("first,second,third\na,b,c\nd,e,f\n")
    found = CliRunner().invoke(krein, ["fit", "labels=None.csv", "-o", "m.krein"])
    assert "labels=None.csv: which column contains the objects?" in found.stderr
    assert "use --objects COLUMN (and --labels, --names)" in found.stderr
    with pytest.raises(DataError, match=r"use objects=COLUMN \(and labels=, names=\)"):
        open_source("labels=None.csv")


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "a.ts").write_text("@classLabel true a\n@data\n1,2:\x1b]0;title\x07\n")
    found = CliRunner().invoke(krein, ["inspect", str(tmp_path / "a.ts")])
    assert found.exit_code == 1
    assert found.stderr.strip().isprintable()
    missing = CliRunner().invoke(krein, ["inspect", "no\x1b[31msuch.csv"])
    assert missing.stderr.strip().isprintable()


def test_a_damaged_block_of_a_cache_is_replaced(tmp_path):
    import hashlib

    words = [f"{w}{i}" for i in range(20) for w in ("haus", "house")]
    first = IKFD("levenshtein", landmarks="all", cache=tmp_path).fit(words, [0, 1] * 20)
    blocks = list(tmp_path.glob("blocks/*.npy"))
    forged = io.BytesIO()
    np.save(forged, np.array([{}], dtype=object), allow_pickle=True)
    body = forged.getvalue()
    for block in blocks:
        block.write_bytes(body + hashlib.blake2b(body, digest_size=16).digest())
    again = IKFD("levenshtein", landmarks="all", cache=tmp_path).fit(words, [0, 1] * 20)
    np.testing.assert_array_equal(again.dual_coef_, first.dual_coef_)
    assert again.comparisons_reused_ == 0
    third = IKFD("levenshtein", landmarks="all", cache=tmp_path).fit(words, [0, 1] * 20)
    assert third.comparisons_to_fit_ == 0


@pytest.mark.parametrize("claimed", [("<U0", (10**8,)), ("<f8", (10**8,)), ("|O", (1,))])
def test_a_forged_block_does_not_take_the_memory_it_claims(claimed, tmp_path):
    import hashlib

    kind, shape = claimed
    header = io.BytesIO()
    about = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, about)
    cache = BlockCache(tmp_path, get_measure("levenshtein"))
    body = header.getvalue()
    forged = body + hashlib.blake2b(body, digest_size=16).digest()
    (tmp_path / "blocks" / "key.npy").write_bytes(forged)
    tracemalloc.start()
    try:
        assert cache.load("key", (2, 3)) is None
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    cache.store("key", np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(cache.load("key", (2, 3)), np.arange(6.0).reshape(2, 3))


def test_cache_errors_do_not_blame_the_data(tmp_path):
    (tmp_path / "words.csv").write_text("word,language\nhaus,de\nmaus,de\nhouse,en\nmouse,en\n")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "manifest.json").write_text("{")
    command = ["fit", str(tmp_path / "words.csv"), "--objects", "word", "--labels", "language",
               "--cache", str(tmp_path / "cache"), "-o", str(tmp_path / "m")]  # fmt: skip
    found = CliRunner().invoke(krein, command)
    assert found.exit_code == 1
    assert "words.csv" not in found.stderr
    assert "manifest.json cannot be read" in found.stderr


def test_a_damaged_manifest_is_named(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "manifest.json").write_text("[" * 100_000)
    clf = IKFD("levenshtein", landmarks="all", cache=tmp_path / "cache")
    with pytest.raises(CacheError, match=r"manifest\.json cannot be read"):
        clf.fit(["haus", "maus", "house", "mouse"], [0, 0, 1, 1])


def test_files_left_by_a_dead_process_are_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host = _machine()
    stale = tmp_path / f".krein-{host}-{ended.pid}-0.part"
    others = [
        tmp_path / f".krein-{host}-{os.getppid()}-0.part",  # still running
        tmp_path / f".krein-elsewhere-{ended.pid}-0.part",
        tmp_path / ".krein-notes.part",
    ]
    for path in (stale, *others):
        path.touch()
    with atomic_write(tmp_path / "file") as file:
        file.write(b"x")
    assert not stale.exists()
    assert all(path.exists() for path in others)
    assert Path(tmp_path / "file").read_bytes() == b"x"


@pytest.mark.skipif(not os.path.exists("/proc/self/ns/pid"), reason="needs Linux")
@pytest.mark.parametrize("where", ["a container", "a machine"])
def test_files_in_progress_elsewhere_are_kept_even_under_the_same_host_name(
    where, tmp_path, monkeypatch
):
    """Containers may share a folder and a host name, but each has its own process 7."""
    read, readlink = Path.read_text, os.readlink

    def elsewhere(path, *args):
        machine = path.name in ("machine-id", "boot_id")
        return "another" if machine and where == "a machine" else read(path, *args)

    def other_namespace(path, *args, **options):
        if str(path) == "/proc/self/ns/pid" and where == "a container":
            return "pid:[4026539999]"
        return readlink(path, *args, **options)

    monkeypatch.setattr(os, "getpid", lambda: 4_194_305)  # more than Linux has: it never runs
    ours = temporary_path(tmp_path, ".writing-")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", elsewhere)
        patched.setattr(os, "readlink", other_namespace)
        theirs = temporary_path(tmp_path, ".writing-")
    for path in (ours, theirs):
        path.touch()
    remove_stale(tmp_path, ".writing-")
    assert (ours.exists(), theirs.exists()) == (False, True)


def test_every_promise_names_tests_that_exist():
    """docs/security.md: each promise is a row of the table, whose tests hold it."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "security.md").read_text("utf-8")
    promised = page.partition("## What is promised")[2].partition("## What is not promised")[0]
    promises = re.findall(r"^- \*\*(.+?)\.?\*\*", promised, re.MULTILINE)
    rows = dict(re.findall(r"^\| (.+?) \| (`tests/.+`) \|$", page, re.MULTILINE))
    assert list(rows) == [" ".join(promise.split()) for promise in promises]
    for tests in rows.values():
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests):
            assert f"\ndef {name}(" in (root / path).read_text("utf-8"), name
        assert tests.count("::") == len(re.findall(r"::test_\w+`", tests))
