"""Features of the objects: n-grams against scikit-learn's, convolutions by definition."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import combinations, groupby, pairwise

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.feature_extraction.text import TfidfVectorizer

from krein.datasets import make_protein_families
from krein.measures import features, get_measure
from krein.measures.features import (
    BINS,
    FARTHEST,
    FOLDED,
    UNIT,
    Convolutions,
    Gradients,
    NGrams,
    suitable_length,
)
from krein.measures.sequences import reverse_complement
from krein.measures.series import DTW

WORDS = ["house", "mouse", "horse", "haus", "maus", "ross", "ßü", "a", "house"]


def tfidf(texts, shortest, longest):
    return TfidfVectorizer(
        analyzer="char",
        ngram_range=(shortest, longest),
        lowercase=False,
        preprocessor=lambda text: f"\x02{text}\x03",
        sublinear_tf=True,
    ).fit_transform(texts)


def test_n_grams_are_those_of_scikit_learn():
    grams = NGrams.fit(WORDS)
    expected = tfidf(WORDS, grams.shortest, grams.longest)
    F = grams(WORDS)
    assert F.shape[1] == expected.shape[1]  # no two n-grams share a column here
    np.testing.assert_allclose((F @ F.T).toarray(), (expected @ expected.T).toarray(), atol=1e-6)


def test_folded_n_grams_have_about_the_same_products():
    texts, _ = make_protein_families(60, random_state=0)
    grams = NGrams.fit(texts)
    F = grams(texts)
    assert F.shape[1] > 2 * FOLDED
    folded = grams.folded(F).toarray()  # columns that meet are added
    exact = (F @ F.T).toarray()
    errors = (folded @ folded.T - exact)[np.triu_indices(60, 1)]
    # without signs, every collision would add to the products: their mean error would be 0.2
    assert abs(errors.mean()) * np.sqrt(FOLDED) < 1.0
    assert 0.3 < errors.std() * np.sqrt(FOLDED) < 1.5


def test_unknown_n_grams_count_in_the_length_of_a_row():
    """Each n-gram by its definition, one at a time."""
    grams = NGrams.fit(WORDS)
    for text in [*WORDS, "qqq", "mousetrap", ""]:
        marked = f"\x02{text}\x03"
        found = Counter(
            marked[i : i + n]
            for n in range(grams.shortest, grams.longest + 1)
            for i in range(len(marked) - n + 1)
        )
        df = {gram: sum(gram in f"\x02{word}\x03" for word in WORDS) for gram in found}
        weight = {
            gram: (1 + np.log(count)) * (1 + np.log((1 + len(WORDS)) / (1 + df[gram])))
            for gram, count in found.items()
        }
        length = np.sqrt(sum(value**2 for value in weight.values()))
        known = sorted(weight[gram] / length for gram in found if df[gram])
        np.testing.assert_allclose(np.sort(grams([text]).data), known)


@pytest.mark.parametrize("most", [10**6, 100, 30])
@pytest.mark.parametrize("alphabet", ["abcdef", "ab"])
def test_a_held_out_object_has_the_features_of_a_new_one(monkeypatch, most, alphabet):
    """As n-grams that were fitted without the object's group, also if only some are kept."""
    import krein.measures.features as module

    monkeypatch.setattr(module, "VOCABULARY", most)
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list(alphabet), n)) for n in rng.integers(1, 12, 60)]
    groups, place = rng.integers(0, 40, 60), rng.permutation(60)[:12]
    grams, F = NGrams.fit_transform(texts)
    monkeypatch.setattr(module, "suitable_length", lambda _: grams.longest)
    monkeypatch.setattr(module, "VOCABULARY", 2**20)
    H = grams.held_out(F, place, groups)
    assert H.shape == (12, len(grams.columns))
    assert (grams.fewest > 1) == (most < 10**6)
    for row, i in enumerate(place):
        others = NGrams.fit([text for text, g in zip(texts, groups, strict=True) if g != groups[i]])
        kept = others.seen >= grams.fewest
        others = replace(others, columns=others.columns[kept], seen=others.seen[kept])
        expected, found = np.zeros(2**20), np.zeros(2**20)
        expected[others.columns] = others([texts[i]]).toarray()[0]
        found[grams.columns] = H[[row]].toarray()[0]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("before", [50, 10**6])
