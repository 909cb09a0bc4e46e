"""Every example runs from start to end, on less data."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch):
    output = tmp_path / ("result.png" if path.stem == "picture" else "result")
    monkeypatch.setattr(sys, "argv", [path.name, "--output", str(output), "--objects", "250"])
    runpy.run_path(str(path), run_name="__main__")
    assert output.exists()
