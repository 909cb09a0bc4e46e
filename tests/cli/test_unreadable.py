"""An unreadable record does not affect other rows, and unusual letters are read by convention."""

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

from krein.cli import predictor as predict_module
from krein.cli.letters import LetterReader
from krein.io import NamedObjects

PATTERN = ("--label-pattern", r"family=(\w+)")


def table(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


@pytest.fixture
def model(fit):
    fit("families.fasta", *PATTERN, "-o", "model.krein")


def put_between(files, bad):
    """Write the new sequences with a bad one among them; return the names."""
    records = (files / "new.fasta").read_text().split(">")[1:]
    records.insert(7, f"bad\n{bad}\n")
    (files / "mixed.fasta").write_text("".join(f">{record}" for record in records))
    return [record.split()[0] for record in records]


@pytest.mark.parametrize("size", [1, 3, 2048])
def test_the_other_rows_are_not_lost(files, model, run, monkeypatch, size):
    monkeypatch.setattr(predict_module, "AT_A_TIME", size)
    names = put_between(files, "MKV1LA")
    _, whole, _ = run("predict", "model.krein", "new.fasta")
    code, out, err = run("predict", "model.krein", "mixed.fasta")
    assert code == 0
    rows = table(out)
    assert [row["name"] for row in rows] == names
    bad = rows.pop(7)
    assert rows == table(whole)
    assert {row["status"] for row in rows} == {"known"}
    assert {row["reason"] for row in rows} == {""}
    assert bad["status"] == "unreadable"
    assert "mixed.fasta, line 15, sequence 'bad': contains '1' at position 4" in bad["reason"]
    assert bad["label"] == bad["probability"] == bad["runner_up"] == ""
    assert err.startswith("krein: warning: 1 of 21 objects cannot be read: mixed.fasta")
    assert err.count("\n") == 1
    code, out, _ = run("predict", "model.krein", "mixed.fasta", "--format", "jsonl")
    record = json.loads(out.splitlines()[7])
    assert record["label"] is None
    assert record["status"] == "unreadable"


def test_predict_fails_with_the_reason_if_nothing_can_be_read(files, model, run):
    code, out, err = run("predict", "model.krein", input=">a\n12\n>b\n3\n")
    assert code == 1
    assert [row["status"] for row in table(out)] == ["unreadable"] * 2
    assert err.startswith("krein: error: standard input, line 1, sequence 'a': contains '1'")


def test_the_warning_quotes_the_first_of_several_reasons(files, model, run):
    sequence = (files / "new.fasta").read_text().split("\n")[1]
    records = f">a\n{sequence}\n>b\n12\n>c\n3\n"
    code, _, err = run("predict", "model.krein", input=records)
    assert code == 0
    expected = "2 of 3 objects cannot be read: the first is standard input, line 3, sequence 'b'"
    assert err.startswith(f"krein: warning: {expected}")


def test_coverage_counts_readable_objects(files, model, run):
    put_between(files, "12")
    code, out, _ = run("predict", "model.krein", "mixed.fasta", "--coverage", "0.5")
    assert code == 0
    rows = table(out)
    assert rows.pop(7)["status"] == "unreadable"
    assert len({row["probability"] for row in rows}) == 20  # no ties at the threshold
    assert [row["status"] for row in rows].count("known") == 10


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("MUK*", "MCK"),
        ("MO-K..A", "MKKA"),
        ("mjk", "MXK"),
        ("M*K**", "MXK"),
        ("MKV1", "MKV1"),  # a digit is not a letter, so it is not replaced
        ("MBZX", "MBZX"),  # scored as they are
    ],
)
def test_letters_are_read_by_convention(given, read):
    assert LetterReader("BLOSUM62", None).read(NamedObjects(["a"], [given], None, 0))[0] == [read]


def test_rna_is_read_as_dna():
    given = ["ACGU", "AC-GE", "ACGN"]
    found, _ = LetterReader("NUC.4.4", None).read(NamedObjects(["a", "b", "c"], given, None, 0))
    assert found == ["ACGT", "ACGN", "ACGN"]


