"""Rows of several columns in every command: --measure COLUMN=MEASURE*WEIGHT,…"""

import csv
import json

import numpy as np
import pytest

import krein as library
from krein.cli.options import ModelOptions
from krein.cli.service import Limits, Service, document
from krein.measures import Combined

SPEC = ("--measure", "name=levenshtein, age=euclidean*0.1,born=levenshtein*5")
NORMALIZED = ("--measure-param", "born.normalize=true")
PEOPLE = Combined(
    {
        "name": "levenshtein",
        "age": "euclidean",
        "born": {"measure": "levenshtein", "params": {"normalize": True}},
    },
    [1, 0.1, 5],
)


@pytest.fixture
def rows(files):
    with open("people.csv", newline="") as table:
        return list(csv.DictReader(table))


@pytest.fixture
def model(fit):
    out = fit("people.csv", *SPEC, *NORMALIZED, "-o", "m.krein")
    assert "records of the columns 'name', 'age', 'born', labels in 'class', names in 'id'" in out
    assert "name=levenshtein, age=euclidean*0.1,born=levenshtein*5 (born.normalize=true)" in out
    return "m.krein"


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "people.csv"),
        ("evaluate", "people.csv", "--folds", 2, "--compare", "ikfd"),
        ("evaluate", "people.csv", "--folds", 2, "--json"),
        ("landmarks", "people.csv"),
        ("fit", "people.csv", "--model", "pcvm", "-o", "m.krein"),
    ],
)
def test_every_command_reads_them(files, run, command):
    code, _, err = run(*command, *SPEC)
    assert code == 0, err


def test_predictions_are_those_of_the_library(model, rows, run):
    loaded = library.load(model)
    assert loaded.measure_ == PEOPLE
    code, out, err = run("predict", model, "people.csv")
    assert (code, err) == (0, "")
    found = list(csv.DictReader(out.splitlines()))
    assert [row["name"] for row in found] == [row["id"] for row in rows]
    P = loaded.predict_proba(rows).max(axis=1)
    np.testing.assert_allclose([float(row["probability"]) for row in found], P, rtol=1e-6)
    clf = library.KreinClassifier(PEOPLE, random_state=0)
    clf.fit(rows, [row["class"] for row in rows])
    np.testing.assert_array_equal(loaded.predict_proba(rows), clf.predict_proba(rows))


def test_columns_are_found_by_name_in_any_file(model, files, rows, run):
    wanted = run("predict", model, "people.csv", "--format", "jsonl")[1]
    typed = [{**row, "age": float(row["age"])} for row in rows]
    text = "".join(json.dumps(dict(sorted(row.items()))) + "\n" for row in typed)
    (files / "new.jsonl").write_text(text)
    assert run("predict", model, "new.jsonl")[1] == wanted
    assert run("predict", model, input=text)[1] == wanted
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pandas.DataFrame(typed)[["born", "id", "name", "age"]].to_parquet("new.parquet")
    assert run("predict", model, "new.parquet", "--format", "jsonl")[1] == wanted


