"""Every example and every script of the paper runs from start to end, on less data."""

import runpy
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    path
    for folder in ("examples", "paper")
    for path in (ROOT / folder).glob("*.py")
    if path.stem != "__main__"  # which would run them all
    and 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path, tmp_path, monkeypatch):
    if path.stem == "report_picture" and not shutil.which("chromium"):
        pytest.skip("no Chromium is installed")
    output = tmp_path / ("result.png" if path.stem == "picture" else "result")
    monkeypatch.setattr(sys, "argv", [path.name, "--output", str(output), "--objects", "250"])
    if path.parent.name == "paper":
        runpy.run_module(f"paper.{path.stem}", run_name="__main__")
    else:
        runpy.run_path(str(path), run_name="__main__")
    assert output.exists()
    if path.stem.startswith("figure"):
        assert (output / f"{path.stem}.png").read_bytes().startswith(b"\x89PNG")