def test_the_commonest_n_grams_are_those_of_a_fit_with_as_few(monkeypatch, before):
    import krein.measures.features as module

    texts = ["".join(row) for row in np.random.default_rng(0).choice(list("abcdef"), (60, 9))]
    monkeypatch.setattr(module, "VOCABULARY", before)
    grams, F = NGrams.fit_transform(texts)
    few, G = grams.commonest(F, 30)
    monkeypatch.setattr(module, "VOCABULARY", 30)
    expected, H = NGrams.fit_transform(texts)
    assert 0 < few.n_features <= 30
    for name in ("columns", "seen", "fewest", "n_objects"):
        np.testing.assert_array_equal(getattr(few, name), getattr(expected, name))
    np.testing.assert_allclose(G.toarray(), H.toarray(), atol=1e-12)
    np.testing.assert_allclose(few(texts).toarray(), G.toarray(), atol=1e-12)
    assert grams.commonest(F, grams.n_features) == (grams, F)


def test_features_do_not_depend_on_the_other_objects(monkeypatch):
    import krein.measures.features as module

    X, _ = make_protein_families(40, random_state=0)
    grams = NGrams.fit(X)
    together = grams(X).toarray()
    monkeypatch.setattr(module, "PART", 300)  # several parts
    np.testing.assert_array_equal(grams(X).toarray(), together)
    np.testing.assert_array_equal(grams(X[7:8]).toarray(), together[7:8])
    again = NGrams.fit(X)
    np.testing.assert_array_equal(again.columns, grams.columns)
    np.testing.assert_array_equal(again.seen, grams.seen)


def test_bytes_are_read_as_text():
    grams = NGrams.fit([word.encode() for word in WORDS])
    np.testing.assert_array_equal(
        grams([b"house"]).toarray(), NGrams.fit(WORDS)(["house"]).toarray()
    )


def test_the_length_of_n_grams_suits_alphabet_and_length():
    rng = np.random.default_rng(0)
    dna = ["".join(rng.choice(list("ACGT"), 250)) for _ in range(5)]
    assert suitable_length(dna) == 6
    assert suitable_length([*dna[1:], dna[0][:-2] + "NR"]) == 6
    assert suitable_length(make_protein_families(10, random_state=0)[0]) == 3
    random = ["".join(rng.choice(list("ABCDEFGHIJKLMNOPQRST"), n)) for n in (10, 30, 45)]
    assert suitable_length(random) == 4  # one more, because they are short
    assert suitable_length(["aaa", "aa", ""]) == 7
    # relatives are found by n-grams of one length
    near = NGrams.fit(dna, nearest=True)
    assert (near.shortest, near.longest) == (7, 7)
    assert (NGrams.fit(dna).shortest, NGrams.fit(dna).longest) == (1, 6)


def test_shares_of_n_grams_add_up_and_name_where_they_are():
    grams = NGrams.fit(WORDS)
    slope = np.random.default_rng(0).normal(size=len(grams.columns))
    told = grams.shares("house", slope)
    np.testing.assert_allclose(told.parts.sum(), (grams(["house"]) @ slope)[0])
    found = dict(told.describe(k) for k in range(len(told.parts)))
    assert found["ous"] == ((1, 4),)
    assert found["^h"] == ((0, 1),)
    assert found["e$"] == ((4, 5),)


