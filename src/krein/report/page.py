"""Fill in templates, and write each page to one self-contained file.

An evaluation becomes content (`content`), which a template turns into HTML. All text is escaped
when it is filled in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .content import breakable, report_content

if TYPE_CHECKING:
    from ..evaluation import Evaluation


def write_report(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
    threshold: float | None = None,
) -> None:
    """Write the report of an evaluation to one HTML file, atomically.

    The file is self-contained and opens offline, without any request to other machines. Names and
    labels are escaped, whatever they contain.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `krein.evaluation.evaluate`.
    path : path
        The file to write; an existing file is replaced.
    title : str, optional
        Heading of the report; default: the number of objects and the measure.
    command : str, optional
        The command that was used, shown under "How to repeat it".
    threshold : float, optional
        The confidence below which objects are rejected, marked in the accuracy–reject curve. By
        default, the one that halves the share of errors among labelled objects.

    Examples
    --------
    >>> from krein.evaluation import evaluate
    >>> stems = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> words = [stem + end for end in ("", "s", "ly", "ing") for stem in stems]
    >>> found = evaluate(words, ["en", "en", "en", "de", "de", "de"] * 4, ["ikfd"],
    ...                  measure="levenshtein", folds=4)
    >>> write_report(found, "report.html", title="Words")  # doctest: +SKIP
    """
    write_page(path, render_report(evaluation, title=title, command=command, threshold=threshold))


def render_report(
    evaluation: Evaluation,
    *,
    title: str | None = None,
    command: str | None = None,
    threshold: float | None = None,
) -> str:
    """Return the report as text. The parameters are those of `write_report`.

    Examples
    --------
    >>> from krein.evaluation import evaluate
    >>> from krein.report import render_report
    >>> stems = ["house", "mouse", "horse", "haus", "maus", "ross"]
    >>> words = [stem + end for end in ("", "s", "ly", "ing") for stem in stems]
    >>> languages = ["en", "en", "en", "de", "de", "de"] * 4
    >>> found = evaluate(words, languages, ["ikfd"], measure="levenshtein", folds=4)
    >>> "<h1>Words</h1>" in render_report(found, title="Words")
    True
    """
    page = template("report.html")
    content = report_content(evaluation, title=title, command=command, threshold=threshold)
    script = part("report.js")
    text: str = page.render(
        content,
        # the browser runs only this script
        script=script,
        style=part("report.css"),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=embedded(content["data"]),
    )
    return text


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page, atomically; names that are not valid Unicode are written with a "?"."""
    from ..io.writing import atomic_write

    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "replace"))


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