def test_records_that_cannot_be_read_have_a_reason(model, files, run):
    (files / "new.csv").write_text(
        "id,name,born,age\na,Anna,1990-01-11,31\nb,,1990-01-11,31\nc,Anna,1990-01-11,old\n"
    )
    _, out, _ = run("predict", model, "new.csv")
    found = {row["name"]: row for row in csv.DictReader(out.splitlines())}
    assert found["a"]["reason"] == ""
    assert found["b"]["reason"] == "new.csv, line 3, row 'b': the column 'name' is empty"
    assert found["c"]["reason"] == (
        "new.csv, line 4, record 'c': has 'old' in the column 'age', not a number"
    )
    lines = ['{"name": "Anna", "born": "1990", "age": null}', '{"name": "Anna", "age": 3}']
    _, out, _ = run("predict", model, input="\n".join(lines))
    reasons = [json.loads(line)["reason"] for line in out.splitlines()]
    assert "the field 'age' is empty" in reasons[0]
    assert "has no field 'born'" in reasons[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--measure", "name=levenshtein,age=rbf"), "all parts must be of one kind"),
        (("--measure", "name=levenshtein,age"), "'age' is not COLUMN=MEASURE"),
        (("--measure", "name=nothing"), "unknown measure 'nothing'"),
        (("--measure", "name=levenshtein*0"), "must be a number above 0"),
        (("--measure", "combined"), "'combined' is not COLUMN=MEASURE"),
        (("--measure", "nom=levenshtein"), "there is no column 'nom' for the objects"),
        ((*SPEC, "--objects", "name"), "--objects cannot be used with --measure COLUMN=MEASURE"),
        ((*SPEC, "--measure-param", "normalize=true"), "write name.normalize"),
        ((*SPEC, "--input-format", "vectors"), "is to be read as vectors, but records"),
    ],
)
def test_mistakes_are_explained(files, run, arguments, message):
    code, _, err = run("fit", "people.csv", *arguments, "-o", "m.krein")
    assert code != 0
    assert message in err


def test_columns_of_a_model_cannot_be_chosen(model, run):
    code, _, err = run("predict", model, "people.csv", "--objects", "name")
    assert code != 0
    assert "the model compares the columns name, age, born" in err


def test_a_file_without_columns_is_refused(model, run):
    code, _, err = run("predict", model, "families.fasta")
    assert code != 0
    assert "is to be read as fasta, but records with the columns name, age, born" in err


def test_the_parts_are_explained(model, files, run):
    code, _, err = run("explain", model, "people.csv", "-o", "why.html", "--max", 2)
    assert (code, err) == (0, "")
    text = (files / "why.html").read_text("utf-8")
    assert "<h4>age</h4>" in text
    assert "× weight 0.1 =" in text


def test_a_service_takes_records(model, rows):
    pytest.importorskip("starlette")
    service = Service(ModelOptions(str(model)), Limits(length=50))
    assert service.about["takes"] == "records"
    assert document(service.about)["components"]["schemas"]["Object"]["required"] == [
        "name",
        "age",
        "born",
    ]
    asked = [
        {"name": "Anna", "born": "1990-01-11", "age": 31},
        {"name": "Anna", "born": "1990-01-11"},
        {"name": "A" * 60, "born": "1990-01-11", "age": 31},
        {"name": "Anna", "born": "1990-01-11", "age": [[1], [2, 3]]},
        {"name": "\ud800", "born": "1990-01-11", "age": 31},
        "Anna",
    ]
    parsed = service.parse(json.dumps({"objects": asked}).encode())
    assert sorted(parsed.reasons) == [2, 3, 4, 5]
    good = [parsed.objects[i] for i in (0, 1)]
    answered = service.answer(good, ["0", "1"], 0, None)
    P = library.load(model).predict_proba(good[:1]).max()
    assert answered[0]["probability"] == pytest.approx(P)
    assert "has no 'age'" in answered[1]["reason"]
    assert service.costs(good[:1])[0] >= 0


def test_a_model_and_a_report_tell_the_columns(model, files, run):
    told = "name=levenshtein, age=euclidean*0.1, born=levenshtein(normalize=True)*5"
    assert told in run("inspect", model)[1]
    command = ("evaluate", "people.csv", *SPEC, *NORMALIZED, "--folds", 2, "--compare", "ikfd")
    assert run(*command, "--report", "r.html")[0] == 0
    assert told in (files / "r.html").read_text("utf-8")


def test_a_table_gets_the_answers_in_new_columns(model, files, rows, run):
    assert run("predict", model, "people.csv", "--table-out", "out.csv")[0] == 0
    with open("out.csv", newline="") as table:
        found = list(csv.DictReader(table))
    assert [row["name"] for row in found] == [row["name"] for row in rows]
    expected = library.load(model).predict(rows).tolist()
    assert [row["krein_label"] for row in found] == expected
