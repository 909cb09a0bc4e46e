"""The page of explanations: its figures agree with `explain`, and its text is escaped."""

from __future__ import annotations

import re
import shutil
import zlib
from base64 import b64decode
from html import unescape

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from krein import KreinClassifier
from krein.measures.alignments import Curves, Letters
from krein.report import write_explanations
from krein.report.drawings import COLUMNS, MOST_COLUMNS, png, side_by_side
from krein.report.explanations import ExplainedObjects, page_content

from .examples import HOSTILE

STEMS = ["house", "mouse", "horse", "louse", "haus", "maus", "ross", "laus"]
WORDS = [stem + end for stem in STEMS for end in ("", "s", "ly", "ing", "e", "en", "er", "lich")]
LANGUAGES = ["en"] * 32 + ["de"] * 32


@pytest.fixture(scope="module")
def words():
    return KreinClassifier("levenshtein").fit(WORDS, LANGUAGES).name_objects(WORDS)


def content_of(model, objects, n=3, **more):
    names = [f"new {i}" for i in range(len(objects))]
    explained = ExplainedObjects(names, objects, model.assess(objects, evidence=n), **more)
    return page_content(model, explained, None, None)


def test_the_figures_match_the_model(words):
    new = ["blouse", "hausen", "rossy"]
    found = content_of(words, new, n=2)
    assessed, whys = words.assess(new), words.explain(new, n=2)
    for told, row, why in zip(found["objects"], assessed, whys, strict=True):
        assert told["label"] == row["label"]
        assert told["p"] == row["probabilities"].max()
        assert (told["status"], told["novelty"]) == (row["status"], row["novelty"])
        assert [near["name"] for near in told["nearest"]] == [near.name for near in why.nearest]
        assert [float(near["value"]) for near in told["nearest"]] == [
            near.value for near in why.nearest
        ]
        # the bars add up to the score
        total = sum(part["value"] for part in told["parts"])
        assert total == pytest.approx(why.score, abs=1e-9)
        assert max(part["bar"] for part in told["parts"]) == 50


def shade(level):
    """The number that a colour stands for: −4 to 4."""
    side, _, strength = level.partition(" s")
    return 0 if not level else int(strength) * (1 if side == "for" else -1)


def test_letters_are_marked_by_what_they_add(words):
    new = ["blouse", "hausen", "lausmausig"]
    found = content_of(words, new)
    for told, one, why in zip(found["objects"], new, words.explain(new), strict=True):
        own, n = told["own"], 0
        assert own["amount"] == f"{why.from_features:+.2f}".replace("-", "−")
        runs = [run for group in own["groups"] for run in group["runs"]]
        assert "".join(letters for _, letters in runs) == one
        for level, letters in runs:
            for value in why.along[n : n + len(letters)] / np.abs(why.along).max():
                assert abs(shade(level) - 4 * value) <= 0.5
            n += len(letters)
        assert [name for name, _, _ in own["listed"]] == [share.name for share in why.features]
        assert 4 in [abs(shade(level)) for _, level, _ in own["listed"]]


def test_a_long_string_is_shown_where_it_counts(tmp_path):
    rng = np.random.default_rng(0)

    def filler(n):
        return "".join(rng.choice(list("abcdefgh"), n))

    X = [filler(1500) + sign * 20 + filler(100) for sign in ("xyz", "zyx") * 30]
    model = KreinClassifier("levenshtein", n_landmarks=10, neighbours=0).fit(X, [0, 1] * 30)
    (told,) = content_of(model, X[:1])["objects"]
    own = told["own"]
    shown = "".join(letters for group in own["groups"] for _, letters in group["runs"])
    assert len(shown) == MOST_COLUMNS
    assert own["left_out"] == len(X[0]) - MOST_COLUMNS
    start = own["groups"][0]["i"] - 1
    assert shown == X[0][start : start + MOST_COLUMNS]
    assert "xyz" * 20 in shown


