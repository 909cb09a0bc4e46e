"""Options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from ..io.streams import parse_size

Function = Callable[..., Any]

RULES = ("stratified", "meb", "auto", "all", "kmeans", "entropy", "random", "leverage")
FORMATS = (
    "fasta", "fastq", "csv", "tsv", "jsonl", "lines", "parquet", "npy", "npz", "mat", "ts",
    "vectors", "series", "matrix",
)  # fmt: skip


class Share(click.FloatRange):
    """A number within a range; NaN is refused."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number."""
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


class Jobs(click.ParamType):
    """A number of workers: at least 1, or -1 for all processors, -2 for all but one, …"""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number."""
        found = click.INT.convert(value, param, ctx)
        if found == 0:
            self.fail("0 is not allowed: use 1 or more, or -1 for all processors.", param, ctx)
        return found


class Size(click.ParamType):
    """A number of bytes, such as 500M or 2G."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number."""
        try:
            return parse_size(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


JOBS = Jobs()
SIZE = Size()
SEED = click.IntRange(0, 2**32 - 1)


def _applied(function: Function, options: list[Any]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


def reading(function: Function) -> Function:
    """Options for how a file of objects is read."""
    return _applied(
        function,
        [
            click.option(
                "--objects",
                metavar="COLUMN",
                help="Column with the objects, by name or by number from 1. Several columns form "
                "vectors: separate them by commas, or give a range of numbers such as 3-10. For "
                "JSON lines, the field; for .npz and .mat files, the array.",
            ),
            click.option(
                "--names", metavar="COLUMN", help="Column (or array) with the names of the objects."
            ),
            click.option(
                "--input-format",
                type=click.Choice(FORMATS),
                help="Format of the file, if its name does not show it; or the meaning of its "
                "numbers: vectors, series, or a matrix of values.",
            ),
            click.option(
                "--no-header", is_flag=True, help="The first row of a table is data, not a header."
            ),
            click.option(
                "--max-size",
                type=SIZE,
                help="Maximum size of a line, record or cell (default 32M), and of the arrays of "
                "a compressed file (default 256M, or 20 times the file). Raise it for larger "
                "objects, for example 2G.",
            ),
        ],
    )


def labelling(function: Function) -> Function:
    """Options for where labels come from."""
    return _applied(
        function,
        [
            click.option(
                "--labels",
                metavar="COLUMN|FILE",
                help="Column (or array) of labels; or a file: a table of names and labels "
                "(FILE:COLUMN if it has more columns), or one label per line in the order of the "
                "objects. Sequences are matched by identifier, accession or entry name.",
            ),
            click.option(
                "--label-pattern",
                metavar="REGEX",
                help="Regular expression that finds the label in a FASTA header or a name, with "
                r"one group for the label, as in 'family=(\S+)'.",
            ),
        ],
    )


def measuring(function: Function) -> Function:
    """Options for how objects are compared."""

    @wraps(function)
    def with_strands(*args: Any, both_strands: bool, **options: Any) -> Any:
        if both_strands:
            options["measure_params"] = (*options["measure_params"], "both_strands=true")
        return function(*args, **options)

    return _applied(
        with_strands,
        [
            click.option(
                "--measure",
                metavar="NAME",
                help="How two objects are compared: smith-waterman, needleman-wunsch, levenshtein, "
                "damerau, lcs, jaro-winkler, dtw, erp, msm, tangent, compression, elm, rbf, … "
                "Default: chosen to suit the objects.",
            ),
            click.option(
                "--measure-param",
                "measure_params",
                multiple=True,
                metavar="KEY=VALUE",
                help="Parameter of the measure, such as matrix=NUC.4.4; may be repeated.",
            ),
            click.option(
                "--both-strands",
                is_flag=True,
                help="Also compare DNA or RNA with its reverse complement, and use the better "
                "score, at twice the cost.",
            ),
            click.option(
                "--distance", is_flag=True, help="The matrix contains distances, not similarities."
            ),
            click.option(
                "--symmetrize",
                is_flag=True,
                help="Use the average of both directions if they differ.",
            ),
        ],
    )


def choosing(function: Function) -> Function:
    """Options for how landmarks are chosen."""
    return _applied(
        function,
        [
            click.option(
                "--landmarks",
                type=click.Choice(RULES),
                help="How landmarks are chosen. Default: stratified (a random sample of each "
                "class) for --model auto, meb (minimum enclosing balls) for the others.",
            ),
            click.option(
                "--n-landmarks",
                type=click.IntRange(1),
                help="Number of landmarks, for stratified, kmeans, entropy, random and leverage.",
            ),
        ],
    )


def calibrating(function: Function) -> Function:
    """Option for calibrated probabilities."""
    option = click.option(
        "--calibrate/--no-calibrate",
        default=None,
        help="Calibrate probabilities on held-out objects. On by default for ikfd and ikqd; auto "
        "is always calibrated.",
    )
    return option(function)


def running(function: Function) -> Function:
    """Options for how the work is done."""
    return _applied(
        function,
        [
            click.option(
                "--seed",
                type=SEED,
                default=0,
                show_default=True,
                help="Random seed.",
            ),
            click.option("--jobs", type=JOBS, help="Number of workers; default: all processors."),
            click.option(
                "--cache",
                type=click.Path(file_okay=False),
                help="Folder for finished comparisons: after an interruption, the same command "
                "resumes from there.",
            ),
        ],
    )


def parse_params(given: tuple[str, ...]) -> dict[str, Any]:
    """Return KEY=VALUE options as a dict; a value is a number, true, false, null, or text."""
    params: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--measure-param")
        try:
            params[key] = json.loads(value)
        except ValueError:
            params[key] = value
        if str(params[key]).strip().lower() == "nan":
            raise click.BadParameter(
                f"{pair!r}: {key} is not a number", param_hint="--measure-param"
            )
    return params


# -------------------------------------------------------------------------------------------------
# Translate errors of the library into messages of the command.
# -------------------------------------------------------------------------------------------------

_OPTIONS = {
    "objects": "--objects",
    "labels": "--labels",
    "names": "--names",
    "format": "--input-format",
    "symmetrize": "--symmetrize",
    "n_jobs": "--jobs",
    "n_landmarks": "--n-landmarks",
    "landmarks": "--landmarks",
    "measure": "--measure",
    "folds": "--folds",
    "max_size": "--max-size",
}
_WORD = re.compile(
    # quoted text is the user's own, unless it is the value of a parameter
    r"\b(?P<name>" + "|".join(_OPTIONS) + r")=(?P<value>True\b|'[^']*'|[\w-]+)?|'(?:[^'\\]|\\.)*'"
)
_PARAMS = re.compile(r"measure_params=\{'(\w+)': '?(\w+)'?\}")


def printable(text: str, longest: int = 60) -> str:
    """Return text from the data with control characters escaped, safe to print on a terminal."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


LONGEST = 280
"""Maximum length of a message; it begins with the problem and ends with the remedy."""


def told(error: BaseException, typed: Sequence[str] = ()) -> str:
    """Return the message of an error in one line, with options instead of Python parameters.

    Text that the user `typed` is repeated unchanged: a file may be called `labels=None.fasta`.
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    message = " ".join(str(error).split())
    if isinstance(error, ArithmeticError):
        return "the numbers are too large or too small to compute with; rescale the data"
    if not isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError):
        return f"{type(error).__name__}: {message} (--debug shows where)"
    kept = [re.escape(" ".join(word.split())) for word in typed if "=" in word]
    kept += [re.escape(word.partition("=")[2]) for word in typed if word.startswith("--")]
    own = "|".join(sorted((word for word in kept if word), key=len, reverse=True))
    parts = re.split(f"({own})", message) if own else [message]
    return "".join(part if i % 2 else _translated(part) for i, part in enumerate(parts))


def _translated(message: str) -> str:
    message = message.replace("krein.measures.available()", "krein fit --help")
    return _WORD.sub(_option, _PARAMS.sub(r"--measure-param \1=\2", message))


def one_line(message: str) -> str:
    """Return a message in the form shown on a terminal: one line, no control characters, limited
    length.

    >>> print(one_line("a" + chr(27) + "b" + chr(10) + "c"))
    a\\x1bb c
    """
    text = printable(" ".join(message.split()), 100_000)
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} … {text[-(LONGEST - half - 3) :]}"


def _option(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if name is None:
        return found[0]
    if value is None or value == "True":
        return _OPTIONS[name]
    return f"{_OPTIONS[name]} {value.strip(chr(39))}"
