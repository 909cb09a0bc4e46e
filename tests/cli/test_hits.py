"""`krein fit --hits`, and predictions for the hits of new queries."""

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

from krein import KreinClassifier, load
from krein.io.hits import HitTable, references

FIT = ("fit", "refs-vs-refs.tsv", "--hits", "--labels", "taxonomy.tsv", "-o", "model.krein")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def model(files, fit):
    assert "4,800 hits of 120 objects, scored by bits" in fit(*FIT[1:])
    return files / "model.krein"


def predict(run, *options):
    code, out, err = run("predict", "model.krein", "queries-vs-refs.tsv", *options)
    assert code == 0, err
    return table(out), err


def test_the_model_is_that_of_the_classifier(model, run):
    hits = references(HitTable("refs-vs-refs.tsv"))
    labels = dict(line.split() for line in Path("taxonomy.tsv").read_text().splitlines())
    clf = KreinClassifier("precomputed").fit(hits.graph, [labels[name] for name in hits.queries])
    stored = load(model, only_model=True)
    assert stored.hits.score == "bits"
    assert stored.second_look.names.tolist() == hits.queries
    graph = hits.graph[:7]
    np.testing.assert_array_equal(stored.predict_proba(graph), clf.predict_proba(graph))


def test_every_query_gets_a_row(model, run):
    rows, _ = predict(run, "--queries", "queries.fasta", "--evidence", "2")
    assert [row["name"] for row in rows] == [f"query{i}" for i in range(30)]
    without = [row for row in rows if row["reason"] == "no hit"]
    assert [row["name"] for row in without] == ["query0", "query10", "query20"]
    assert {row["status"] for row in without} == {"novel"}
    assert {row["nearest_1"] for row in without} == {""}
    assert rows[1]["nearest_1"].startswith("ref")


def test_without_names_only_queries_with_hits_are_known(model, run):
    rows, err = predict(run)
    assert len(rows) == 27
    assert "27 with hits; --queries" in err


@pytest.mark.parametrize("output", [(), ("-o", "rows.csv")])
def test_a_table_without_hits_needs_names(model, run, files, output):
    (files / "empty.tsv").touch()
    code, _, err = run("predict", "model.krein", "empty.tsv", *output)
    assert (code, err.count("\n")) == (1, 1), err
    assert "no hits in empty.tsv; name the queries with --queries" in err
    assert not list(files.glob("rows.csv*"))


@pytest.mark.parametrize("form", ["list", "table"])
def test_names_from_a_list_or_a_table(model, files, run, form):
    names = [f"query{i}" for i in range(29, -1, -1)]
    text = "".join(f"{name}\n" if form == "list" else f"{name}\tx\t9\n" for name in names)
    (files / "names.tsv").write_text("name\n" * (form == "list") + text)
    rows, _ = predict(run, "--queries", "names.tsv")
    assert [row["name"] for row in rows] == names


def test_names_of_other_objects_are_refused(model, files, run):
    (files / "names.txt").write_text("somebody\nelse\n")
    code, _, err = run(
        "predict", "model.krein", "queries-vs-refs.tsv", "--queries", "names.txt", "-o", "x.csv"
    )
    assert code != 0
    assert "none of the queries of the table, such as 'query1'" in err


def test_any_order_of_rows_and_both_directions(model, files, run):
    once, _ = predict(run)
    lines = (files / "queries-vs-refs.tsv").read_text().splitlines(keepends=True)
    swapped = ["\t".join([*line.split("\t")[1::-1], *line.split("\t")[2:]]) for line in lines]
    (files / "queries-vs-refs.tsv").write_bytes(gzip.compress("".join(swapped[::-1]).encode()))
    again, err = predict(run)
    assert "the queries of the table are the known objects" in err
    assert {row["name"]: row for row in again} == {row["name"]: row for row in once}


def test_all_answers(model, run):
    rows, _ = predict(run, "--sets", "0.9", "--fdr", "0.1", "--top", "3")
    assert all(row["set"] for row in rows)
    assert any(row["selected"] == "label" for row in rows)
    rows, _ = predict(run, "--coverage", "0.5", "--queries", "queries.fasta")
    assert sum(row["status"] == "known" for row in rows) in (13, 14)


def test_score_auto_names_its_choice(files, run):
    code, out, err = run(*FIT, "--score", "auto", "--force")
    assert code == 0, err
    assert "by the log-loss of held-out objects: bits 0." in out


def test_groups_from_a_file_and_from_identities(files, run):
    (files / "groups.tsv").write_text("".join(f"ref{i}\tg{i // 2}\n" for i in range(120)))
    code, out, err = run(*FIT, "--groups", "groups.tsv")
    assert code == 0, err
    assert "60 groups, the largest of 2 objects" in out
    code, out, err = run(*FIT, "--groups", "identity:0.999", "--force")
    assert code == 0, err
    assert "held out together" in out


def test_near_copies_are_announced(model, files, run):
    _, _, err = run(*FIT, "--force")
    assert "add --groups identity:0.95" in err


