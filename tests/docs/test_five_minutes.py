"""The five-minute pages: their commands run as they stand, and print what the pages show."""

import json
import shutil
import sys

import pytest

from .pages import ROOT, START, run_shell, steps, words


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", ["sequences.md", "hits.md", "receptors.md", "service.md"])
def test_commands_print_what_the_page_shows(tmp_path, name):
    if name == "service.md":
        pytest.importorskip("starlette")
        pytest.importorskip("uvicorn")
        if shutil.which("curl") is None:
            pytest.skip("needs curl")
    printed, found = run_shell(START / name, tmp_path), steps(START / name, "sh")
    assert len(printed) == len(found) >= 4
    for (code, shown), output in zip(found, printed, strict=True):
        assert words(output) == words(shown), code


@pytest.mark.parametrize(
    "name",
    ["clusters", "first", "hits", "python", "receptors", "sequences", "series", "service"],
)
def test_a_notebook_has_the_code_and_output_of_its_page(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])
    from notebooks import PAGES, notebook

    assert name in PAGES
    path = START / f"{name}.md"
    made = json.loads(json.dumps(notebook(path.read_text("utf-8"))))
    assert (made["nbformat"], made["metadata"]["kernelspec"]["name"]) == (4, "python3")
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    found = {"": [], "%%bash\n": []}
    for cell in made["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            output = "".join(line for shown in cell["outputs"] for line in shown["text"])
            kind = "%%bash\n" if text.startswith("%%bash\n") else ""
            found[kind].append((text.removeprefix(kind) + "\n", output))
        else:
            assert "```" not in text
            assert ".md" not in text
    assert found[""] == steps(path, "python")
    assert found["%%bash\n"] == steps(path, "sh")
