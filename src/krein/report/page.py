"""Evaluation → content → template → one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING

from .content import report_content
from .templates import embedded, part, template

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
    from ..io.streams import atomic_write

    text = render_report(evaluation, title=title, command=command, threshold=threshold)
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "replace"))


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
