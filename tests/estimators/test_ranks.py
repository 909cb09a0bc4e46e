"""Ranks in the fit and in the model: labels that are paths in a taxonomy."""

from dataclasses import replace

import numpy as np
import pytest

from krein import IKFD, KreinClassifier, load
from krein.core.ranks import RankAnswers
from krein.data.foreign import ForeignObjectWarning
from krein.estimators import firstlook
from krein.model.parts import Comparisons


def taxonomy(seed, families=8, genera=6, letters="abcdefghij"):
    """Words of families and genera, half of which have one word; and words of other genera."""
    rng = np.random.default_rng(seed)
    words, labels, strange, families_of = [], [], [], []

    def changed(word, n):
        word = list(word)
        for place in rng.choice(len(word), n, replace=False):
            word[place] = rng.choice(list(letters))
        return "".join(word)

    for f in range(families):
        first = "".join(rng.choice(list(letters), 24))
        for g in range(genera):
            second = changed(first, 7)
            for _ in range(1 if g % 2 else 15):
                words.append(changed(second, 3))
                labels.append(f"f{f};g{g}")
        for _ in range(5):
            strange.append(changed(changed(first, 7), 3))
            families_of.append(f"f{f}")
    order = rng.permutation(len(words))
    return [words[i] for i in order], np.array(labels)[order], strange, np.array(families_of)


@pytest.fixture(scope="module")
def fitted():
    words, labels, strange, families = taxonomy(0)
    clf = KreinClassifier("levenshtein", n_landmarks=40).fit(words, labels)
    return clf, words, labels, strange, families


def test_objects_alone_in_their_genus_teach(fitted):
    clf, words, labels, _, _ = fitted
    pool = clf.model_.ranks
    numbers = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    held_out = len(clf.model_.reference.scores)
    assert pool.scores.shape[1] > held_out  # those alone in their genus come on top
    known = np.isfinite(pool.scores).sum(axis=1)
    assert known[0] > known[1] == held_out
    assert sum(n == 1 for n in numbers.values()) == 24
    answers = clf.assess(words, ranks=True)
    np.testing.assert_array_equal(answers["probabilities"], clf.predict_proba(words))
    P = answers["rank_probabilities"][:, :, 0]
    assert (np.diff(P, axis=1) <= 1e-12).all()


def test_a_new_genus_is_told_by_its_family(fitted):
    clf, _, _, strange, families = fitted
    model, found = clf.model_, clf.assess(strange, ranks=True)
    named = np.array(model.taxonomy[0].nodes)[found["rank_nodes"][:, 0, 0]]
    assert (named == families).mean() > 0.9
    assert np.median(found["rank_probabilities"][:, 0, 0]) > 0.8
    summed = RankAnswers.of_classes(model.taxonomy, model.predict_proba(strange))
    genus = found["rank_probabilities"][:, 1, 0]
    assert genus.mean() < summed.probabilities[:, 1, 0].mean()
    assert found["rank_unknown"][:, 1].mean() > 0.1


def test_ranks_survive_the_file(fitted, tmp_path):
    clf, words, _, _, _ = fitted
    clf.save(tmp_path / "m.krein")
    again = load(tmp_path / "m.krein")
    one, two = clf.assess(words[:20], ranks=True), again.assess(words[:20], ranks=True)
    for name in ("rank_nodes", "rank_probabilities", "rank_unknown", "rank_novelty"):
        np.testing.assert_array_equal(one[name], two[name])


def test_ranks_of_other_labels_are_refused(fitted):
    model = fitted[0].model_
    with pytest.raises(ValueError, match="not those of 1 ranks"):
        replace(model, classes=np.char.replace(model.classes, ";", "-")).check()


def test_answers_do_not_depend_on_what_else_is_compared(fitted):
    clf, words, _, _, _ = fitted
    whole = clf.assess(words[:30], ranks=True)
    part = clf.assess([*words[7:9], "z" * 23], ranks=True)
    np.testing.assert_allclose(
        part["rank_probabilities"][:2], whole["rank_probabilities"][7:9], atol=1e-9
    )


def random_answered_early(model, share):
    """Return the model as if this share of random objects got early answers."""
    chance = replace(model.reference.chance, early=share)
    return replace(model, reference=replace(model.reference, chance=chance))


def test_ranks_need_no_more_comparisons_than_labels():
    words, labels, strange, _ = taxonomy(0)
    words = [word[: 20 + i % 5] for i, word in enumerate(words)]
    model = KreinClassifier("levenshtein", n_landmarks=40).fit(words, labels).model_
    assert model.reference.chance.early < 1
    trusting = random_answered_early(model, 0.01)
    new = [*words[:40], *strange]
    depth = model._map(new, lambda answer: answer.depth, (), np.intp)
    last = depth == len(model.look_names) - 1
    assert 0 < last.mean() < 1
    counts, found = [], []
    for more in ({}, {"compare_all": True}):
        run = Comparisons(model.measure)
        found.append(trusting.assess(new, ranks=True, run=run, **more))
        counts.append(run.counter.compared)
    run = Comparisons(model.measure)
    model.predict_proba(new, run)
    assert counts[0] == run.counter.compared < counts[1]
    for name in found[0].dtype.names:
        rows = last if name in ("novelty", "far", "chance", "status") else slice(None)
        np.testing.assert_array_equal(found[0][name][rows], found[1][name][rows])
    early = found[0][~last]
    np.testing.assert_array_equal(early["novelty"], early["unfit"])
    assert (early["far"] == 1).all()
    suspicious = random_answered_early(model, 0.02)
    np.testing.assert_array_equal(suspicious.assess(new, ranks=True), found[1])


def test_foreign_objects_have_no_path(fitted):
    with pytest.warns(ForeignObjectWarning):
        found = fitted[0].assess(["a" * 2000], ranks=True)
    assert found["rank_probabilities"].max() == 0


def test_plain_labels_have_no_ranks():
    words, labels, _, _ = taxonomy(1, families=3, genera=2)
    plain = np.char.replace(labels, ";", "-")
    clf = KreinClassifier("levenshtein", n_landmarks=10).fit(words, plain)
    assert clf.model_.ranks is None
    with pytest.raises(ValueError, match="has no ranks"):
        clf.assess(words[:2], ranks=True)
    assert IKFD("levenshtein", landmarks=np.arange(9)).fit(words, labels).model_.ranks is None


def test_an_object_alone_in_its_class_is_scored_without_the_class():
    log_p = np.log([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    found = np.exp(firstlook.without_own_class(log_p, np.array([0, 2])))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[0], np.array([0.2, 0.3, 0.2]) / 0.7)
    np.testing.assert_allclose(found[1], np.array([0.1, 0.6, 0.1]) / 0.8)
