"""Write the table of measures from the measures themselves."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from benchmarks_page import cell, write
from sphinx.application import Sphinx

from krein.measures import available, get_measure

KNOWN = {True: "psd", False: "indefinite", None: "not known"}


def row(name: str) -> str:
    measure = get_measure(name)
    cls = type(measure)
    params = ", ".join(
        f"`{f.name}={f.default!r}`" if f.default is not MISSING else f"`{f.name}`"
        for f in fields(measure)
    )
    summary = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
    link = f"{{class}}`{name} <{cls.__module__}.{cls.__qualname__}>`"
    kind = f"{measure.kind}, {KNOWN[measure.psd]}"
    return f"| {link} | {cell(summary)} | {kind} | {params} |"


def generate(app: Sphinx) -> None:
    lines = ["| name | what it is | kind | parameters |", "|---|---|---|---|"]
    lines += [row(name) for name in available()]
    write(Path(app.srcdir) / "generated" / "measures.txt", "\n".join(lines) + "\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