@pytest.mark.parametrize("odd", ["U", "O", "*", "-", ".", "J"])
def test_unusual_letters_do_not_change_the_labels(files, model, run, odd):
    _, expected, _ = run("predict", "model.krein", "new.fasta")
    records = (files / "new.fasta").read_text().split(">")[1:]
    header, sequence = records[2].splitlines()
    records[2] = f"{header}\n{sequence}{odd}\n"
    (files / "odd.fasta").write_text("".join(f">{record}" for record in records))
    code, out, err = run("predict", "model.krein", "odd.fasta")
    assert code == 0
    assert [(row["label"], row["status"]) for row in table(out)] == [
        (row["label"], row["status"]) for row in table(expected)
    ]
    assert err.startswith("krein: warning: 1 sequence contained letters that BLOSUM62 does not")
    assert err.count("\n") == 1
    code, out, err = run("predict", "model.krein", "odd.fasta", "--unknown-letters", "skip")
    assert code == 0
    assert [row["status"] for row in table(out)].count("unreadable") == 1
    assert table(out)[2]["status"] == "unreadable"
    code, out, err = run("predict", "model.krein", "odd.fasta", "--unknown-letters", "fail")
    assert (code, out) == (1, "")
    assert f"contains {odd!r} at position 61" in err
    code, out, err = run("predict", "model.krein", "odd.fasta", "--unknown-letters", "X")
    assert code == 0
    assert {row["status"] for row in table(out)} == {"known"}


@pytest.mark.parametrize(("rule", "done"), [("X", "U as X: 5"), ("skip", "U left out: 5")])
def test_the_letter_policy_of_the_model_is_the_default(files, run, rule, done):
    fitted = run(
        "fit", "families.fasta", *PATTERN, "-o", "m.krein", "--measure", "smith-waterman",
        "--measure-param", f"unknown_letters={rule}",
    )  # fmt: skip
    assert fitted[0] == 0
    new = ">a\n" + "MKVUAW" * 5 + "\n"
    code, out, err = run("predict", "m.krein", input=new)
    assert code == 0
    assert err.startswith("krein: warning: 5 letters in 1 of 1 sequences are not scored")
    assert done in err
    code, out, _ = run("predict", "m.krein", "--unknown-letters", "skip", input=new)
    assert code == 1
    assert table(out)[0]["status"] == "unreadable"


def test_unknown_letters_is_an_option_for_sequences(fit, run):
    fit("words.csv", "--objects", "word", "--labels", "language", "-o", "m.krein")
    code, _, err = run("predict", "m.krein", "--unknown-letters", "X", input="house\n")
    assert code == 2
    assert "--unknown-letters is for sequences; the model compares by levenshtein" in err


def test_tsv_has_a_header_and_is_recognised_by_its_suffix(files, model, run):
    _, out, _ = run("predict", "model.krein", "new.fasta")
    _, shown, _ = run("predict", "model.krein", "new.fasta", "--format", "tsv")
    assert table(shown, "\t") == table(out)
    assert shown.splitlines()[0].split("\t")[:3] == ["name", "label", "probability"]
    run("predict", "model.krein", "new.fasta", "-o", "out.tsv")
    assert (files / "out.tsv").read_text() == shown
    run("predict", "model.krein", "new.fasta", "-o", "out.tsv.gz")
    assert gzip.decompress((files / "out.tsv.gz").read_bytes()).decode() == shown


def test_the_report_has_the_format_of_kraken(files, model, run):
    put_between(files, "12")
    code, out, _ = run(
        "predict", "model.krein", "mixed.fasta", "--ambiguous-below", "0.6",
        "--kraken-report", "report.txt",
    )  # fmt: skip
    assert code == 0
    lines = [line.split("\t") for line in (files / "report.txt").read_text().splitlines()]
    labels = [row["label"] for row in table(out) if row["status"] == "known"]
    unclassified, root, *others = lines
    assert unclassified[1:] == [str(21 - len(labels))] * 2 + ["U", "0", "unclassified"]
    assert root[1:] == [str(len(labels)), "0", "R", "0", "root"]
    assert float(unclassified[0]) + float(root[0]) == pytest.approx(100, abs=0.02)
    counted = {line[5].strip(): (int(line[1]), int(line[2])) for line in others}
    assert counted == {label: (labels.count(label),) * 2 for label in set(labels)}
    assert all(line[3:5] == ["R1", "0"] and line[5].startswith("  ") for line in others)
    code, _, err = run("predict", "model.krein", "mixed.fasta", "--kraken-report", "model.krein")
    assert code == 2
    assert "is an input and would be overwritten" in err