def test_short_lists_of_one_class_are_announced(files, run):
    lines = (files / "refs-vs-refs.tsv").read_text().splitlines(keepends=True)
    (files / "refs-vs-refs.tsv").write_text("".join(lines[i] for i in range(4800) if i % 40 < 4))
    code, _, err = run(*FIT)
    assert code == 0
    assert "end after 3 hits, all of one class" in err


def test_labels_of_queries_will_do(files, run):
    """Some queries are labelled, and there are no hits among references."""
    hits = (files / "queries-vs-refs.tsv").read_text()
    rows = [line.split("\t") for line in hits.splitlines()]
    labels = dict(line.split() for line in Path("taxonomy.tsv").read_text().splitlines())
    best = {}
    for row in rows:
        best.setdefault(row[0], labels[row[1]])
    with open("taxonomy.tsv", "a") as file:
        file.writelines(f"{name}\t{label}\n" for name, label in best.items())
    args = [arg if arg != "refs-vs-refs.tsv" else "queries-vs-refs.tsv" for arg in FIT]
    code, out, err = run(*args)
    assert code == 0, err
    assert "27 labelled queries of" in out
    assert len(load("model.krein", only_model=True).reference.scores) == 27


def test_evaluate_with_report(files, run):
    how = ("--hits", "--labels", "taxonomy.tsv", "--folds", "3")
    code, out, err = run("evaluate", "refs-vs-refs.tsv", *how, "--report", "report.html")
    assert code == 0, err
    assert all(name in out for name in ("krein", "best hit", "vote"))
    page = (files / "report.html").read_text()
    assert "eigenvectors of the graph of hits" in page
    assert "Is the measure a kernel?" not in page
    code, out, _ = run("evaluate", "refs-vs-refs.tsv", *how, "--json")
    found = json.loads(out)
    assert found["models"]["krein"]["log_loss"]["mean"] < np.log(3)
    assert found["spectrum"] is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--labels", "none.tsv"], "none.tsv"),
        ([], "has no labels: use --labels"),
        (["--labels", "taxonomy.tsv", "--score", "tm"], "no column 'tm'"),
        (["--labels", "taxonomy.tsv", "--model", "pcvm"], "--hits is for --model krein"),
        (["--labels", "taxonomy.tsv", "--groups", "identity:2"], "identity:T"),
        (["--labels", "taxonomy.tsv", "--columns", "query,bits"], "none is the target"),
        (["--label-pattern", "(x)"], "none of its objects has a label"),
    ],
)
def test_mistakes_are_explained(files, run, args, message):
    code, _, err = run("fit", "refs-vs-refs.tsv", "--hits", "-o", "model.krein", *args)
    assert code != 0
    assert message in err


@pytest.mark.parametrize(
    "given",
    [
        "--n-landmarks 5",
        "--measure levenshtein",
        "--distance",
        "--skip-unreadable",
        "--cache cache",
        "--both-strands",
        "--input-format tsv",
    ],
)
def test_options_without_an_effect_are_refused(files, run, given):
    for command in FIT, ("evaluate", *FIT[1:-2]):
        code, _, err = run(*command, *given.split())
        assert code == 2
        assert f"{given.split()[0]} has no effect with --hits" in err


def test_an_evaluation_of_hits_refuses_what_a_fit_would_store(files, run):
    for given, told in ("--jobs 2", "--jobs"), ("--no-calibrate", "--calibrate/--no-calibrate"):
        code, _, err = run("evaluate", *FIT[1:-2], *given.split())
        assert code == 2
        assert f"{told} has no effect with --hits" in err


def test_a_default_that_is_spelled_out_is_refused_too(files, run):
    code, _, err = run(*FIT, "--wait", "60")
    assert code == 2
    assert "--wait has no effect with --hits" in err


def test_a_table_of_hits_to_themselves(files, run):
    (files / "own.tsv").write_text(
        "query\ttarget\tbits\n" + "".join(f"ref{i}\tref{i}\t9\n" for i in range(120))
    )
    code, _, err = run("fit", "own.tsv", "--hits", "--labels", "taxonomy.tsv", "-o", "m.krein")
    assert code != 0
    assert "only hits of objects to themselves" in err


def test_options_of_hits_are_refused_for_other_models(files, run):
    fit = ["fit", "families.fasta", "--label-pattern", r"family=(\w+)", "-o", "model.krein"]
    assert run(*fit)[0] == 0
    code, _, err = run("predict", "model.krein", "new.fasta", "--queries", "queries.fasta")
    assert code != 0
    assert "--queries is for tables of hits" in err


def test_inspect_describes_the_model(model, run):
    code, out, err = run("inspect", "model.krein")
    assert code == 0, err
    assert "hits" in out


def test_a_model_of_hits_is_not_served(model, run):
    code, _, err = run("serve", "model.krein", "--port", "0")
    assert code != 0
    assert "use krein predict" in err


def test_explain_names_the_hits(model, files, run):
    code, _, err = run("explain", "model.krein", "queries-vs-refs.tsv", "-o", "why.html")
    assert code == 0, err
    assert "ref" in (files / "why.html").read_text()