@pytest.mark.parametrize("text", ["house", "mousemouse", "h", b"haus", "zzz"])
def test_an_n_gram_is_divided_among_its_letters(text):
    grams = NGrams.fit([*WORDS, "hhh"])
    slope = np.random.default_rng(0).normal(size=len(grams.columns))
    told = grams.shares(text, slope)
    along = np.zeros(len(text))
    for k, part in enumerate(told.parts):  # one n-gram and one letter at a time
        _, places = told.describe(k)
        for a, b in places:
            own = list(range(a, b)) or [min(a, len(text) - 1)]  # a marker alone
            for letter in own:
                along[letter] += part / len(places) / len(own)
    np.testing.assert_allclose(told.along, along, atol=1e-12)
    np.testing.assert_allclose(told.along.sum(), told.parts.sum(), atol=1e-12)


@pytest.mark.parametrize("text", ["", "a", "ac"])
def test_a_string_may_be_shorter_than_the_n_grams(text):
    """Alone, it has the same features as among others."""
    rng = np.random.default_rng(0)
    for grams in (NGrams.fit(WORDS), NGrams.fit(["".join(rng.choice(list("acgt"), 99))] * 2)):
        alone, among = grams([text]), grams([text, *WORDS])[[0]]
        np.testing.assert_array_equal(alone.toarray(), among.toarray())
        assert len(grams.shares(text, np.ones(len(grams.columns))).along) == len(text)


def series(rng, n=12):
    return [rng.normal(size=(rng.integers(30, 60), 2)).cumsum(axis=0) for _ in range(n)]


def kernel(code):
    """Return the nine weights of a kernel; the second 84 have the opposite signs."""
    weights = np.full(9, -1)
    weights[list(list(combinations(range(9), 3))[code % 84])] = 2
    return weights if code < 84 else -weights


