"""Make the gallery's images legible: thumbnails of one panel, and figures that scroll.

A figure with several panels is illegible as a thumbnail, so `PANELS` says which part of it to show.
On a page, every figure gets a box of its own, in which it can scroll on a phone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from PIL import Image
from sphinx.application import Sphinx

PANELS = {
    "plot_01_negative_eigenvalues": (0.52, 1.0),
    "plot_02_balls": (0.285, 0.6),
    "plot_03_peptides": (0.0, 0.5),
    "plot_04_landmarks": (0.25, 0.75),
    "plot_06_three_models": (0.0, 0.665),
    "plot_07_calibration": (0.0, 0.36),
    "plot_08_reject": (0.0, 0.53),
    "plot_09_own_measure": (0.47, 1.0),
    "plot_11_second_look": (0.0, 0.5),
    "plot_12_unknown": (0.0, 0.5),
    "plot_13_evidence": (0.0, 0.455),
    "plot_14_receptors": (0.5, 1.0),
    "plot_m_step": (0.0, 0.51),
    "plot_signed_route": (0.0, 0.53),
    "plot_truncated_core": (0.0, 0.5),
}
"""The left and right edges of each thumbnail, as fractions of the figure's width."""

WIDTH, HEIGHT = 480, 336


def crop_thumbnails(app: Sphinx) -> None:
    """Replace the gallery's thumbnails of whole figures."""
    for example, (left, right) in PANELS.items():
        found = list(Path(app.srcdir, "auto_examples").rglob(f"sphx_glr_{example}_001.png"))
        if not found:
            raise FileNotFoundError(f"no example draws a figure named {example}; see PANELS")
        with Image.open(found[0]) as figure:
            panel = figure.convert("RGB")
        panel = panel.crop((int(left * panel.width), 0, int(right * panel.width), panel.height))
        panel.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        card = Image.new("RGB", (WIDTH, HEIGHT), "white")
        card.paste(panel, ((WIDTH - panel.width) // 2, (HEIGHT - panel.height) // 2))
        card.save(found[0].parent / "thumb" / f"sphx_glr_{example}_thumb.png")


def box_figures(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Put each figure of an example into a box that can scroll."""
    if page.startswith("auto_examples/") and "body" in context:
        context["body"] = re.sub(
            r'<img [^>]*class = "sphx-glr-single-img"/>',
            r'<div class="wide-figure" tabindex="0">\g<0></div>',
            context["body"],
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", crop_thumbnails, priority=900)  # after the gallery
    app.connect("html-page-context", box_figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
