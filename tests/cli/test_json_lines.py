"""JSON lines in every command."""

import csv
import json

import pytest

import krein as library

SHAPE = ("--objects", "word", "--labels", "language")


@pytest.fixture
def lines(files):
    with open("words.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    text = "".join(json.dumps({"id": f"w{i}", **row}) + "\n" for i, row in enumerate(rows))
    (files / "words.jsonl").write_text(text)
    return text


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "words.jsonl"),
        ("evaluate", "words.jsonl", "--folds", 2, "--compare", "ikfd"),
        ("landmarks", "words.jsonl"),
        ("fit", "words.jsonl", "-o", "model.krein"),
    ],
)
def test_every_command_reads_them(lines, run, command):
    code, out, err = run(*command, *SHAPE)
    assert code == 0, err
    assert "{" not in out  # no record was mistaken for a word


def test_predict_answers_in_kind(lines, files, run):
    assert run("fit", "words.jsonl", *SHAPE, "-o", "model.krein")[0] == 0
    new = '{"word": "louse"}\n{"word": "laus", "id": "own"}\n'
    (files / "new.jsonl").write_text(new)
    code, out, err = run("predict", "model.krein", "new.jsonl", "--objects", "word")
    assert (code, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["name"] for r in records] == ["0", "1"]  # the first record has no field for names
    expected = library.load("model.krein").predict(["louse", "laus"]).tolist()
    assert [r["label"] for r in records] == expected
    code, piped, _ = run("predict", "model.krein", "--objects", "word", input=new)
    assert (code, piped) == (0, out)
    code, rows, _ = run("predict", "model.krein", "new.jsonl", "--format", "csv")
    assert rows.splitlines()[0].startswith("name,label,probability")
    run("predict", "model.krein", "new.jsonl", "-o", "out.tsv")
    assert (files / "out.tsv").read_text() == rows.replace(",", "\t")
