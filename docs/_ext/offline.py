"""Fail the build if a page would request a script, a style or an image from another machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# what a browser fetches by itself; a link is only fetched when somebody follows it
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*>"
    r"|<link\b(?![^>]*\brel=[\"'](?:canonical|next|prev|author|license)\b)[^>]*"
    r"\bhref=[\"'](?:https?:)?//[^>]*>"
    r"|@import\s+(?:url\()?[\"']?https?:|url\([\"']?https?:",
    re.IGNORECASE,
)


def check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*.html")):
        if path.name == "webpack-macros.html":  # part of the theme, not a page
            continue
        found = FETCHED.search(path.read_text(encoding="utf-8"))
        if found:
            raise ExtensionError(f"{path.relative_to(app.outdir)} would fetch {found[0]}")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
