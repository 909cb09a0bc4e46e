"""Write the table of measures from the measures themselves."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from benchmarks_page import cell, write
from sphinx.application import Sphinx

from krein import measures
from krein.measures import available
from krein.measures.registry import measure_class

KNOWN = {True: "psd", False: "indefinite", None: "not known"}


def row(name: str) -> str:
    cls = measure_class(name)
    params = ", ".join(
        f"`{f.name}={f.default!r}`" if f.default is not MISSING else f"`{f.name}`"
        for f in fields(cls)
    )
    summary = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
    module = measures.__name__ if cls.__name__ in measures.__all__ else cls.__module__
    link = f"{{class}}`{name} <{module}.{cls.__qualname__}>`"
    kind = "the kind of its parts"
    if isinstance(cls.kind, str):
        kind = f"{cls.kind}, {KNOWN[cls.psd]}"
    return f"| {link} | {cell(summary)} | {kind} | {params} |"


def generate(app: Sphinx) -> None:
    lines = ["| name | what it is | kind | parameters |", "|---|---|---|---|"]
    lines += [row(name) for name in available()]
    write(Path(app.srcdir) / "generated" / "measures.txt", "\n".join(lines) + "\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
