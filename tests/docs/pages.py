"""Run the code on the pages, and update the output that they show: python -m tests.docs.pages.

Blocks run in the order of their page, as printed. A block in the language `text` below one of them
shows what it prints.
"""

import io
import os
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
START = ROOT / "docs" / "start"
BUILT = {"generated", "_build", "auto_examples"}
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not BUILT & set(path.relative_to(ROOT).parts)
]
MARK = "----- end of a block -----"


def pattern(language):
    return re.compile(
        rf"^```{language}\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S
    )


def steps(path, language):
    """Return the blocks of a page in a language, each with the output shown below it, if any."""
    return pattern(language).findall(path.read_text("utf-8"))


def words(output):
    """Return output without the digits of numbers, and without the width of columns.

    Numbers may differ in their digits between machines; the words may not.
    """
    number = r"[\d.,]*\d(\.dev\d+)?"
    lines = [re.sub(number, "#", " ".join(line.split())) for line in output.splitlines()]
    return [line for line in lines if line]


def run_python(path, folder):
    """Run the Python blocks of a page in a folder; return what each printed."""
    text, known, printed = path.read_text("utf-8"), {"__name__": "__main__"}, []
    with chdir(folder):
        for found in pattern("python").finditer(text):
            above = text.count("\n", 0, found.start("code"))  # tracebacks show lines of the page
            with redirect_stdout(io.StringIO()) as output:
                exec(compile("\n" * above + found["code"], str(path), "exec"), known)
            printed.append(output.getvalue())
    return printed


def run_shell(path, folder):
    """Run the shell blocks of a page in one shell, on a free port; return what each printed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    script = "".join(f"{code}echo '{MARK}'\n" for code, _ in steps(path, "sh"))
    commands = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script.replace('8000', port)}"],
        cwd=folder,
        env={**os.environ, "PATH": commands, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    return [output.replace(port, "8000") for output in run.stdout.split(MARK + "\n")[:-1]]


def update(path, language, run):
    """Write what the blocks print into the page, where it shows output."""
    with tempfile.TemporaryDirectory() as folder:
        printed = iter(run(path, folder))

    def renewed(found):
        output, end = next(printed), found.end("shown") - found.start()
        if found["shown"] is None:
            return found[0]
        return found[0][: end - len(found["shown"])] + output + found[0][end:]

    path.write_text(pattern(language).sub(renewed, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    for page in PAGES:
        for language, run in (("python", run_python), ("sh", run_shell)):
            if any(shown for _, shown in steps(page, language)):
                print(page.relative_to(ROOT), language)
                update(page, language, run)
