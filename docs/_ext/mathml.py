"""Render formulas as MathML, which browsers draw natively: no script, no font, no request.

docutils translates the formulas.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)


def mathml(node: nodes.Element, *, block: bool) -> str:
    """Return the formula, or its source with a warning if it cannot be translated."""
    source = " ".join(node.astext().split())
    try:
        return str(tex2mathml(source, as_block=block))
    except MathError as error:
        logger.warning("formula %r: %s", source, error, location=node)
        return nodes.literal(text=source).astext()


def visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    identity = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    # a formula wider than a phone scrolls inside its own box, by keyboard too
    writer.body.append(f'<div class="formula"{identity} tabindex="0" role="group">')
    writer.body.append(mathml(node, block=True))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