def test_a_record_without_letters_gets_a_row(files, model, run):
    names = put_between(files, "")
    _, whole, _ = run("predict", "model.krein", "new.fasta")
    code, out, err = run("predict", "model.krein", "mixed.fasta")
    assert code == 0, err
    rows = table(out)
    assert [row["name"] for row in rows] == names
    bad = rows.pop(7)
    assert rows == table(whole)
    assert (bad["status"], bad["label"]) == ("unreadable", "")
    assert bad["reason"] == "mixed.fasta, line 15, sequence 'bad': contains no letters"
    assert "1 of 21 objects cannot be read: mixed.fasta" in err
    code, _, err = run("predict", "model.krein", "mixed.fasta", "--unknown-letters", "fail")
    assert code == 1
    assert "contains no letters" in err


def test_fastq_continues_after_a_record_with_missing_qualities(files, model, run):
    read = "MKVLAMKVLA\n+\nIIIIIIIIII"
    (files / "new.fastq").write_text(f"@a\n{read}\n@b\nMKV\n+\nII\n@c\n{read}\n")
    code, out, _ = run("predict", "model.krein", "new.fastq")
    assert code == 0
    a, b, c = table(out)
    assert b["status"] == "unreadable"
    assert "3 letters but 2 qualities" in b["reason"]
    assert a["probability"] == c["probability"] != ""
    (files / "new.fastq").write_text("@a\nMKVLA\n+\nIIIII\n@b\nMKV\n")
    code, _, err = run("predict", "model.krein", "new.fastq")
    assert code == 1  # it is unknown where the next record begins
    assert "truncated?" in err


