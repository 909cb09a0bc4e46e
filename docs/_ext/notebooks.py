"""Offer each five-minute page as a notebook: its text, its code, and the output that it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks_page import write
from sphinx.application import Sphinx

PAGES = ("first", "sequences", "hits", "receptors", "series", "python", "clusters", "service")
LANGUAGES = {"python": "", "sh": "%%bash\n"}

Cell = dict[str, Any]


def notebook(page: str) -> dict[str, Any]:
    """Return a page as a notebook (format 4.5)."""
    cells: list[Cell] = []
    for i, part in enumerate(re.split(r"^(```\w+\n.*?^```\n)", page, flags=re.M | re.S)):
        language, _, code = part.removeprefix("```").partition("\n")
        code = code.removesuffix("```\n")
        if i % 2 and language in LANGUAGES:
            cells.append(cell("code", LANGUAGES[language] + code, execution_count=None, outputs=[]))
        elif i % 2 and language == "text" and cells[-1]["cell_type"] == "code":
            shown = {"output_type": "stream", "name": "stdout", "text": lines(code)}
            cells[-1]["outputs"].append(shown)
        elif part.strip():
            cells.append(cell("markdown", plain(part).strip()))
    for number, one in enumerate(cells):
        one["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def cell(kind: str, source: str, **more: Any) -> Cell:
    return {"cell_type": kind, "metadata": {}, "source": lines(source.rstrip("\n")), **more}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def plain(text: str) -> str:
    """Return text without what only the site resolves: links to other pages, and roles."""
    text = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*?(\w+)(?:\.md)?(?:#[^)]*)?\)", _named, text)
    return re.sub(r"\{\w+\}`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)


def _named(link: re.Match[str]) -> str:
    return link[1] or f"the page “{link[2]}”"


def generate(app: Sphinx) -> None:
    for name in PAGES:
        text = (Path(app.srcdir) / "start" / f"{name}.md").read_text("utf-8")
        made = json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n"
        write(Path(app.srcdir) / "generated" / f"{name}.ipynb", made)


def offer(app: Sphinx, name: str, source: list[str]) -> None:
    """Add a link to the notebook below the first paragraph of a page."""
    folder, _, page = name.rpartition("/")
    if folder == "start" and page in PAGES:
        title, first, rest = source[0].split("\n\n", 2)
        link = f"{{download}}`Download this page as a notebook. <../generated/{page}.ipynb>`"
        source[0] = "\n\n".join([title, first, link, rest])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate, priority=100)  # before Sphinx collects the pages
    app.connect("source-read", offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
