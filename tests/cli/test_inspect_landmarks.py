"""`krein inspect` and `krein landmarks`."""

import csv
import io
import json
from collections import Counter

import numpy as np
import pytest

from krein.cli.classes import describe_single
from krein.io import open_source

PATTERN = ("--label-pattern", r"family=(\w+)")


def inspected(run, *args):
    code, out, err = run("inspect", *args, "--spectrum", "--json")
    assert code == 0, err
    return json.loads(out)


def test_sequences(files, run):
    first = (files / "families.fasta").read_text().split(">")[1]
    with open("families.fasta", "a") as file:
        file.write(f">other {first}")
    about = inspected(run, "families.fasta", *PATTERN)
    assert about["objects"] == 71
    assert sum(about["classes"].values()) == 71
    assert about["lengths"] == [60, 60, 60]
    assert about["duplicates"] == {"objects": 1, "conflicting": 0, "names": 0}
    assert about["measure"] == "smith-waterman"
    assert sum(about["signature"]) == about["sampled"] == 71
    _, out, _ = run("inspect", "families.fasta", *PATTERN, "--spectrum")
    assert "60 to 60, median 60" in out
    assert out.rstrip().splitlines()[-1] == about["advice"]
    assert "\x1b" not in out


def test_the_columns_that_may_contain_labels_are_listed(files, run):
    rows = "".join(f"w{i},{'mh'[i % 2]}ouse,en\n" for i in range(6))
    (files / "named.csv").write_text("id,word,tongue\n" + rows)
    how = "--labels COLUMN ('id', 'tongue'; or a file), or --label-pattern REGEX"
    named = ("named.csv", "--objects", "word")
    assert inspected(run, *named)["advice"] == f"There are no labels: to fit a model, use {how}."
    code, _, err = run("fit", *named, "-o", "m.krein")
    assert (code, f"there are no labels; use {how}" in err) == (1, True)
    about = inspected(run, "new.fasta")
    assert about["advice"].endswith("use --labels FILE or --label-pattern REGEX.")


def test_a_sample_stands_for_many(files, run):
    about = inspected(run, "words.csv", "--labels", "language", "--sample", "12")
    assert (about["objects"], about["sampled"], sum(about["signature"])) == (40, 12, 12)


def test_a_matrix_of_distances_is_recognised(files, run):
    about = inspected(run, "distances.csv", "--labels", "labels.csv")
    assert about["advice"].endswith("use --distance.")
    about = inspected(run, "distances.csv", "--labels", "labels.csv", "--distance")
    assert about["looks_like"] == "distance"
    assert "--distance" not in about["advice"]
    np.savetxt("s.csv", np.exp(-np.loadtxt("distances.csv", delimiter=",")), delimiter=",")
    about = inspected(run, "s.csv", "--labels", "labels.csv", "--distance")
    assert about["advice"].endswith("leave --distance out.")


def test_the_signature_of_a_matrix_is_exact(files, run):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    lam = np.r_[np.full(20, 2.0), np.full(7, -1.0), np.zeros(3)]
    K = (Q * lam) @ Q.T
    np.savez("k.npz", K=(K + K.T) / 2, y=np.repeat([0, 1], 15))
    about = inspected(run, "k.npz")
    assert about["signature"] == [20, 7, 3]
    assert about["negative_mass"] == pytest.approx(7 / 47)
    assert about["advice"].startswith("15 % of the spectrum is negative: keep it")


def test_faults_of_a_matrix_are_reported(files, run):
    K = np.eye(6) + 1
    K[0, 1] = 5
    np.save("k.npy", K)
    about = inspected(run, "k.npy")
    assert about["asymmetry"].startswith("not symmetric: entry (0, 1) is 5.0")
    assert "--symmetrize" in about["advice"]
    K = np.random.default_rng(0).normal(size=(6, 6))
    K += K.T
    K[2] = K[:, 2] = 0
    K[4] = K[:, 4] = 0.0
    np.save("k.npy", K)
    assert inspected(run, "k.npy")["zero"] == ["2", "4"]
    K[3, 3] = np.nan
    np.save("k.npy", K)
    code, _, err = run("inspect", "k.npy")
    assert code == 1
    assert "k.npy: entry (3, 3) of the matrix is nan" in err
    np.save("k.npy", np.ones((3, 4)))
    code, _, err = run("inspect", "k.npy", "--input-format", "matrix")
    assert (code, "3 × 4" in err) == (1, True)