def convolution_of(C, one, i):
    """Return a convolution by its definition, one time and one channel at a time."""
    d = int(C.dilations[i // 84])
    whole = np.rint((one - C.mean) / C.spread * UNIT).astype(int)
    value = np.zeros(len(one), dtype=int)
    for pair in range(C.pair_starts[i], C.pair_starts[i + 1]):
        signal = np.pad(whole[:, C.channel_of[pair]], 4 * d)
        w = kernel(int(C.kernel_of[pair]))
        value += [signal[t : t + 8 * d + 1 : d] @ w for t in range(len(one))]
    out_of_sight = (i // 84 + i % 84) % 2 and len(one) > 8 * d
    return value[4 * d : -4 * d] if out_of_sight else value


@pytest.mark.parametrize(("length", "channels"), [(40, 1), (33, 2), (8, 1), (2, 3), (1, 1)])
def test_convolutions_by_their_definition(length, channels):
    """Share of the times above each bias, and the longest stretch of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, length, channels)).cumsum(axis=1)
    C = Convolutions.fit(X, np.random.default_rng(1))
    found = C(X)[3] * C.scale + C.centre
    for i in range(len(C.starts) - 1):
        value = convolution_of(C, X[3], i)
        for f in range(C.starts[i], C.starts[i + 1]):
            above = value > C.biases[f]
            runs = [len(list(run)) for true, run in groupby(above) if true]
            expected = [above.mean(), max(runs, default=0) / len(value)]
            np.testing.assert_allclose(found[2 * f : 2 * f + 2], expected, atol=1e-12)


def test_biases_are_quantiles_of_training_series():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 50, 1)).cumsum(axis=1)  # so few that biases come from all of them
    C = Convolutions.fit(X, np.random.default_rng(1))
    ranks = []
    for i in range(len(C.starts) - 1):
        whole = replace(C, dilations=C.dilations[[i // 84]])  # at both ends too
        values = [whole._convolved(one, 0)[i % 84] for one in whole._whole_numbers(X)]
        own = C.biases[C.starts[i] : C.starts[i + 1], None]
        ranks.extend((np.concatenate(values) <= own).mean(axis=1))
    assert kstest(ranks, "uniform").statistic < 0.02


def test_dilations_reach_the_length_of_a_series():
    for length in (1, 8, 9, 40, 300):
        C = Convolutions.fit(np.zeros((4, length, 1)), np.random.default_rng(1))
        assert C.dilations[0] == 1
        assert C.dilations[-1] * 8 <= max(length - 1, 8) < C.dilations[-1] * 8 + 8
        assert np.diff(C.dilations).min(initial=1) == 1
        assert len(C.biases) == 84 * 32


def test_more_series_have_fewer_features():
    one = np.random.default_rng(0).normal(size=(1, 12, 1))
    numbers = [
        Convolutions.fit(np.broadcast_to(one, (n, 12, 1)), np.random.default_rng(0)).n_features
        for n in (10, 1000, 2000, 4000, 20_000)
    ]
    assert numbers == [2 * 84 * each for each in (32, 32, 16, 8, 6)]


def test_convolutions_combine_channels():
    X = [np.random.default_rng(i).normal(size=(20, 12)) for i in range(5)]
    C = Convolutions.fit(X, np.random.default_rng(1))
    sizes = np.diff(C.pair_starts)
    assert sizes.min() == 1
    assert 2 < sizes.max() <= 9
    assert set(C.channel_of) == set(range(12))
    first = C.kernel_of[C.pair_starts[:-1]]
    np.testing.assert_array_equal(first, np.arange(len(first)) % 84)
    assert C.kernel_of.max() >= 84  # with signs, differences of channels count too
    for a, b in pairwise(C.pair_starts):
        assert len(set(C.channel_of[a:b])) == b - a  # no channel twice


def test_the_longest_convolutions_fit_into_32_bits():
    """Nine channels of the largest values with the signs of their kernels."""
    C = Convolutions.fit(np.random.default_rng(0).normal(size=(4, 9, 9)), np.random.default_rng(1))
    C = replace(
        C,
        dilations=np.array([1]),
        pair_starts=9 * np.arange(85),
        channel_of=np.tile(np.arange(9), 84),
        kernel_of=np.zeros(9 * 84, dtype=np.int64),
    )
    far = np.where(kernel(0) > 0, 1e9, -1e9)[:, None] * np.ones(9)
    value = C._convolved(C._whole_numbers([far])[0], 0)[0, 4]
    assert value == 9 * 12 * FARTHEST * UNIT


def test_a_constant_part_has_no_convolution():
    """Whatever its level is: sums are exact."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(9, 1, 1)), 60, axis=1)
    X[:, :20] += rng.normal(size=(9, 20, 1))
    C = Convolutions.fit(X, np.random.default_rng(1))
    assert not C._convolved(C._whole_numbers(X[:1])[0], 0)[:, 24:56].any()


def test_series_of_different_lengths_are_stretched():
    X = series(np.random.default_rng(0))
    C = Convolutions.fit(X, np.random.default_rng(1))
    F = C(X)
    assert F.shape == (len(X), 2 * 84 * 32)
    np.testing.assert_allclose(F.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_array_equal(C(X[3:4]), F[3:4])


@pytest.mark.parametrize("length", [40, 25, 90, 1])
def test_shares_of_a_series_add_up_along_it(length):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(40, 2)).cumsum(axis=0) for _ in range(8)]
    C = Convolutions.fit(X, np.random.default_rng(1))
    slope, one = rng.normal(size=C.n_features), rng.normal(size=(length, 2)).cumsum(axis=0)
    told = C.shares(one, slope)
    np.testing.assert_allclose(told.parts, C([one])[0] * slope, atol=1e-9)
    assert told.along.shape == (length, 2)
    np.testing.assert_allclose(told.along.sum(), told.parts.sum(), atol=1e-9)
    # each channel has its part of the convolutions that see it
    for c in range(2):
        sees = [np.mean(C._channels(i) == c) for i in range(len(C.starts) - 1)]
        own = told.parts @ np.repeat(sees, 2 * np.diff(C.starts))
        np.testing.assert_allclose(told.along[:, c].sum(), own, atol=1e-9)


def test_the_longest_stretch_belongs_to_the_values_around_it():
    rng = np.random.default_rng(0)
    C = Convolutions.fit(rng.normal(size=(8, 60, 1)), np.random.default_rng(1))
    C = replace(C, centre=np.zeros(C.n_features))  # so that other times add nothing
    one = rng.normal(size=(60, 1))
    found = C([one])[0]
    for f in (1, 301):  # at the smallest dilation
        slope = np.zeros(C.n_features)
        slope[f] = 1.0
        told = C.shares(one, slope)
        i = int(np.searchsorted(C.starts, f // 2, side="right")) - 1
        longest = round(found[f] * C.scale[f] * (60 if i % 2 == 0 else 52))
        marked = np.flatnonzero(told.along[:, 0].round(12))
        assert longest > 0
        assert np.ptp(marked) + 1 <= longest + 8
        name, ((a, b),) = told.describe(f)
        assert name == f"times {a} to {b - 1}"
        assert b - a <= 9


def test_gradients_by_their_definition():
    """Add the gradient of each pixel to each cell, one at a time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 9, 12))
    G = Gradients.fit(X)
    assert (G.size, G.step) == (2, 1)
    padded, sums = np.pad(X[1], 1), np.zeros((8, 11, BINS))
    for i in range(9):
        for j in range(12):
            dx = padded[i + 1, j + 2] - padded[i + 1, j]
            dy = padded[i + 2, j + 1] - padded[i, j + 1]
            for b in range(BINS):
                away = (np.degrees(np.arctan2(dy, dx)) / 45 - b) % BINS
                share = max(0.0, 1 - min(away, BINS - away))
                sums[max(i - 1, 0) : i + 1, max(j - 1, 0) : j + 1, b] += share * np.hypot(dx, dy)
    expected = np.sqrt(sums.ravel() / sums.sum())
    np.testing.assert_allclose(G(X)[1] * G.scale + G.centre, expected, atol=1e-9)
    np.testing.assert_allclose(np.square(G(X)).sum(axis=1).mean(), 1)
    np.testing.assert_array_equal(G(X[1:2]), G(X)[1:2])
    np.testing.assert_allclose(G(7 * X), G(X), atol=1e-9)  # the unit of the pixels
    assert np.isfinite(G(np.zeros((1, 9, 12)))).all()


class Slow(DTW):
    """A measure of the user's own, between series."""


@pytest.mark.parametrize(
    ("measure", "objects", "kind"),
    [
        ("levenshtein", ["ab", "ba"], NGrams),
        (lambda a, b: len(a) + len(b), ["ab", "ba"], NGrams),
        ("dtw", [np.zeros((9, 1)), np.ones((9, 1))], Convolutions),
        ("numeric-edit", [np.zeros((9, 1)), np.ones((9, 1))], Convolutions),
        (Slow(), [np.zeros((9, 1)), np.ones((9, 1))], Convolutions),
        ("tangent", np.eye(8)[None].repeat(2, axis=0), Gradients),
        ("manhattan", np.eye(3), type(None)),
        ("hausdorff", [np.zeros((2, 2))], type(None)),
        ("precomputed", np.eye(3), type(None)),
    ],
)
def test_a_measure_supplies_the_features_of_its_objects(measure, objects, kind):
    found = get_measure(measure).feature_map(objects, np.random.default_rng(0))
    if found is None:
        assert kind is type(None)
        return
    features, F = found
    assert type(features) is kind
    assert F.shape == (2, features.n_features)
    again = features(objects)
    dense = [one if isinstance(one, np.ndarray) else one.toarray() for one in (F, again)]
    np.testing.assert_array_equal(*dense)


@pytest.mark.parametrize("nearest", [False, True])
def test_both_strands_have_the_same_features(nearest):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(30, 60, 20)]
    params = {"matrix": "NUC.4.4", "both_strands": True}
    measure = get_measure("smith-waterman", params)
    grams, F = measure.feature_map(X, rng, nearest=nearest)
    others = [reverse_complement(x) for x in X]
    np.testing.assert_array_equal(grams(others).toarray(), F.toarray())
    np.testing.assert_array_equal(measure.content_keys(X), measure.content_keys(others))
    # counted together, one strand after the other
    plain = replace(grams, both_strands=False)
    counts = [next(plain._counts(some)).toarray() for some in (X, others)]
    np.testing.assert_array_equal(next(grams._counts(X)).toarray(), counts[0] + counts[1])
    slope = rng.normal(size=grams.n_features)
    one, other = grams.shares(X[0], slope), grams.shares(others[0], slope)
    np.testing.assert_allclose(one.along, other.along[::-1], atol=1e-12)
    np.testing.assert_allclose(one.along.sum(), one.parts.sum(), atol=1e-12)


@pytest.mark.parametrize("both_strands", [False, True])
@pytest.mark.parametrize("longest", [1, 3, 6])
def test_n_grams_of_long_strings_are_counted_in_pieces(longest, both_strands, monkeypatch):
    """The size of a piece changes nothing: n-grams across two pieces count once."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT"), size=n)) for n in (0, 1, 5, 40, 3, 17)]
    whole = NGrams.fit(texts, both_strands=both_strands)
    whole = replace(whole, shortest=1, longest=longest)
    F, found = whole(texts), [whole.occurrences(text) for text in texts]
    for size in (1, 2, 7, 30):
        monkeypatch.setattr(features, "PART", size)
        np.testing.assert_array_equal(whole(texts).toarray(), F.toarray())
        for text, expected in zip(texts, found, strict=True):
            each = zip(*whole.occurrences(text), strict=True)
            assert sorted(each) == sorted(zip(*expected, strict=True))


def test_n_grams_of_a_long_string_take_little_memory():
    grams = NGrams.fit(["house", "mouse", "haus"])

    def peak(letters):
        text = ["ab" * (letters // 2)]
        tracemalloc.start()
        grams(text)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    n = 2**20
    assert peak(3 * n) - peak(n) < 20 * 2 * n


def test_a_held_out_series_is_scaled_without_its_group():
    """Its products with the others are those of features scaled without its group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 30, 1)).cumsum(axis=1)
    X[3] *= 20
    groups = np.arange(24)
    groups[5] = groups[3]
    C = Convolutions.fit(X, np.random.default_rng(1))
    F, place = C(X), np.array([3, 8])
    H = C.held_out(F, place, groups)
    for i, found in zip(place, H, strict=True):
        rest = groups != groups[i]
        plain = F * C.scale
        scale = C._floored(plain[rest].std(axis=0))
        assert np.ptp(scale / C.scale) > 0.1
        wanted = (plain[i] / scale) @ (plain[rest] / scale).T
        np.testing.assert_allclose(found @ F[rest].T, wanted, rtol=1e-9, atol=1e-12)


def test_held_out_series_are_as_far_from_others_as_new_ones():
    """Though biases and scales are those of training series, few as they are."""
    held, new = [], []
    for seed in range(30):
        X = np.random.default_rng(seed).normal(size=(200, 30, 1)).cumsum(axis=1)
        C = Convolutions.fit(X[:20], np.random.default_rng(seed))
        F = C(X)
        H = F.copy()
        H[:20] = C.held_out(F[:20], np.arange(20), np.arange(20))
        products, own = H @ F[:20].T, np.einsum("ij,ij->i", H, F)
        for found, rows in ((held, range(20)), (new, range(20, 200))):
            for i in rows:
                others = np.setdiff1d(np.arange(20), i)[:19]
                found.append(own[i] - 2 * products[i, others].mean())
    assert abs(np.mean(held) / np.mean(new) - 1) < 3 * np.std(held) / np.mean(new) / np.sqrt(600)
