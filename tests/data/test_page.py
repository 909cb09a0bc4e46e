"""The page on costs contains only measured figures."""

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("distributed")
    spec = importlib.util.spec_from_file_location("draw_scale", DOCS / "draw_scale.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found():
    return json.loads((DOCS / "scale.json").read_text("utf-8"))


def test_the_tables_match_the_measurements(script, found):
    text = (DOCS / "scale.md").read_text("utf-8")
    parts = script.tables(found)
    assert script.page(text, parts) == text
    assert all(part in text for part in parts.values())


def test_the_cost_model_predicts_the_held_out_runs(script, found):
    held = [r for r in found["runs"] if r["objects"] == found["held_out"]]
    assert {r["workers"] for r in held} == {1, 2}
    for r in held:
        model = script.expected(found, r["objects"], r["workers"], r["tasks"])
        assert 0.7 < model / r["seconds"] < 1.4


def test_the_picture_is_drawn(script, found, tmp_path):
    pytest.importorskip("matplotlib")
    script.draw(found, tmp_path / "scale.png")
    assert (tmp_path / "scale.png").stat().st_size > 10_000