def test_markup_and_control_characters_are_shown_not_interpreted(files, run):
    with open("odd.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "word", "class"])
        writer.writerows([f"[red]{i}", "ab" * i, "[bold]x[/bold]\x1b[31m"] for i in range(1, 5))
        writer.writerows([["[/]", "zz", "<script>"], ["[b]", "zy", "<script>"]])
    code, out, err = run("inspect", "odd.csv", "--spectrum")
    assert code == 0, err
    assert "[bold]x[/bold]\\x1b[31m (4)" in out
    assert "\x1b" not in out
    code, out, err = run("landmarks", "odd.csv")
    assert code == 0, err
    assert ",[red]" in out


@pytest.mark.parametrize("rule", ["meb", "auto", "random", "kmeans", "entropy", "leverage", "all"])
def test_landmarks_are_listed_with_their_names_and_classes(files, run, rule):
    code, out, err = run("landmarks", "families.fasta", *PATTERN, "--landmarks", rule)
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO(out)))
    chunk = open_source("families.fasta", label_pattern=PATTERN[1]).read()
    for row in rows:
        i = int(row["index"])
        assert (row["name"], row["class"]) == (chunk.names[i], chunk.labels[i])
    if rule != "random":
        assert {row["class"] for row in rows} == {"globin", "kinase", "actin"}


def test_landmarks_match_the_model(files, run):
    import krein as library

    run("fit", "families.fasta", *PATTERN, "-o", "m.krein", "--seed", "4", "--model", "ikfd")
    code, out, _ = run("landmarks", "families.fasta", *PATTERN, "--seed", "4", "--format", "jsonl")
    assert code == 0
    indices = [json.loads(line)["index"] for line in out.splitlines()]
    assert indices == library.load("m.krein").landmarks_.tolist()


def test_landmarks_without_labels(files, run):
    code, out, err = run("landmarks", "words.csv", "--objects", "word", "--landmarks", "random",
                         "--n-landmarks", "5", "-o", "l.csv")  # fmt: skip
    assert (code, out) == (0, ""), err
    assert len((files / "l.csv").read_text().splitlines()) == 6
    code, _, err = run("landmarks", "new.fasta", "--landmarks", "auto")
    assert (code, "no labels" in err) == (1, True)


def test_objects_are_compared_only_for_the_spectrum(files, run, monkeypatch):
    def refused(self, *args):
        raise AssertionError("objects were compared")

    with monkeypatch.context() as forbidden:
        for name in ("block", "values", "diagonal"):
            forbidden.setattr("krein.compare.Pairs." + name, refused)
        code, out, err = run("inspect", "families.fasta", *PATTERN)
        assert code == 0, err
        assert "3 classes" in out
        assert "lengths     60 to 60, median 60" in out
        assert "signature" not in out
        assert "use --measure smith-waterman and the default model" in out
        about = json.loads(run("inspect", "families.fasta", *PATTERN, "--json")[1])
    assert (about["signature"], about["negative_mass"]) == (None, None)
    assert run("inspect", "families.fasta", *PATTERN, "--spectrum", "--sample", "20")[0] == 0


@pytest.mark.parametrize(
    ("labels", "advice"),
    [
        (["a"] * 9 + ["b"] * 9 + ["c"], "leave them out with --min-class-size 2"),
        (["a"] * 2 + [f"x{i}" for i in range(9)], "more objects of each would help"),
        (["k;a"] * 2 + [f"k;x{i}" for i in range(9)], ", which counts for the ranks above it"),
    ],
)
def test_the_advice_on_classes_of_one_object_depends_on_the_others(labels, advice):
    counts = dict(Counter(labels))
    alone = [name for name, n in counts.items() if n == 1]
    told = describe_single(alone, counts)
    assert told.startswith(f"{len(alone)} of {len(counts)} classes ha")
    assert advice in told
    assert ("leave" in told) == ("leave" in advice)
