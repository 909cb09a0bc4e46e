"""Regression tests: options and values that used to fail badly."""

import csv
import io
import json

import numpy as np
import pytest

from krein.cli.output import RowWriter

WORDS = ("words.csv", "--objects", "word", "--labels", "language")


@pytest.fixture
def model(fit):
    fit(*WORDS, "-o", "m.krein")


@pytest.mark.parametrize(
    "args",
    [
        ("predict", "m.krein", "words.csv", "--ambiguous-below", "nan"),
        ("predict", "m.krein", "words.csv", "--coverage", "nan"),
        ("predict", "m.krein", "words.csv", "--jobs", "0"),
        ("fit", *WORDS, "-o", "n.krein", "--jobs", "0"),
        ("fit", *WORDS, "-o", "n.krein", "--seed", str(2**32)),
        ("landmarks", *WORDS, "--seed", "-1"),
        ("inspect", "words.csv", "--seed", str(2**32)),
    ],
)
def test_invalid_options_exit_with_2(files, model, run, args):
    code, out, err = run(*args)
    assert (code, out) == (2, ""), err


def test_csv_rows_survive_a_round_trip(tmp_path):
    rows = [["a\rb", "x"], ["c\r\nd", "y"], ["e\nf", 'g"h'], ["i", "j"]]
    file = io.StringIO(newline="")
    writer = RowWriter(file, ["name", "label"], "csv")
    writer.write({"name": name, "label": label} for name, label in rows)
    found = list(csv.reader(io.StringIO(file.getvalue(), newline="")))
    assert found == [["name", "label"], *rows]
    assert file.getvalue().endswith("\ni,j\n")


def test_json_rejects_nan():
    with pytest.raises(ValueError, match="JSON"):
        RowWriter(io.StringIO(), ["p"], "jsonl").write([{"p": float("nan")}])


def test_a_nan_probability_is_not_written(files, model, run, monkeypatch):
    from krein.model.model import Model

    assess = Model.assess

    def broken(self, X, **options):
        found = assess(self, X, **options)
        found["probabilities"][1] = np.nan
        return found

    monkeypatch.setattr(Model, "assess", broken)
    code, out, err = run("predict", "m.krein", input="house\nmaus\n")
    assert code == 0
    assert "standard input, line 2, string '1': its probabilities are not numbers" in err
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["status"] for row in rows] == ["known", "unreadable"]
    assert rows[1]["probability"] == ""


def test_inspect_prints_valid_json(files, run):
    code, out, _ = run("inspect", *WORDS, "--spectrum", "--json")
    assert code == 0
    json.loads(out, parse_constant=pytest.fail)


def test_a_closed_standard_output_is_reported(files, monkeypatch, capsys):
    import sys

    from krein.cli import krein

    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as end:
        krein.main(["inspect", "words.csv"])
    assert end.value.code == 1
    assert capsys.readouterr().err == "krein: error: standard output is closed\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("inspect", "families.fasta", "--label-pattern", "(a"),
            "'(a' is not a valid",
        ),
        (("inspect", "families.fasta", "--label-pattern", "a"), "needs exactly one group"),
        (("inspect", "families.fasta", "--distance"), "--distance is for a matrix"),
        (("inspect", "distances.csv", "--measure", "rbf", "--measure-param", "gamma=nan"), "gamma"),
        (("inspect", "distances.csv", "--measure", "rbf", "--measure-param", "gamma=a"), "gamma"),
        (("inspect", "families.fasta", "--measure-param", "gap_open=abc"), "gap_open"),
    ],
)
def test_usage_errors_name_the_fault(files, run, args, message):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert message in err


@pytest.fixture
def matrices(files):
    D = np.loadtxt("distances.csv", delimiter=",")
    np.save("D.npy", D)
    np.save("S.npy", np.exp(-D))
    return "--labels", "labels.csv"


@pytest.mark.parametrize("command", [("fit", "-o", "m.krein"), ("evaluate", "--folds", "2")])
def test_a_matrix_that_looks_like_the_other_kind_is_warned_about(matrices, run, command):
    name, *rest = command
    if name == "evaluate":
        rest += ["--compare", "ikfd"]
    for data, distance, doubt in (
        ("D.npy", [], "looks like a matrix of distances"),
        ("S.npy", ["--distance"], "looks like a matrix of similarities"),
        ("D.npy", ["--distance"], ""),
        ("S.npy", [], ""),
    ):
        force = ["--force"] if name == "fit" else []
        code, out, err = run(name, data, *rest, *matrices, *distance, *force)
        assert code == 0, err
        lines = [line for line in err.splitlines() if "looks like" in line]
        assert len(lines) == bool(doubt)
        assert doubt in err
        assert "pairs, " not in out  # a precomputed matrix needs no comparisons


@pytest.mark.parametrize("scale", [1e-310, 1e200])
def test_values_off_the_scale_are_refused(matrices, run, scale):
    np.save("S.npy", np.load("S.npy") * scale)
    code, _, err = run("fit", "S.npy", *matrices, "-o", "m.krein")
    assert code == 1
    assert "the largest value of the matrix is 1e" in err
    assert "multiply the matrix by 1e" in err


def test_vectors_are_matched_by_column_name(files, run):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([0, 9], 1, (20, 2)), rng.normal([9, 0], 1, (20, 2))])
    y = ["up"] * 20 + ["down"] * 20

    def written(path, heading, columns):
        rows = zip(*columns, strict=True)
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([heading, *rows])

    written("v.csv", ["a", "b", "label"], [X[:, 0], X[:, 1], y])
    assert run("fit", "v.csv", "-o", "v.krein", "--measure", "rbf")[0] == 0
    _, expected, err = run("predict", "v.krein", "v.csv")
    assert err == ""
    written("turned.csv", ["b", "extra", "a"], [X[:, 1], X[:, 1], X[:, 0]])
    assert run("predict", "v.krein", "turned.csv") == (0, expected, "")
    written("other.csv", ["b", "c"], [X[:, 1], X[:, 0]])
    code, out, err = run("predict", "v.krein", "other.csv")
    assert (code, out) == (1, "")
    assert "fitted to the columns a, b; this file has b, c" in err
    np.savetxt("bare.csv", X, delimiter=",")
    assert run("predict", "v.krein", "bare.csv")[:2] == (0, expected)


def test_a_zero_matrix_gives_no_numpy_warning(matrices, run):
    np.save("Z.npy", np.zeros((40, 40)))
    code, _, err = run("fit", "Z.npy", *matrices, "--model", "ikqd", "-o", "z.krein")
    assert (code, err) == (0, "")
    np.savetxt("new.csv", np.zeros((2, 40)), delimiter=",")
    code, out, err = run("predict", "z.krein", "new.csv")
    assert (code, err) == (0, "")
    assert out.count("0.500000") == 4


def test_an_error_while_inspecting_names_the_place(files, run, monkeypatch):
    from krein.compare import Pairs
    from krein.measures import PairError

    def broken(self, rows, cols):
        raise PairError(1, 0, "the value is NaN")

    monkeypatch.setattr(Pairs, "block", broken)
    (files / "w.txt").write_text("house\nmaus\nmouse\n")
    code, _, err = run("inspect", "w.txt", "--spectrum")
    assert (code, err) == (1, "krein: error: w.txt, line 2, string '1': the value is NaN\n")
