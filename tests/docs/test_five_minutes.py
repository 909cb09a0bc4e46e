"""The five-minute pages: their commands run as they stand, and print what the pages show.

Numbers may differ in their digits between machines; the words may not.
"""

import io
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START = ROOT / "docs" / "start"
MARK = "----- end of a block -----"


def steps(name, language):
    """Return the blocks of a page in a language, each with the output shown below it, if any."""
    text = (START / name).read_text("utf-8")
    pattern = rf"^```{language}\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
    return re.findall(pattern, text, re.DOTALL | re.MULTILINE)


def words(output):
    """Return output without the digits of numbers, and without the width of columns."""
    number = r"[\d.,]*\d(\.dev\d+)?"
    lines = [re.sub(number, "#", " ".join(line.split())) for line in output.splitlines()]
    return [line for line in lines if line]


def shell(name, folder, replaced):
    """Run the blocks of a page in one shell; return what each printed."""
    found = steps(name, "sh")
    script = "".join(f"{code}echo '{MARK}'\n" for code, _ in found)
    for old, new in replaced.items():
        script = script.replace(old, new)
    commands = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=folder,
        env={**os.environ, "PATH": commands, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    return found, run.stdout.split(MARK + "\n")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", ["sequences.md", "receptors.md", "service.md"])
def test_commands_print_what_the_page_shows(tmp_path, name):
    replaced = {}
    if name == "service.md":
        pytest.importorskip("starlette")
        pytest.importorskip("uvicorn")
        if shutil.which("curl") is None:
            pytest.skip("needs curl")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        replaced = {"8000": port}
    found, printed = shell(name, tmp_path, replaced)
    assert len(printed) == len(found) >= 4
    for (code, shown), output in zip(found, printed, strict=True):
        assert words(output) == words(shown), code


def test_python_prints_what_the_page_shows():
    found = steps("python.md", "python")
    assert len(found) == 4
    known = {"__name__": "page"}
    for code, shown in found:
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, known)
        assert words(printed.getvalue()) == words(shown), code
