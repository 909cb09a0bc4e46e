"""Draw the layers from the contract that the import linter checks, so the drawing stays current."""

from __future__ import annotations

import ast
import tomllib
from html import escape
from pathlib import Path
from typing import Any

from benchmarks_page import write
from sphinx.application import Sphinx

WIDTH, ROW, GAP = 720, 58, 26


def layers(root: Path) -> list[list[str]]:
    """Return the existing layers listed in pyproject.toml, highest first."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    (stack,) = (c["layers"] for c in contracts["contracts"] if c["type"] == "layers")
    found = [[name.strip(" ()") for name in layer.replace("|", ":").split(":")] for layer in stack]
    there = [[name for name in layer if summary(root, name)] for layer in found]
    return [layer for layer in there if layer]


def summary(root: Path, name: str) -> str:
    """Return the first sentence of a module's docstring; empty if there is no such module."""
    path = root / "src" / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.exists():
        return ""
    text = " ".join(
        (ast.get_docstring(ast.parse(file.read_text())) or name).split("\n\n")[0].split()
    )
    return text.split(". ")[0].rstrip(".").replace("`", "")


def shortened(text: str, width: float) -> list[str]:
    """Break a sentence into at most two lines of a box."""
    room = int(width / 6.4)
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) + 1 > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    lines.append(line)
    return lines if len(lines) <= 2 else [lines[0], lines[1][: room - 1] + "…"]


def drawing(root: Path) -> str:
    stack = layers(root)
    height = len(stack) * (ROW + GAP)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" '
        'aria-labelledby="layers-title">',
        '<title id="layers-title">The layers of krein from top to bottom; each may import from '
        "those below it, never from those above: "
        + escape("; ".join(", ".join(layer) for layer in stack))
        + "</title>",
    ]
    for i, layer in enumerate(stack):
        y = i * (ROW + GAP)
        width = (WIDTH - 12 * (len(layer) - 1)) / len(layer)
        for k, name in enumerate(layer):
            x = k * (width + 12)
            parts.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROW}" rx="6"/>')
            short = name.removeprefix("krein.")
            parts.append(f'<text class="name" x="{x + 12:.0f}" y="{y + 20}">{escape(short)}</text>')
            for row, line in enumerate(shortened(summary(root, name), width - 20)):
                parts.append(
                    f'<text x="{x + 12:.0f}" y="{y + 36 + 14 * row}">{escape(line)}</text>'
                )
        if i + 1 < len(stack):
            middle, top = WIDTH / 2, y + ROW + 3
            parts.append(f'<path d="M{middle} {top} v{GAP - 8} m-5 -6 l5 6 l5 -6" fill="none"/>')
    parts.append("</svg>")
    return '<div class="drawing" tabindex="0">\n' + "\n".join(parts) + "\n</div>\n"


def generate(app: Sphinx) -> None:
    docs = Path(app.srcdir)
    write(docs / "generated" / "layers.html", drawing(docs.parent))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
