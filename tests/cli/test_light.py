"""`krein predict` imports only numpy, scipy and the measure, and agrees with the estimator."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from krein import IKFD, IKQD, PCVM, KreinClassifier, load
from krein.datasets import make_protein_families
from krein.measures.features import Convolutions, NGrams

X, Y = make_protein_families(120, n_families=3, random_state=0)
Y = np.array([f"family {y}" for y in Y])
MODELS = (
    KreinClassifier("smith-waterman"),
    KreinClassifier("smith-waterman", neighbours=0),
    IKFD("smith-waterman", random_state=0),
    IKFD("smith-waterman", multiclass="ovr", random_state=0),
    IKQD("smith-waterman", calibrate=True, random_state=0),
    PCVM("smith-waterman", random_state=0),
    PCVM("smith-waterman", multiclass="ovr", random_state=0),
)

WATCHED = """
import json, sys
from krein.cli import krein
heavy = {"sklearn", "pandas", "joblib", "dask", "scipy.optimize", "scipy.stats"}
for path in sys.argv[2:]:
    try:
        krein(["predict", path, sys.argv[1], "-o", path + ".jsonl"])
    except SystemExit as end:
        print(json.dumps([end.code, sorted(heavy & set(sys.modules))]))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """All models, and the files that they are saved in."""
    folder = tmp_path_factory.mktemp("light")
    found = []
    for i, model in enumerate(MODELS):
        model.fit(X[:100], Y[:100]).save(folder / f"{i}.krein")
        found.append((model, folder / f"{i}.krein"))
    return found


def test_predict_does_not_import_scikit_learn(saved, tmp_path):
    new = tmp_path / "new.fasta"
    new.write_text("".join(f">s{i}\n{x}\n" for i, x in enumerate(X[100:])))
    command = [sys.executable, "-c", WATCHED, new, *(path for _, path in saved)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in run.stdout.splitlines()] == [[0, []]] * len(MODELS)
    for model, path in saved:
        lines = path.with_name(f"{path.name}.jsonl").read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        P = model.predict_proba(X[100:])
        assert [row["probability"] for row in rows] == P.max(axis=1).tolist()
        assert [row["label"] for row in rows] == model.predict(X[100:]).tolist()


@pytest.mark.parametrize("which", range(len(MODELS)), ids=[str(model)[:60] for model in MODELS])
def test_a_model_without_scikit_learn_predicts_the_same(saved, which):
    model, path = saved[which]
    light = load(path, only_model=True)
    assert not hasattr(light, "fit")
    assert (light.look_zero is not None) == isinstance(model, KreinClassifier)
    methods = ["decision_function", "predict_log_proba", "predict_proba", "predict", "rank_labels"]
    methods += ["novelty", "predict_set"] * (light.reference is not None)
    for method in methods:
        found, expected = getattr(light, method)(X[100:]), getattr(model, method)(X[100:])
        np.testing.assert_array_equal(found, expected)


LOADED = """
import json, sys
import numpy as np
from krein import load
model = load(sys.argv[1], only_model=True)
P = model.predict_proba(list(np.load(sys.argv[2])))
model.explain(list(np.load(sys.argv[2])))
heavy = {"sklearn", "pandas", "joblib", "dask", "scipy.optimize", "scipy.stats"}
print(json.dumps([sorted(heavy & set(sys.modules)), P.tolist()]))
"""


def looked_at():
    """Yield objects with every kind of features, and their labels."""
    rng = np.random.default_rng(0)
    waves = np.sin(np.arange(40) * rng.choice([0.3, 0.8], (60, 1)) + rng.uniform(0, 6, (60, 1)))
    yield "dtw", waves, (np.abs(np.diff(waves)).mean(axis=1) > 0.3).astype(int), Convolutions
    words = np.array(["".join(rng.choice(list("abcdefgh"), 9)) for _ in range(110)])
    words = np.concatenate([np.char.add(words, end) for end in ("", "x", "y", "z")])
    yield "levenshtein", words, np.arange(440) % 110, NGrams


@pytest.mark.parametrize(
    ("measure", "X", "y", "kind"), list(looked_at()), ids=["convolutions", "many classes"]
)
def test_features_need_no_scikit_learn(measure, X, y, kind, tmp_path):
    model = KreinClassifier(measure, n_landmarks=10).fit(list(X), y)
    assert isinstance(model.model_.look_zero.features, kind)
    model.save(tmp_path / "m.krein")
    np.save(tmp_path / "new.npy", X[:5])
    command = [sys.executable, "-c", LOADED, tmp_path / "m.krein", tmp_path / "new.npy"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy, P = json.loads(run.stdout)
    assert heavy == []
    np.testing.assert_array_equal(P, model.predict_proba(list(X[:5])))


def test_parameters_that_predictions_depend_on_are_kept(tmp_path):
    model = KreinClassifier(
        "smith-waterman", measure_params={"normalize": True}, novel_below=0.2, ambiguous_below=0.99
    )
    model.fit(X[:100], Y[:100]).save(tmp_path / "m.krein")
    light = load(tmp_path / "m.krein", only_model=True)
    assert light.measure == model.measure_
    found, expected = light.assess(X[100:]), model.assess(X[100:])
    assert found["status"].tolist() == expected["status"].tolist()
    np.testing.assert_array_equal(found["novelty"], expected["novelty"])


STARTED = """
import os, sys
from krein.cli import main
sys.argv = ["krein", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OPENBLAS_NUM_THREADS"], "numpy" in sys.modules)
"""


def test_blas_is_limited_before_it_is_loaded():
    """Afterwards it has buffers for all threads, which may be more memory than there is."""
    variable = "OPENBLAS_NUM_THREADS"
    env = {name: value for name, value in os.environ.items() if name != variable}
    for given, expected in ((env, "1"), (env | {variable: "3"}, "3")):
        done = subprocess.run(
            [sys.executable, "-c", STARTED], env=given, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == f"{expected} False"