WORDS = ("--objects", "word")
BAD_LINES = {
    "not JSON": '{"word": "mau',
    "no field": '{"wort": "maus"}',
    "not a string": '{"word": 7}',
    "empty": '{"word": " "}',
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
def test_json_lines_continue_after_a_bad_line(fit, run, bad):
    fit("words.csv", *WORDS, "--labels", "language", "-o", "w.krein")
    good = [json.dumps({"id": f"w{i}", "word": w}) for i, w in enumerate(["house", "maus"])]
    text = "\n".join([good[0], bad, good[1]]) + "\n"
    code, out, err = run(
        "predict", "w.krein", *WORDS, "--names", "id", "--input-format", "jsonl", input=text
    )
    assert code == 0, err
    first, middle, last = map(json.loads, out.splitlines())
    assert [first["name"], middle["name"], last["name"]] == ["w0", "1", "w1"]
    assert (middle["status"], middle["label"]) == ("unreadable", None)
    assert "line 2" in middle["reason"]
    assert (first["label"], last["label"]) == ("en", "de")


def test_a_table_continues_after_a_bad_row(files, fit, run):
    fit("words.csv", *WORDS, "--labels", "language", "-o", "w.krein")
    (files / "new.csv").write_text("id,word\na,house\nb\nc,\nd,maus\n")
    code, out, err = run("predict", "w.krein", "new.csv", *WORDS, "--names", "id")
    assert code == 0, err
    rows = table(out)
    assert [(row["name"], row["label"]) for row in rows] == [
        ("a", "en"), ("b", ""), ("c", ""), ("d", "de"),
    ]  # fmt: skip
    assert rows[1]["reason"] == "new.csv, line 3: has 1 fields, but the first row has 2"
    assert "the column 'word' is empty" in rows[2]["reason"]


def test_vectors_continue_after_a_bad_row(files, run):
    lines = [f"{i % 7},{i % 5},{'ab'[i % 7 > 3]}" for i in range(40)]
    (files / "v.csv").write_text("x,y,class\n" + "\n".join(lines) + "\n")
    run("fit", "v.csv", "--labels", "class", "-o", "v.krein")
    # the first twenty rows determine the types of the columns
    (files / "new.csv").write_text("x,y\n" + "1,2\n" * 20 + "1,2\n1,oops\n1\n6,3\n")
    code, out, err = run("predict", "v.krein", "new.csv", "--input-format", "vectors")
    assert code == 0, err
    rows = table(out)[20:]
    assert [row["label"] for row in rows] == ["a", "", "", "b"]
    assert "'oops', which is not a number" in rows[1]["reason"]


def test_a_chunk_of_only_bad_rows(files, run, monkeypatch):
    monkeypatch.setattr(predict_module, "AT_A_TIME", 1)
    test_vectors_continue_after_a_bad_row(files, run)


def test_fitting_still_needs_every_record(files, run):
    put_between(files, "")
    code, _, err = run("fit", "mixed.fasta", *PATTERN, "-o", "m.krein")
    assert code == 1
    assert "sequence 'bad': contains no letters" in err


@pytest.fixture
def vectors(fit):
    """A model of vectors, and one of given distances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 3 * (np.arange(60)[:, None] % 2)
    np.save("X.npy", X)
    np.save("D.npy", np.abs(X[:, None] - X[None]).sum(axis=2))
    Path("y.txt").write_text("".join(f"{'ab'[i % 2]}\n" for i in range(60)))
    for name, options in (("X", ("--measure", "manhattan")), ("D", ("--distance",))):
        fit(f"{name}.npy", *options, "--labels", "y.txt", "-o", f"{name}.krein")


def write_objects(path, rows):
    """Write vectors in the format of the name."""
    if path.endswith(".npy"):
        np.save(path, rows)
    elif path.endswith(".jsonl"):
        Path(path).write_text("".join(json.dumps({"x": list(row)}) + "\n" for row in rows))
    else:
        lines = [",".join(map(str, row)) for row in [["a", "b", "c"][: len(rows[0])], *rows]]
        Path(path).write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("kind", "name"), [("X", "new.npy"), ("X", "new.csv"), ("X", "new.jsonl"), ("D", "new.npy")]
)
def test_an_extreme_vector_does_not_affect_the_others(kind, name, vectors, run):
    for value in (1e300, 1e160, float("inf"), float("nan")):
        check_others(kind, name, value, run)


def check_others(kind, name, value, run):
    rows = np.load(f"{kind}.npy")[:5].tolist()
    write_objects(name, rows)
    command = ("predict", f"{kind}.krein", name, "--format", "csv")
    code, out, err = run(*command)
    assert code == 0, err
    expected = table(out)
    rows[1][2] = value
    rows[3] = [value] * len(rows[3])
    write_objects(name, rows)
    code, out, err = run(*command)
    assert code == 0, err
    found = table(out)
    for i, (row, whole) in enumerate(zip(found, expected, strict=True)):
        if i not in (1, 3):
            assert row == whole
            continue
        assert (row["status"], row["label"]) == ("unreadable", "")
        assert row["reason"].startswith(name)
    assert err.startswith(f"krein: warning: 2 of 5 objects cannot be read: the first is {name}")


def test_a_vector_of_another_length_gets_a_row_wherever_it_is(vectors, run):
    for rows in ([[0, 0], [1, 1, 1], [3, 3, 3]], [[1, 1, 1], [0, 0], [3, 3, 3]]):
        write_objects("new.jsonl", rows)
        code, out, err = run("predict", "X.krein", "new.jsonl", "--format", "csv")
        assert code == 0, err
        bad = rows.index([0, 0])
        status = [row["status"] for row in table(out)]
        assert status[bad] == "unreadable"
        assert status.count("unreadable") == 1
        assert f"new.jsonl, line {bad + 1}, record '{bad}': has 2 numbers, not 3" in out
    write_objects("new.jsonl", rows)
    code, _, err = run("inspect", "new.jsonl")
    assert code == 1
    assert err == "krein: error: new.jsonl, line 2, record '1': has 2 numbers, not 3\n"


def test_a_negative_distance_belongs_to_its_row(vectors, run):
    D = np.load("D.npy")[:3]
    D[1] = -1.0
    np.save("new.npy", D)
    code, out, err = run("predict", "D.krein", "new.npy")
    assert code == 0, err
    rows = table(out)
    assert [row["status"] == "unreadable" for row in rows] == [False, True, False]
    assert rows[1]["reason"] == "new.npy, row 1: the value is -1"


def test_a_wrong_width_of_all_vectors_is_an_error_of_the_file(vectors, run):
    np.save("new.npy", np.ones((5, 4)))
    code, out, err = run("predict", "X.krein", "new.npy")
    assert (code, out) == (1, "")
    assert "new.npy" in err
