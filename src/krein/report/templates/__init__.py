"""Templates, style sheets and scripts of the pages, with safe insertion of text."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

SHORT = 18
"""Names with up to this many letters are not broken."""


def template(name: str) -> Any:
    """Return a template of this package; values filled in are escaped."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'a report needs jinja2: pip install "krein[report]"', name=error.name
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("krein.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment.get_template(name)


def part(name: str) -> Any:
    """Return a script or style sheet of this package, inserted unescaped: it has no user data."""
    from markupsafe import Markup

    return Markup((files("krein.report") / "templates" / name).read_text("utf-8"))


def breakable(text: str) -> Any:
    """Return escaped text that may be broken after separators such as _ and /."""
    from markupsafe import Markup, escape

    if len(text) <= SHORT:
        return escape(text)
    parts = re.split(r"(?<=[_+/|.:;,-])(?=.)", text)
    return Markup("<wbr>").join(escape(part) for part in parts)


def embedded(data: Any) -> Any:
    """Return JSON that is safe inside a script element: no name can close the element.

    >>> str(embedded({"name": "</script>"}))
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)
