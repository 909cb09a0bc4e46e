"""The report in a browser: no errors, no requests, and names on hover and by keyboard."""

from __future__ import annotations

import os
import shutil

import pytest

from krein.report import write_report

from .examples import HOSTILE, made_up

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser")) if p), None)
pytest.importorskip("playwright", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open reports; at the end, there must be no errors and no requests."""
    wrong, contexts = [], []

    def open_report(evaluation, *, width=1200, scheme="light", **options):
        path = tmp_path / "report.html"
        write_report(evaluation, path, **options)
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        url = path.as_uri()
        page.on("request", lambda r: None if r.url == url else wrong.append(f"requested: {r.url}"))
        page.goto(url)
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert wrong == []


def point_at(page, i):
    circle = page.locator("#points circle").nth(i)
    circle.scroll_into_view_if_needed()
    box = circle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_the_pointer_shows_a_name(opened):
    page = opened(made_up())
    assert page.locator("#tip").is_hidden()
    for i in (0, 17, 119):
        point_at(page, i)
        assert page.locator("#tip").is_visible()
        told = page.locator("#tip").inner_text()
        assert told.startswith("object ")
        assert "Family_" in told
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()


def test_the_keyboard_moves_from_object_to_object(opened):
    page = opened(made_up())
    page.locator("#show-landmarks").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "map"
    first = page.locator("#told").inner_text()
    assert first.startswith("object 0: Family_00")
    seen = {first}
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        seen.add(page.locator("#told").inner_text())
        assert page.locator("#tip b").inner_text() in page.locator("#told").inner_text()
    assert len(seen) >= 3
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_focus_can_be_seen(opened):
    page = opened(made_up())
    page.locator("#show-landmarks").focus()
    page.keyboard.press("Tab")
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style != "none"


def test_one_class_is_shown_and_the_rest_greyed(opened):
    page = opened(made_up(n=300, n_classes=30))
    page.select_option("#only", "7")
    assert page.locator("#points circle:not(.off)").count() == 10
    page.select_option("#only", "")
    assert page.locator("#points circle.off").count() == 0


def test_another_model_is_shown_in_detail(opened):
    page = opened(made_up(n_models=3))
    page.click("[data-pick='2']")
    assert page.locator("[data-pick='2']").get_attribute("aria-pressed") == "true"
    assert page.locator("#confusion .per-model:visible").count() == 1
    assert page.locator("#confusion .per-model:visible .which").inner_text() == "model 2"
    assert page.locator("[data-name]").first.inner_text() == "model 2"


def test_an_object_is_found_by_name_and_from_a_list(opened):
    page = opened(made_up())
    page.fill("#find", "OBJECT 42")
    assert page.locator("#tip b").inner_text() == "object 42"
    button = page.locator(".objects [data-go]:visible").first
    name = button.inner_text()
    button.click()
    assert page.locator("#tip b").inner_text() == name


def test_markup_in_names_and_labels_does_nothing(opened):
    page = opened(made_up(hostile=True), title=HOSTILE, command=HOSTILE)
    assert page.title() == HOSTILE
    point_at(page, 3)
    assert page.locator("#tip b").inner_text().startswith(HOSTILE)
    page.select_option("#only", "1")
    page.click("[data-pick='1']")
    page.wait_for_timeout(200)
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("n_classes", [2, 30])
def test_it_fits_on_a_phone(opened, n_classes):
    page = opened(made_up(n=300, n_classes=n_classes, n_models=3), width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize(("width", "shown"), [(390, "#small-labels"), (1200, "#labels")])
@pytest.mark.parametrize("n_classes", [3, 30])
def test_names_on_the_map_are_visible_and_do_not_overlap(opened, n_classes, width, shown):
    page = opened(made_up(n=600, n_classes=n_classes), width=width)
    texts = page.locator(f"{shown} text")
    assert texts.count() >= n_classes
    boxes = [texts.nth(i).bounding_box() for i in range(texts.count())]
    assert all(box is not None and box["height"] > 8 for box in boxes)
    assert page.locator(".labels:visible").count() == 1
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            # boxes of text have room above and below the letters
            above = min(a["y"] + a["height"], b["y"] + b["height"]) - max(a["y"], b["y"])
            assert beside or above < 0.2 * a["height"]


def test_tables_need_no_scrolling_on_a_phone(opened):
    page = opened(made_up(n=300, n_classes=30, n_models=3), width=390)
    for table in ("table.models", ".objects:visible"):
        box = page.locator(table).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.locator("table.models [data-h='Log-loss']").first.is_visible()


def test_dark_is_dark_and_can_be_read(opened):
    def brightness(colour):
        return sum(int(v) for v in colour[4:-1].split(",")[:3])

    shades = {}
    for scheme in ("light", "dark"):
        page = opened(made_up(), scheme=scheme)
        style = "getComputedStyle(document.body)"
        shades[scheme] = [
            brightness(page.evaluate(f"{style}.{k}")) for k in ("backgroundColor", "color")
        ]
    assert shades["light"][0] > 700 > 200 > shades["light"][1]
    assert shades["dark"][0] < 120 < 600 < shades["dark"][1]


def test_it_prints(opened, tmp_path):
    page = opened(made_up(n=300, n_classes=30), scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#controls").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert os.path.getsize(tmp_path / "report.pdf") > 20_000


def test_7000_classes_can_be_looked_at_and_searched(opened):
    page = opened(made_up(n=700, n_classes=7000, ranked=True, sure=0.3))
    assert page.locator("*").count() < 30_000
    rows = page.locator("#class-rows tr")
    assert rows.count() == 30
    assert page.locator("#class-count").inner_text().startswith("7,000 classes")
    page.fill("#find-class", "species_of_0000")
    assert page.locator("#class-count").inner_text().startswith("100 classes")
    page.fill("#find-class", "s__Species_of_000011")  # that 5 is taken for
    assert rows.count() == 1
    assert rows.locator("td").all_inner_texts() == ["1", "100 %", "50 %", "–"]
    page.fill("#find-class", "s__Species_of_000005")
    name = "s__Species_of_000011"
    assert rows.locator("td").all_inner_texts() == ["1", "0 %", "–", name]
    page.fill("#find-class", "s__Species_of_006999")  # without an object
    assert rows.locator("td").all_inner_texts() == ["0", "–", "–", "–"]
    assert page.locator("#only option").count() == 1 + 7  # kingdoms
    page.select_option("#only", "0")
    assert page.locator("#points circle:not(.off)").count() == 700
    point_at(page, 5)
    assert "f__Family00000;s__Species_of_000005, predicted as" in page.locator("#tip").inner_text()
