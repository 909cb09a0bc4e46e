"""A report shows the results, without overlapping text, and with markup escaped."""

from __future__ import annotations

import builtins
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array

from krein.core.ranks import Ranks
from krein.evaluation import evaluate
from krein.evaluation.heldout import Reliability
from krein.evaluation.result import Duplicates
from krein.report import render_report, write_report
from krein.report.charts import (
    LETTER,
    chosen_point,
    growth_chart,
    look_charts,
    merged_bins,
    nice_ticks,
    percent,
    reject_chart,
    reliability_chart,
    spectrum_chart,
    wilson_interval,
)
from krein.report.confusion import MATRIX_CLASSES, class_figures, confusion_matrix, matrices_by_rank
from krein.report.content import CONFIDENT, breakable, headline, paired_difference, report_content
from krein.report.objectmap import (
    COLOURS,
    _overlap,
    class_colours,
    draw_map,
    neighbours,
    text_width,
)
from krein.report.page import embedded

from .examples import HOSTILE, made_up

VOID = {"meta", "br", "wbr", "input", "img", "link", "circle", "path"}

SLOW_SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2)]


class Reader(HTMLParser):
    """Parses a page and keeps what the tests check."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids, self.headings, self.text = [], [], [], [], []
        self.attributes = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def content(evaluation, **options):
    return report_content(
        evaluation, **{"title": None, "command": None, "threshold": None} | options
    )


CORNERS = {
    "two classes": {"n_classes": 2},
    "one model": {"n_models": 1},
    "thirty classes, six models": {"n": 600, "n_classes": 30, "n_models": 6},
    "a matrix that is a kernel": {"given": True, "psd": True},
    "nothing wrong": {"perfect": True},
    "no growth": {"grown": False},
    "a part of the objects on the map": {"n": 300, "shown": 80},
    "hostile": {"hostile": True},
    "many classes": {"n": 300, "n_classes": 200},
    "many classes with ranks": {"n": 300, "n_classes": 200, "ranked": True},
    "most classes without an object": {"n": 50, "n_classes": 90, "perfect": True},
}


@cache
def corner(name):
    """The page of a corner case, as text."""
    return render_report(made_up(**CORNERS[name]), command="krein evaluate x")


@pytest.mark.parametrize("name", CORNERS)
def test_every_element_closes_and_headings_go_down_one_at_a_time(name):
    page = Reader(corner(name))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    steps = np.diff(page.headings)
    assert steps.max() <= 1
    assert "nan" not in " ".join(page.text).replace("[", " ").split()


@pytest.mark.parametrize("name", CORNERS)
def test_nothing_is_fetched(name):
    page = Reader(corner(name))
    assert page.tags.count("script") == 2  # the data and our own
    assert not {"img", "link", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    for _, name, value in page.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "action", "data", "srcset"):
            assert value.startswith("#")


def test_hostile_names_are_preserved():
    text = render_report(made_up(hostile=True), title=HOSTILE, command=HOSTILE)
    page = Reader(text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert data["names"][5] == f"{HOSTILE}5"
    assert data["classes"][0] == f"{HOSTILE}00"
    assert any(HOSTILE in part for part in page.text)


def test_data_in_a_script_element_cannot_end_it():
    nasty = "</ScRiPt><!--<script>\u2028&"
    text = embedded([nasty])
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == [nasty]


def test_the_script_is_allowed_only_by_its_hash():
    import base64
    import hashlib

    text = render_report(made_up())
    script = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert f"script-src &#39;sha256-{digest}" in policy or f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "eval" not in script[0]
    assert "innerHTML" not in script[0]


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(made_up(), path, title="first")
    before = path.read_text("utf-8")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("krein.io.writing.os.fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        write_report(made_up(), path, title="second")
    assert path.read_text("utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_name_with_invalid_utf8_is_written(tmp_path):
    evaluation = made_up()
    evaluation.names[0] = b"caf\xe9".decode("utf-8", "surrogateescape")
    write_report(evaluation, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8")


def test_without_jinja2_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def no_jinja(name, *rest):
        if name == "jinja2":
            raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_jinja)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "krein\[report\]"'):
        render_report(made_up())


def test_a_report_of_many_objects_stays_small():
    text = render_report(made_up(n=8000, n_classes=30, n_models=6, shown=4000))
    assert len(text.encode()) < 3_000_000


def test_an_impossible_threshold_is_refused():
    with pytest.raises(ValueError, match=r"from 0 to 1; got 1\.5"):
        render_report(made_up(), threshold=1.5)


class TestLists:
    def test_surprising_objects_are_wrong_and_surest_first(self):
        evaluation = made_up(n=300, n_classes=4, ranked=True, sure=0.2)
        for model, told in zip(
            evaluation.models.values(), content(evaluation)["models"], strict=True
        ):
            listed = told["surprising"]
            sure = [row["p"] for row in listed]
            assert sure == sorted(sure, reverse=True)
            assert min(sure) >= CONFIDENT
            assert all(row["first"] != row["true"] for row in listed)
            assert max(model.probabilities[~model.right].max(axis=1)) == sure[0]

    def test_an_error_without_confidence_is_no_surprise(self):
        evaluation = made_up(n=200, seed=3)
        told = content(evaluation)["models"][0]
        assert told["errors"] > 0
        assert told["surprising"] == []
        text = render_report(evaluation)
        assert "There are none: the most probable wrong label has" in text

    def test_no_object_is_in_both_lists(self):
        for sure in (0.1, 0.5, 2.0):
            for told in content(made_up(n=60, ranked=True, sure=sure))["models"]:
                confident, doubtful = (
                    {row["name"] for row in told[name]} for name in ("surprising", "doubtful")
                )
                assert not confident & doubtful
                assert all(row["p"] < CONFIDENT for row in told["doubtful"])

    def test_doubtful_objects_have_the_smallest_margins(self):
        evaluation = made_up(n=200, seed=4)
        model = next(iter(evaluation.models.values()))
        ranked = np.sort(model.probabilities, axis=1)
        margins = np.sort(ranked[:, -1] - ranked[:, -2])
        listed = content(evaluation)["models"][0]["doubtful"]
        np.testing.assert_allclose([row["p"] - row["q"] for row in listed], margins[: len(listed)])

    def test_the_most_frequent_confusions_come_first(self):
        told = content(made_up(n=400, n_classes=5))["models"][1]
        counts = [row["count"] for row in told["confusions"]]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] == max(
            cell["count"]
            for row in told["matrix"]["rows"]
            for cell in row["cells"]
            if not cell["right"]
        )


class TestChosenPoint:
    def test_errors_among_the_answers_are_at_most_half(self):
        for seed in range(5):
            model = made_up(n=300, seed=seed).best
            point = chosen_point(model, None)
            assert 1 - point.accuracy <= (1 - model.right.mean()) / 2 + 1e-12
            # and with one more answer there would be too many errors
            less = model.probabilities.max(axis=1)
            below = less[less < point.threshold]
            if len(below):
                accepted = less >= below.max()
                assert 1 - model.right[accepted].mean() > (1 - model.right.mean()) / 2

    def test_a_given_threshold_is_used(self):
        model = made_up().best
        point = chosen_point(model, 0.6)
        assert point.coverage == np.mean(model.probabilities.max(axis=1) >= 0.6)

    def test_there_is_none_without_errors_or_answers(self):
        assert chosen_point(made_up(perfect=True).best, None) is None
        assert chosen_point(made_up().best, 1.0) is None


class TestCharts:
    def test_everything_stays_on_the_canvas(self):
        for options in ({}, {"n": 600, "n_classes": 30, "n_models": 6}, {"perfect": True}):
            evaluation = made_up(**options)
            models = list(evaluation.models.values())
            charts = [
                reliability_chart(models),
                reject_chart(models, [chosen_point(m, None) for m in models]),
                spectrum_chart(evaluation.spectrum.eigenvalues),
                growth_chart(models),
            ]
            for chart in charts:
                drawn = " ".join([line.path for line in chart.lines] + [d for _, d in chart.shapes])
                for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", drawn):
                    assert chart.left <= float(x) <= chart.right
                    assert chart.top - 1 <= float(y) <= chart.bottom + 1
                assert chart.alternative

    def test_ticks_are_round_and_inside(self):
        for low, high in ((0, 1), (0.93, 1), (0, 8031), (0, 3e-5), (5, 5)):
            ticks = nice_ticks(low, high)
            assert ticks
            assert min(ticks) >= low - 1e-9
            assert max(ticks) <= high + 1e-9
            assert len(ticks) <= 11

    def test_the_negative_part_is_drawn_only_where_there_is_one(self):
        assert "negative" in dict(spectrum_chart(np.array([3.0, 1, -1])).shapes)
        assert "negative" not in dict(spectrum_chart(np.array([3.0, 1, 0])).shapes)
        spectrum_chart(np.zeros(4))  # nothing to see, and no error


class TestMap:
    def drawn(self, n_classes, n=600, seed=0):
        evaluation = made_up(n=n, n_classes=n_classes, seed=seed)
        codes = np.searchsorted(evaluation.classes, evaluation.labels)
        return draw_map(evaluation.map, codes, [str(c) for c in evaluation.classes])

    def test_points_lie_inside(self):
        for n_classes in (2, 30):
            drawn = self.drawn(n_classes)
            assert (drawn.xy >= 0).all()
            assert (drawn.xy <= [drawn.width, drawn.height]).all()

    @pytest.mark.parametrize("n_classes", [3, 12, 30, 60, 99])
    @pytest.mark.parametrize("seed", [0, *SLOW_SEEDS])
    def test_names_do_not_overlap_on_a_screen_or_a_phone(self, n_classes, seed):
        drawn = self.drawn(n_classes, seed=seed)
        for labels, letter in (
            (drawn.labels, drawn.letter),
            (drawn.small_labels, drawn.small_letter),
        ):
            boxes = []
            for label in labels:
                w, h = text_width(label.text, letter), 1.2 * letter
                boxes.append((label.x - w / 2, label.y - h / 2, label.x + w / 2, label.y + h / 2))
                assert boxes[-1][0] >= 0
                assert boxes[-1][2] <= drawn.width
            overlaps = [_overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
            assert max(overlaps) == 0
        if n_classes <= 60:  # beyond that there is no room for all
            assert {label.code for label in drawn.labels} == set(range(n_classes))
        if n_classes <= 30:
            assert {label.code for label in drawn.small_labels} == set(range(n_classes))

    @pytest.mark.parametrize("n_classes", [9, 12, 20, 30, 60, 100])
    def test_no_two_neighbours_share_a_colour(self, n_classes):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            anchors = {
                c: [tuple(p) for p in rng.uniform(0, 1000, (rng.integers(1, 4), 2)).tolist()]
                for c in range(n_classes)
            }
            colours = np.array(class_colours(anchors, n_classes))
            beside = neighbours(anchors)
            assert beside.any()
            assert not (beside & (colours[:, None] == colours)).any()

    def test_neighbours_have_nothing_between_them(self):
        row = {c: [(100.0 * c, 0.0)] for c in range(5)}
        expected = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) == 1
        np.testing.assert_array_equal(neighbours({**row, 5: [(200.0, 1e4)]})[:5, :5], expected)

    def test_few_classes_have_a_colour_of_their_own_and_many_share_all(self):
        assert len(set(self.drawn(8).colours)) == 8
        colours = self.drawn(30).colours
        assert set(colours) == set(range(COLOURS))
        assert max(np.bincount(colours)) <= 30 / COLOURS + 4

    def test_objects_that_are_all_one_point_are_drawn(self):
        evaluation = made_up(n=40)
        found = evaluation.map
        same = type(found)(found.objects, np.zeros((40, 2)), found.landmarks, None, 0, 0, "axes")
        codes = np.searchsorted(evaluation.classes, evaluation.labels)
        assert np.isfinite(draw_map(same, codes, ["a", "b", "c"]).xy).all()


def test_long_names_may_be_broken_and_stay_escaped():
    assert breakable("Kinase_Atp+Protein_St") == "Kinase_<wbr>Atp+<wbr>Protein_<wbr>St"
    assert breakable("POL_HV2NZ") == "POL_HV2NZ"
    for name in ("<script_x>", "<script_x>" * 9):
        assert "<script" not in breakable(name)


def test_small_shares_are_not_shown_as_zero():
    assert [percent(v, 1) for v in (0, 0.0001, 0.002, 1)] == [
        "0.0\u00a0%",
        "< 0.1\u00a0%",
        "0.2\u00a0%",
        "100.0\u00a0%",
    ]


class TestUnknown:
    def test_the_hardest_class_comes_first(self):
        found = report_content(made_up(n_classes=20), title=None, command=None, threshold=None)
        told = found["unknown"]
        areas = [row["auroc"] for row in told["rows"] + told["more"]]
        assert areas == sorted(areas)
        assert len(told["rows"]) == 12
        assert len(areas) == 20
        assert told["rows"][0]["class"] == "Family_19+Long_Name"
        assert told["rows"][0]["nearest"] == "Family_00+Long_Name"

    def test_a_doubtful_label_is_reported_with_the_nearest_objects(self):
        told = report_content(made_up(), title=None, command=None, threshold=None)["suspect_labels"]
        (row,) = told["rows"]
        assert (row["name"], row["label"]) == ("object 3", "Family_00+Long_Name")
        assert [near["name"] for near in row["nearest"]] == ["object 4", "object 5", "object 6"]
        text = render_report(made_up())
        assert "Possibly mislabelled" in text
        assert "There are none: no label is contradicted" in render_report(made_up(perfect=True))

    def test_models_of_one_look_have_no_such_section(self):
        evaluation = made_up()
        models = {
            name: replace(model, looks=None, unknown=None)
            for name, model in evaluation.models.items()
        }
        text = render_report(replace(evaluation, models=models))
        assert 'id="unknown"' not in text
        assert "The benefit of comparisons" not in text
        assert "Possibly mislabelled" not in text

    def test_the_charts_contain_a_line_and_points(self):
        accuracy, loss = look_charts(list(made_up(n_models=3).models.values()))
        for chart in (accuracy, loss):
            assert [len(line.markers) for line in chart.lines] == [3, 1, 1]
            assert len(chart.notes) == 1
            xs = [x for line in chart.lines for x, _, _ in line.markers]
            ys = [y for line in chart.lines for _, y, _ in line.markers]
            assert chart.left <= min(xs) <= max(xs) <= chart.right
            assert chart.top <= min(ys) <= max(ys) <= chart.bottom
            assert [t.at for t in chart.xticks] == sorted(t.at for t in chart.xticks)
        assert "90.0\u00a0% with 40 after the first look" in accuracy.alternative
        assert "0.210 with 46 by default" in loss.alternative


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, None),
        ({"landmarks": "random", "n_landmarks": 4}, "random, 4"),
        ({"landmarks": "all"}, "all"),
        ({"n_landmarks": 4}, "4"),
    ],
)
def test_only_given_settings_of_landmarks_are_shown(given, shown):
    X = np.random.default_rng(0).normal(size=(24, 2)) + np.repeat([0, 3], 12)[:, None]
    found = evaluate(X, np.repeat(["a", "b"], 12), "logistic", measure="rbf", folds=2, **given)
    content = report_content(found, title=None, command=None, threshold=None)
    assert dict(content["settings"]).get("landmarks") == shown
    assert found.summary()["settings"]["landmarks"] == given.get("landmarks")


def renamed(evaluation, paths):
    """Return an evaluation with other labels, in the same order."""
    classes, new = evaluation.classes, np.array(paths)
    labels = new[np.searchsorted(classes, evaluation.labels)]
    models = {
        name: replace(model, classes=new, labels=labels)
        for name, model in evaluation.models.items()
    }
    return replace(evaluation, classes=new, labels=labels, models=models)


def test_taxonomy_labels_are_shown_by_their_last_rank():
    above = "d:Bacteria,p:Proteobacteria,c:Gammaproteobacteria,o:Enterobacterales"
    paths = [f"{above},g:{name}" for name in ("Escherichia", "Salmonella", "Yersinia")]
    found = renamed(made_up(n_classes=3), paths)
    text = render_report(found)
    page = Reader(text)
    shown = "".join(page.text[: page.text.index(next(t for t in page.text if '"classes"' in t))])
    assert "Gammaproteobacteria" not in shown
    assert "g:Yersinia" in shown
    titles = {value for _, name, value in page.attributes if name == "title"}
    assert set(paths) <= titles  # the path on hover
    labels = {label.text for label in content(found)["map"].labels}
    assert labels == {"g:Escherichia", "g:Salmonella", "g:Yersinia"}
    assert content(found)["data"]["classes"] == paths


def test_small_bins_of_the_reliability_diagram_are_merged():
    count = np.array([3, 0, 4, 30, 1, 50, 2, 2])
    confidence = np.linspace(0.1, 0.9, 8)
    accuracy = np.linspace(0.0, 1.0, 8)
    bins = Reliability(np.linspace(0, 1, 9), count, confidence, accuracy)
    found = merged_bins(bins)
    assert [n for n, _, _ in found] == [37, 55]
    assert sum(n * p for n, p, _ in found) == pytest.approx(count @ confidence)
    assert sum(n * a for n, _, a in found) == pytest.approx(count @ accuracy)
    for n, a in ((20, 0.0), (20, 1.0), (500, 0.5)):
        low, high = wilson_interval(a, n)
        assert 0 <= low <= a <= high <= 1 + 1e-12


def test_one_group_of_duplicates_is_one_group():
    found = made_up()
    one = replace(found, duplicates=Duplicates([np.array([0, 1])], 1))
    text = render_report(one)
    assert "2 objects form one group with equal contents" in text
    assert "It has members with different labels" in text


def test_the_worth_of_each_part_is_in_one_place():
    text = render_report(made_up())
    section = text[text.index("What each part is worth") : text.index("The benefit of")]
    found = re.findall(r"<tr><th scope=\"row\">([^<]*)</th>(.*?)</tr>", section)
    cells = {name: re.findall(r">([^<]*)</td>", row) for name, row in found}
    assert cells == {
        "features": ["0.40", "0.310", "0.250"],
        "ikfd": ["0.70", "0.280", "0.290"],
        "all together": ["", "0.240", ""],
        "look zero": ["100\u00a0%", "0", "0.300"],
        "+ first look": ["36\u00a0%", "14", "0.240"],
        "+ second look": ["10\u00a0%", "17", "0.210"],
    }
    assert "What each part is worth" not in render_report(made_up(given=True))


class TestManyClasses:
    def test_the_matrix_has_the_most_frequent_confusions(self):
        rng = np.random.default_rng(0)
        dense = rng.poisson(0.02, (100, 100)) + 5 * np.eye(100, dtype=int)
        dense[7, 90], dense[40, 3] = 9, 8
        table = csr_array(dense)
        names = [f"c{k:02d}" for k in range(100)]
        found = confusion_matrix(table, names)
        shown = [row["name"] for row in found["rows"]]
        assert (len(shown), found["all"]) == (MATRIX_CLASSES, False)
        assert {"c03", "c07", "c40", "c90"} < set(shown)
        where = [names.index(name) for name in shown]
        inside = dense[np.ix_(where, where)]
        assert (
            inside > 0
        ).sum() - MATRIX_CLASSES >= MATRIX_CLASSES // 2  # each one is confused with another
        for row in found["rows"]:
            k = names.index(row["name"])
            assert [cell["count"] for cell in row["cells"]] == [
                dense[k, names.index(name)] for name in shown
            ]
            assert row["elsewhere"] + sum(c["count"] for c in row["cells"]) == dense[k].sum()
            assert row["recall"] == dense[k, k] / dense[k].sum()
            assert row["precision"] == dense[k, k] / dense[:, k].sum()

    def test_a_class_without_objects_has_no_recall(self):
        table = csr_array(np.array([[3, 0, 1], [0, 0, 0], [0, 0, 2]]))
        rows = confusion_matrix(table, ["a", "b", "c"])["rows"]
        assert [row["recall"] for row in rows] == [0.75, None, 1.0]
        assert [row["precision"] for row in rows] == [1.0, None, 2 / 3]

    def test_confusions_of_a_rank_are_sums_of_those_of_its_classes(self):
        names = ["a;x", "a;y", "b;z"]
        table = csr_array(np.array([[3, 2, 1], [0, 4, 0], [0, 1, 5]]))
        (found,) = matrices_by_rank(table, Ranks.of(names, ";"))
        assert [[c["count"] for c in row["cells"]] for row in found["rows"]] == [[9, 1], [1, 5]]
        assert (found["rank"], found["errors"]) == (1, 2)

    def test_the_list_names_what_a_class_is_taken_for(self):
        model = made_up(n=300, n_classes=6, sure=6.0).best
        found, dense = class_figures(model), model.confusion.toarray()
        for c in range(6):
            assert found["size"][c] == dense[c].sum()
            assert found["right"][c] == dense[c, c]
            assert found["answered"][c] == dense[:, c].sum()
            off = dense[c].copy()
            off[c] = 0
            assert off[found["other"][c]] == off.max()

    def test_the_map_shows_an_upper_rank(self):
        found = content(made_up(n=600, n_classes=600, ranked=True))
        assert found["grouped_by"] == "order"
        assert found["group_names"][0] == "o__Order0000"
        assert {label.text for label in found["map"].labels} <= set(found["group_names"])
        codes, groups = found["data"]["code"], found["data"]["group"]
        for code, group in zip(codes, groups, strict=True):
            assert f";{found['group_names'][group]};" in found["data"]["classes"][code]
        plain = content(made_up(n=600, n_classes=300))
        assert plain["grouped_by"] == "size"
        assert plain["group_names"][-1] == "all other classes"
        assert "all other classes" not in {label.text for label in plain["map"].labels}

    def test_a_report_of_7000_classes_is_small(self):
        evaluation = made_up(n=700, n_classes=7000, ranked=True)
        text = render_report(evaluation)
        assert len(text.encode()) < 5_000_000
        assert "-0.000" not in text


class TestHeadline:
    def evaluation(self, gain):
        """Return one in which a model without comparisons is worse by about `gain`.

        It has the probabilities of other objects of the same class, so that gains vary.
        """
        found = made_up(n=390, n_classes=3)
        (name, one), (other, two) = found.models.items()
        logits = np.log(np.roll(one.probabilities, 3, axis=0))
        logits[np.arange(390), one.codes] -= gain
        P = np.exp(logits)
        free = replace(two, probabilities=P / P.sum(axis=1, keepdims=True), comparisons=0.0)
        return replace(found, models={name: one, other: free})

    def test_comparisons_pay_off_only_if_the_difference_is_clear(self):
        texts = [" ".join(headline(self.evaluation(gain))) for gain in (0.005, 2.0)]
        assert "Whether comparisons pay off is not clear" in texts[0]
        assert "Comparisons pay off" in texts[1]

    def test_the_error_is_that_of_paired_differences_and_grows_with_groups(self):
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(2, 90))
        mean, error = paired_difference(a, b, None)
        assert mean == pytest.approx((a - b).mean())
        assert error == pytest.approx((a - b).std() / np.sqrt(90))
        copies = np.repeat(np.arange(90), 4)
        same = paired_difference(a[copies], b[copies], copies)
        assert same == pytest.approx((mean, error))


def test_strings_without_names_are_shown_themselves():
    evaluation = made_up(n=60)
    texts = ["x" * 100, *(f"word{i}" for i in range(1, 60))]
    for prefix in ("row ", ""):
        names = [f"{prefix}{i}" for i in range(3, 63)]
        shown = content(replace(evaluation, names=names, texts=texts))["data"]["names"]
        assert shown[0] == "x" * 39 + "… (row 3)"
        assert shown[1] == "word1 (row 4)"
    for own in (["mine", *names[1:]], names[::-1]):  # numbers may be names
        shown = content(replace(evaluation, names=own, texts=texts))["data"]["names"]
        assert shown == own


def test_one_split_has_no_spread():
    evaluation = made_up()
    zeros = np.zeros(120, dtype=int)
    models = {name: replace(m, folds=zeros) for name, m in evaluation.models.items()}
    one = replace(evaluation, folds=zeros, models=models, n_train=500)
    assert "<small>±" in render_report(evaluation)
    text = render_report(one)
    assert "<small>±" not in text
    assert "Over all 1 folds" not in text


@pytest.mark.parametrize("seed", range(4))
def test_captions_do_not_lie_on_curves(seed):
    models = list(made_up(n=400, n_classes=4, n_models=3, seed=seed).models.values())
    charts = [
        reject_chart(models, [chosen_point(m, None) for m in models]),
        growth_chart(models),
        *look_charts(models),
    ]
    for chart in charts:
        # as for the placement: the positions that lines connect
        points = np.array(
            [
                (float(x), float(y))
                for line in chart.lines
                if line.kind == "line"
                for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", line.path)
            ]
        )
        assert chart.notes
        for note in chart.notes:
            width = text_width(note.text, LETTER)
            left = note.tx - {"start": 0, "end": width, "middle": width / 2}[note.anchor]
            assert chart.left <= left
            assert left + width <= chart.width
            box = (points > [left, note.ty - LETTER]) & (points < [left + width, note.ty])
            assert not box.all(axis=1).any()
