"""The five-minute pages: their commands run as they stand, and print what the pages show."""

import shutil

import pytest

from .pages import START, run_shell, steps, words

pytestmark = pytest.mark.slow


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", ["sequences.md", "receptors.md", "service.md"])
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
