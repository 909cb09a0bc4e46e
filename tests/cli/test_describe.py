"""`krein inspect` on a model, and its advice on data, which matches the defaults of `krein fit`."""

import json
import os
import re
import shlex
from collections import Counter

import numpy as np
import pytest

import krein as library
import krein.datasets
from krein.io.modelfile import FORMAT

PATTERN = ("--label-pattern", r"family=(\w+)")


@pytest.mark.parametrize("name", ["ikfd", "ikqd", "pcvm"])
def test_a_model_says_what_it_is(files, run, name):
    run("fit", "families.fasta", *PATTERN, "--model", name, "-o", "any.name")
    clf = library.load("any.name")
    code, out, err = run("inspect", "any.name", "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    assert about["estimator"] == type(clf).__name__
    assert about["classes"] == clf.classes_.tolist() == ["actin", "globin", "kinase"]
    assert about["landmark_rows"] == clf.landmarks_.tolist()
    assert about["landmarks"] == len(clf.landmarks_)
    assert about["landmark_rule"] == "meb"
    assert about["measure"] == "smith-waterman"
    assert about["measure_params"] == clf.measure_.params()
    assert about["objects"] == 70
    assert tuple(about["signature"]) == clf.signature_
    assert about["compared"] == clf.comparisons_to_fit_
    assert about["bytes"] == os.path.getsize("any.name")
    assert about["version"] == library.__version__
    assert about["class_sizes"] == (None if name == "pcvm" else [24, 22, 24])
    code, out, err = run("inspect", "any.name")
    assert (code, err) == (0, "")
    assert f"{len(clf.landmarks_)}, one comparison each per new object, chosen by meb" in out
    assert "matrix=BLOSUM62" in out
    assert f"krein {library.__version__}, format {FORMAT}" in out


def test_a_two_look_model_says_what_to_expect(files, run):
    X, y = library.datasets.make_protein_families(400, divergence=0.75, random_state=0)
    records = [f">p{i} family={c}\n{x}\n" for i, (x, c) in enumerate(zip(X, y, strict=True))]
    (files / "many.fasta").write_text("".join(records[:300]))
    assert run("fit", "many.fasta", *PATTERN, "-o", "many.krein")[0] == 0
    clf = library.load("many.krein")
    code, out, err = run("inspect", "many.krein", "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    assert about["landmark_names"] == [f"p{i}" for i in clf.landmarks_]
    assert about["comparisons"] == clf.comparisons_
    assert about["candidates"] == clf.model_.second_look.known.n_candidates
    assert dict(zip(about["classes"], about["class_sizes"], strict=True)) == Counter(
        map(str, y[:300])
    )
    P = clf.predict_proba(X[300:])
    true = np.searchsorted(clf.classes_, y[300:].astype(str))
    right, loss = P.argmax(axis=1) == true, -np.log(P[np.arange(100), true])
    assert 0.5 < right.mean() < 1  # neither hopeless nor trivial
    assert about["expected"]["held_out"] == 300 - len(clf.landmarks_)
    # four standard errors of the difference
    for name, new in (("accuracy", right), ("log_loss", loss)):
        assert abs(about["expected"][name] - new.mean()) < 4 * np.sqrt(4 / 3) * new.std() / 10
    code, out, err = run("inspect", "many.krein")
    assert (code, err) == (0, "")
    assert f"{clf.comparisons_:.0f} per prediction on average; 30 in a second look" in out
    assert f"accuracy {100 * about['expected']['accuracy']:.1f} %" in out
    assert ", ".join(about["landmark_names"][:10]) in out


def test_any_model_file_is_described(files, run, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    library.NystromMap("rbf").fit(X).save("map.krein")
    library.IKFD(lambda a, b: float(a @ b)).fit(X, y).save("own.krein")
    D = np.abs(X[:, None] - X[None]).sum(axis=2)
    library.PCVM("precomputed-distance").fit(D, y).save("given.krein")
    for path in ("map.krein", "own.krein", "given.krein"):
        code, _, err = run("inspect", path)
        assert (code, err) == (0, ""), path
        assert json.loads(run("inspect", path, "--json")[1])["model"] == path
    with open("own.krein", "r+b") as file:
        file.truncate(3000)
    assert run("inspect", "own.krein")[0] == 1


def test_the_advice_uses_the_measure_of_fit(files, run):
    rng = np.random.default_rng(0)
    lines = []
    for c in "ab":
        ancestor = rng.choice(list("ACGT"), 40)
        for i in range(12):
            changed = ancestor.copy()
            changed[rng.integers(0, 40, 5)] = "A"
            lines.append(f">{c}{i} family={c}\n{''.join(changed)}\n")
    (files / "dna.fasta").write_text("".join(lines))
    about = json.loads(run("inspect", "dna.fasta", *PATTERN, "--json")[1])
    found = re.search(r"use (--.*) and the default model", about["advice"])
    advised = shlex.split(found[1])
    assert run("fit", "dna.fasta", *PATTERN, *advised, "-o", "advised.krein")[0] == 0
    assert run("fit", "dna.fasta", *PATTERN, "-o", "default.krein")[0] == 0
    measures = [
        json.loads(run("inspect", path, "--json")[1])["measure_params"]
        for path in ("advised.krein", "default.krein")
    ]
    assert measures[0] == measures[1]
    assert measures[0]["matrix"] == "NUC.4.4"


WRONG = (None, [], "x", -1, 2**60, float("nan"), [1, 2], [1, 2, 3, 4], {}, np.array(["x"]))


def replaced(tree, path, value):
    if not path:
        return value
    return {**tree, path[0]: replaced(tree[path[0]], path[1:], value)}


def test_a_forged_description_is_refused_in_one_line(files, fit, run, monkeypatch):
    """Every number and array of the parts that are shown; the seal of the file is right."""
    from krein.io.modelfile import read_model, write_model

    monkeypatch.setattr(os, "fsync", lambda _: None)
    fit("families.fasta", *PATTERN, "--model", "ikfd", "-o", "m.krein")
    tree = read_model("m.krein")
    model = ("fitted", "model_", "fields")
    landmarks = (*model, "landmarks", "fields")
    paths = [("params", "calibrate"), *(("fitted", name) for name in tree["fitted"])]
    paths += [(*model, name) for name in tree["fitted"]["model_"]["fields"]]
    fields = tree["fitted"]["model_"]["fields"]["landmarks"]["fields"]
    paths += [(*landmarks, name) for name in fields]
    refused = set()
    for path in paths:
        for value in WRONG:
            write_model("forged.krein", replaced(tree, path, value), "0")
            code, _, err = run("inspect", "forged.krein")
            assert code in (0, 1), (path, value)
            if code:
                assert err.startswith("krein: error: forged.krein"), (path, value)
                assert err.count("\n") == 1
                assert "--debug" not in err
                refused.add(path[-1])
    assert {"signature_", "comparisons_to_fit_", "n_samples_seen_", "classes"} <= refused


def test_a_model_of_an_own_function_is_described_without_it(files, run):
    (files / "own.py").write_text("def near(a, b):\n    return 1 / (1 + abs(len(a) - len(b)))\n")
    fit = ("fit", "words.csv", "--objects", "word", "--labels", "language", "-o", "own.krein")
    code, _, err = run(*fit, "--measure", "own.py:near")
    assert code == 0, err
    (files / "own.py").unlink()
    code, out, err = run("inspect", "own.krein")
    assert (code, err) == (0, "")
    assert "the function" in out
