"""`krein predict` that is stopped, and continued; and what it tells meanwhile."""

import json
import os
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

from krein.cli import krein, predictor, resuming, terminal

from .conftest import PATTERN_OF_FAMILIES, make_files, write_fasta


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = make_files(tmp_path_factory.mktemp("resume"))
    args = ["fit", folder / "families.fasta", *PATTERN_OF_FAMILIES, "-o", folder / "m.krein"]
    result = CliRunner().invoke(krein, [str(one) for one in args])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def stopped(world, run, monkeypatch, tmp_path):
    """A run over chunks of four objects that is stopped in the third chunk."""
    monkeypatch.setattr(predictor, "AT_A_TIME", 4)
    rows_of, calls = predictor.Predictor.rows_of, []

    def stopping(self, chunk, until=None):
        calls.append(chunk.first)
        if len(calls) == 3:
            raise SystemExit(130)
        return rows_of(self, chunk, until)

    output = tmp_path / "o.csv"
    with monkeypatch.context() as patched:
        patched.setattr(predictor.Predictor, "rows_of", stopping)
        code, _, err = run("predict", world / "m.krein", world / "new.fasta", "-o", output)
    assert code == 130
    assert "8 rows are kept in" in err
    assert "--resume" in err
    return output


@pytest.mark.parametrize("torn", [b"", b"half a row"])
def test_a_stopped_run_continues_after_the_last_whole_row(world, run, stopped, torn, tmp_path):
    part = tmp_path / "o.csv.part"
    assert not stopped.exists()
    assert part.read_text().count("\n") == 9
    with open(part, "ab") as file:
        file.write(torn)
    report, other = tmp_path / "k.txt", tmp_path / "k2.txt"
    predict = ("predict", world / "m.krein", world / "new.fasta", "-o")
    code, _, err = run(*predict, stopped, "--resume", "--kraken-report", report)
    assert code == 0, err
    assert run(*predict, tmp_path / "whole.csv", "--kraken-report", other)[0] == 0
    assert stopped.read_text() == (tmp_path / "whole.csv").read_text()
    assert report.read_text() == other.read_text()
    assert not list(tmp_path.glob("*.part*"))


def test_only_the_same_run_is_continued(world, run, stopped, tmp_path):
    new = tmp_path / "other.fasta"
    new.write_text((world / "new.fasta").read_text() + ">more\nMKVLAGHWKL\n")
    for changed, name in (
        ((world / "m.krein", new), "input"),
        ((world / "m.krein", world / "new.fasta", "--top", "3"), "options"),
    ):
        code, _, err = run("predict", *changed, "-o", stopped, "--resume")
        assert (code, f"written with another {name}" in err) == (1, True)
    note = tmp_path / "o.csv.part.json"
    noted = json.loads(note.read_text())
    noted["asked"]["model"] = "0"
    note.write_text(json.dumps(noted))
    predict = ("predict", world / "m.krein", world / "new.fasta", "-o")
    code, _, err = run(*predict, stopped, "--resume")
    assert (code, "written with another model" in err) == (1, True)
    code, _, err = run(*predict, tmp_path / "never.csv", "--resume")
    assert (code, "no interrupted run" in err) == (1, True)
    assert run(*predict, stopped, "--resume", "--fdr", "0.1")[0] == 2
    assert run(*predict, stopped)[0] == 0  # from the start
    assert not list(tmp_path.glob("*.part*"))


def test_progress_is_told_in_lines_without_a_terminal(world, run, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"n{i}", "-", "".join(rng.choice(list("ACDEFGHIKL"), 60))) for i in range(30)]
    write_fasta(tmp_path / "many.fasta", rows)
    monkeypatch.setattr(predictor, "AT_A_TIME", 10)
    monkeypatch.setattr(terminal, "EVERY", 0.0)
    given = (world / "m.krein", tmp_path / "many.fasta", "-o", tmp_path / "o.csv")
    code, _, err = run("predict", *given)
    assert code == 0
    lines = [line for line in err.splitlines() if " objects, " in line]
    assert [line.split()[1] for line in lines] == ["10", "20", "30"]
    assert all("many.fasta, about " in line for line in lines)


@pytest.fixture
def small_disk():
    """A file of the system that nothing fits into."""
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    return "/dev/full"


@pytest.mark.parametrize("full", ["rows", "note"])
def test_rows_survive_a_full_disk(world, run, monkeypatch, small_disk, full, tmp_path):
    monkeypatch.setattr(predictor, "AT_A_TIME", 4)
    complete, calls = resuming.Resumable.complete, []

    def filling(self, file, n):
        calls.append(n)
        if len(calls) < 3:
            return complete(self, file, n)
        with monkeypatch.context() as patched:
            if full == "note":
                writer = partial(open, small_disk, "wb")
                patched.setattr(resuming, "named_writer", lambda *_: writer())
                return complete(self, file, n)
            with open(small_disk, "wb", buffering=0) as disk:
                return disk.write(b"rows")

    given = ("predict", world / "m.krein", world / "new.fasta", "-o", tmp_path / "o.csv")
    with monkeypatch.context() as patched:
        patched.setattr(resuming.Resumable, "complete", filling)
        code, _, err = run(*given)
    assert (code, "No space left" in err, "8 rows are kept in" in err) == (1, True, True)
    assert {one.name for one in tmp_path.iterdir()} == {"o.csv.part", "o.csv.part.json"}
    assert run(*given, "--resume")[0] == 0
    assert run(*given[:-1], tmp_path / "whole.csv")[0] == 0
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "whole.csv").read_text()