def test_a_series_is_marked_where_it_counts():
    """The classes differ by a bump in the second channel, which is at another place each time."""
    rng = np.random.default_rng(0)
    X, y, bumps = [], np.arange(90) % 2, []
    for label in y:
        T = int(rng.integers(70, 90))
        one = 0.2 * rng.normal(size=(T, 2))
        bumps.append(rng.uniform(0.2, 0.8))
        one[:, 1] += 3 * label * np.exp(-0.5 * ((np.arange(T) - bumps[-1] * T) / 4) ** 2)
        X.append(one)
    model = KreinClassifier("dtw", n_landmarks=10).fit(X[:80], y[:80])
    for told, one, bump, label in zip(
        content_of(model, X[80:])["objects"], X[80:], bumps[80:], y[80:], strict=True
    ):
        first, second = told["own"]["panels"]
        assert [first["channel"], second["channel"]] == [0, 1]
        strong = [(x, x + width) for level, x, width in second["marks"] if abs(shade(level)) >= 3]
        assert strong
        assert max((abs(shade(level)) for level, _, _ in first["marks"]), default=0) < 4
        if label == 1:
            assert any(a - 60 <= 640 * bump <= b + 60 for a, b in strong)
        assert told["own"]["last"] == len(one) - 1
        assert all(x >= 0 and x + width <= 640.1 for _, x, width in second["marks"])


def test_features_that_decide_alone_say_so(tmp_path):
    dear = KreinClassifier("levenshtein", n_landmarks=10, price=0.1).fit(WORDS, LANGUAGES)
    (why,) = dear.explain(["mouses"])
    (told,) = content_of(dear, ["mouses"])["objects"]
    assert why.sure
    assert told["own"]["sure"]
    assert [part["name"] for part in told["parts"]] == [
        "its own features",
        "baseline: an average object",
    ]
    assert sum(part["value"] for part in told["parts"]) == pytest.approx(why.score, abs=1e-9)
    write_explanations(dear, ["mouses"], tmp_path / "why.html")
    assert "certain enough to decide without a comparison" in (tmp_path / "why.html").read_text()


def test_an_object_is_shown_beside_the_known_one_that_is_named(words):
    for told in content_of(words, ["blouse", "hausen"])["objects"]:
        for near in told["nearest"]:
            rows = ["".join(run[k] for g in near["beside"]["groups"] for run in g["runs"])
                    for k in (1, 3)]  # fmt: skip
            assert rows[0].replace("·", "") in ("blouse", "hausen")
            assert rows[1].replace("·", "") == near["name"]


def test_known_objects_are_found_among_landmarks_and_candidates():
    digits = load_digits()
    model = KreinClassifier("tangent").fit(digits.images[:450], digits.target[:450])
    assert model.model_.second_look is not None
    for i, told in enumerate(content_of(model, digits.images[450:460])["objects"]):
        for near in told["nearest"]:
            row = int(near["name"].removeprefix("row "))
            shown = dict(near["beside"]["images"])
            span = max(digits.images[450 + i].max(), digits.images[row].max())
            assert shown["the known one"] == png(digits.images[row] / span)
            assert shown["this object"] == png(digits.images[450 + i] / span)


def test_precomputed_values_are_not_shown_side_by_side():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(4, 1, (40, 2))])
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    model = KreinClassifier("precomputed-distance").fit(D, ["a"] * 40 + ["b"] * 40)
    for told in content_of(model, D[:3])["objects"]:
        assert {near["beside"]["kind"] for near in told["nearest"]} == {"none"}


def test_columns_of_a_frame_are_named(tmp_path):
    frame = load_iris(as_frame=True)
    model = KreinClassifier("rbf").fit(frame.data, frame.target)
    found = content_of(model, frame.data.iloc[:2])
    names = [row[0] for row in found["objects"][0]["nearest"][0]["beside"]["rows"]]
    assert names == frame.data.columns.tolist()
    write_explanations(model, frame.data.iloc[:2], tmp_path / "why.html")


def test_letters_are_numbered_without_gaps():
    a, b = "ABCDEFGHIJKLMNOP", "ABCDE--HIJKLMNOP"
    marks = "".join("-" if y == "-" else "|" for y in b)
    found = side_by_side(Letters(a, b, marks, (4, 9), (30, 40)))
    assert [(g["i"], g["j"]) for g in found["groups"]] == [(5, 10), (15, 18)]
    assert "covers 53\u00a0% of this object and 35\u00a0% of the known one" in found["caption"]
    assert "Identity 88\u00a0%: 14 of 16 columns" in found["caption"]


