"""Formulas as MathML, which browsers draw themselves: no script, no font, no request."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number


def visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    identity = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    # a formula wider than a phone scrolls inside its own box, by keyboard too
    writer.body.append(f'<div class="formula"{identity} tabindex="0" role="group">')
    writer.body.append(tex2mathml(node.astext(), as_block=True))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