def test_a_sign_for_a_gap_may_also_be_a_letter():
    found = side_by_side(Letters("a·c", "a·d", "|| ", (0, 0), (3, 3), "·"))
    assert "67\u00a0%" in found["caption"]
    assert "covers" not in found["caption"]
    assert found["groups"][0]["runs"][0] == ("same", "a·", "||", "a·")


def test_long_alignments_are_cut_and_say_so():
    n = MOST_COLUMNS + 25
    found = side_by_side(Letters("A" * n, "A" * n, "|" * n, (0, 0), (n, n)))
    assert len(found["groups"]) == MOST_COLUMNS // COLUMNS
    assert found["left_out"] == 25


def test_curves_of_any_length_are_drawn():
    one = Curves(np.zeros((1, 1)), np.zeros((5, 1)), np.array([[0, j] for j in range(5)]))
    flat = side_by_side(one)
    assert len(flat["panels"]) == 1
    assert "nan" not in flat["panels"][0]["links"] + flat["panels"][0]["first"]
    long = side_by_side(
        Curves(np.ones((10**5, 7)), np.ones((9, 7)), np.empty((0, 2), dtype=np.intp))
    )
    assert len(long["panels"]) == 3
    assert "3 of 7 channels" in long["caption"]
    assert long["panels"][0]["first"].count("L") < 1000


def test_a_png_contains_the_picture():
    shares = np.array([[0.0, 0.5, 1.0], [1.0, 0.2, 0.0]])
    raw = b64decode(png(shares).partition(",")[2])
    at = raw.index(b"IDAT")
    size = int.from_bytes(raw[at - 4 : at], "big")
    rows = np.frombuffer(zlib.decompress(raw[at + 4 : at + 4 + size]), np.uint8).reshape(2, 4)
    np.testing.assert_array_equal(rows[:, 0], 0)
    np.testing.assert_array_equal(rows[:, 1:], np.rint(255 * (1 - shares)))


def hostile_page(path):
    """Names, labels and the objects themselves contain markup, which is marked as letters."""
    labels = np.array([HOSTILE + label for label in LANGUAGES])
    objects = [f"{word}{HOSTILE}" for word in WORDS]
    model = KreinClassifier("levenshtein").fit(objects, labels)
    model.name_objects([HOSTILE + word for word in WORDS])
    new = [HOSTILE, f"house{HOSTILE}"]
    assert model.explain(new)[1].along is not None
    write_explanations(model, new, path, names=new, title=HOSTILE)


def test_names_labels_and_objects_are_escaped(tmp_path):
    hostile_page(tmp_path / "why.html")
    text = (tmp_path / "why.html").read_text("utf-8")
    assert "<script" not in text
    assert "http://127.0.0.1:9" not in re.sub(r">[^<]*<|=\"[^\"]*\"", "", text)
    assert unescape(re.search("<title>(.*)</title>", text)[1]) == HOSTILE


def test_objects_beyond_the_limit_are_counted(words, tmp_path):
    path = tmp_path / "why.html"
    write_explanations(words, WORDS, path, max_objects=2)
    text = path.read_text("utf-8")
    assert text.count('<section id="o') == 2
    assert "62 more objects are not on this page" in text
    with pytest.raises(ValueError, match="1 names for 64 objects"):
        write_explanations(words, WORDS, path, names=["a"])
    assert path.read_text("utf-8") == text  # nothing half-written


CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser")) if p), None)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_and_fetches_nothing(tmp_path, width, scheme):
    pytest.importorskip("playwright", reason="playwright is not installed")
    from playwright.sync_api import sync_playwright

    path, wrong = tmp_path / "why.html", []
    hostile_page(path)
    with sync_playwright() as playwright:
        args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda r: None if r.url == path.as_uri() else wrong.append(r.url))
        page.goto(path.as_uri())
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.title() == HOSTILE
        assert page.locator("img").count() == 0
        browser.close()
    assert wrong == []
