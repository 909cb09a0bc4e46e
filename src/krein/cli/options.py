"""Options that several commands share, and their names for error messages.

`krein --help` imports this module, so it imports nothing heavy. Options that are passed on to an
estimator have the name of its parameter: `--jobs` is `n_jobs`, `--seed` is `random_state`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

RULES = ("stratified", "meb", "auto", "all", "kmeans", "entropy", "random", "leverage")
INPUT_FORMATS = (
    "fasta", "fastq", "csv", "tsv", "jsonl", "lines", "parquet", "npy", "npz", "mat", "ts",
    "vectors", "series", "matrix",
)  # fmt: skip
ROW_FORMATS = ("csv", "tsv", "jsonl")
LETTER_POLICIES = ("X", "skip", "fail")
"""Replace each letter by X, skip the whole sequence, or end the run.

In a measure, `unknown_letters="skip"` leaves out the letters only (`krein.measures.sequences`).
"""


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
        from ..io.streams import parse_size

        try:
            return parse_size(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def together(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def gathered(record: type, name: str) -> Decorator:
    """Return a decorator that passes the options called like the fields of a dataclass as one."""

    def add(function: Function) -> Function:
        @wraps(function)
        def command(**given: Any) -> Any:
            own = {one.name: given.pop(one.name) for one in fields(record) if one.name in given}
            return function(**{name: record(**own)}, **given)

        return command

    return add


def split_names(
    context: click.Context, option: click.Parameter, value: str | None
) -> list[str] | None:
    """Return the names in a list separated by commas, or by the plus signs of vsearch."""
    return None if value is None else value.replace("+", ",").split(",")


hit_columns = click.option(
    "--columns",
    callback=split_names,
    metavar="NAMES",
    help="Columns of a table of hits in their order, such as query,target,bits. Not needed if the "
    "table has a header, or the twelve columns of BLAST.",
)
seed = click.option(
    "--seed", "random_state", type=click.IntRange(0, 2**32 - 1), default=0, help="Random seed."
)
jobs = click.option(
    "--jobs", "n_jobs", type=Jobs(), help="Number of workers; default: all processors."
)
groups = click.option(
    "--groups",
    metavar="COLUMN|FILE|identity:T|cdr3:T",
    help="Hold out the objects of a group together. Groups come from a column, from a file as "
    "for --labels, or from the measure: identity:0.4 groups objects with an identity of at least "
    "0.4, and cdr3:0.8 T-cell receptors if at least 80 % of the letters of their CDR3s agree.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")

reading = together(
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
        type=click.Choice(INPUT_FORMATS),
        help="Format of the file, if its name does not show it; or the meaning of its "
        "numbers: vectors, series, or a matrix of values.",
    ),
    click.option(
        "--no-header", is_flag=True, help="The first row of a table is data, not a header."
    ),
    click.option(
        "--max-size",
        type=Size(),
        help="Maximum size of a line, record or cell (default 32M), and of the arrays of "
        "a compressed file (default 256M, or 20 times the file). Raise it for larger "
        "objects, for example 2G.",
    ),
)


@dataclass(frozen=True)
class DataOptions:
    """What the user says about DATA: how to read, label and compare its objects, and which to use.

    Fields with a default are options that not every command has.
    """

    data: str
    labels: str | None
    label_pattern: str | None
    measure: str | None
    measure_params: tuple[str, ...]
    distance: bool
    symmetrize: bool
    objects: str | None
    names: str | None
    input_format: str | None
    no_header: bool
    max_size: int | None
    skip_unlabelled: bool
    skip_unreadable: bool = False
    min_class_size: int | None = None
    groups: str | None = None
    hits: bool = False
    columns: list[str] | None = None
    score: str | None = None

    def params(self) -> dict[str, str]:
        """Return the parameters of the measure as text; `read_parameters` knows their types."""
        params: dict[str, str] = {}
        for pair in self.measure_params:
            key, equals, value = pair.partition("=")
            if not equals or not key:
                raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--measure-param")
            params[key] = value.strip()
        return params


def labelled_data(function: Function) -> Function:
    """Add DATA and the options that describe it; the command receives them as `DataOptions`."""

    function = gathered(DataOptions, "data")(function)

    @wraps(function)
    def command(both_strands: bool, **given: Any) -> Any:
        if both_strands:
            given["measure_params"] += ("both_strands=true",)
        return function(**given)

    return together(
        click.argument("data", type=click.Path(allow_dash=True)),
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
        click.option(
            "--skip-unlabelled", is_flag=True, help="Leave out objects that have no label."
        ),
        click.option(
            "--measure",
            metavar="NAME",
            help="How two objects are compared: smith-waterman, needleman-wunsch, levenshtein, "
            "damerau, lcs, jaro-winkler, tcrdist, dtw, erp, msm, tangent, compression, elm, rbf, … "
            "Default: chosen to suit the objects. FILE.py:FUNCTION uses a function of your own, of "
            "two objects; for a distance, add --measure-param kind=dissimilarity. Several columns "
            "are compared by COLUMN=MEASURE*WEIGHT,… as in "
            "'name=levenshtein,age=euclidean*0.1,lat+lon=euclidean'.",
        ),
        click.option(
            "--measure-param",
            "measure_params",
            multiple=True,
            metavar="KEY=VALUE",
            help="Parameter of the measure, such as matrix=NUC.4.4 (COLUMN.KEY=VALUE if there are "
            "several measures); may be repeated.",
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
            "--symmetrize", is_flag=True, help="Use the average of both directions if they differ."
        ),
        reading,
    )(command)


hit_table = together(
    click.option(
        "--hits",
        is_flag=True,
        help="DATA is a table of hits: the references searched against themselves with BLAST, "
        "DIAMOND, MMseqs2, foldseek or vsearch. Nothing is compared.",
    ),
    click.option(
        "--score",
        metavar="COLUMN|auto",
        help="Column to score hits by, by name or by number from 1; auto: the one with the least "
        "held-out loss. Default: bits, identity or e-value, whichever comes first.",
    ),
    hit_columns,
)
choosing = together(
    click.option(
        "--landmarks",
        type=click.Choice(RULES),
        help="How landmarks are chosen. Default: stratified (a random sample of each "
        "class) for --model krein, meb (minimum enclosing balls) for the others.",
    ),
    click.option(
        "--n-landmarks",
        type=click.IntRange(1),
        help="Number of landmarks, for stratified, kmeans, entropy, random and leverage.",
    ),
)
skip_unreadable = click.option(
    "--skip-unreadable",
    is_flag=True,
    help="Leave out objects that cannot be read or compared, such as T-cell receptors without one "
    "of the chains or with an unknown gene.",
)
min_class_size = click.option(
    "--min-class-size",
    type=click.IntRange(1),
    metavar="N",
    help="Leave out classes with fewer objects.",
)
class_weight = click.option(
    "--class-weight",
    type=click.Choice(["balanced"]),
    help="balanced: an error costs more in a class with fewer objects. Small classes are then "
    "found more often, at the expense of large ones.",
)
calibrating = click.option(
    "--calibrate/--no-calibrate",
    default=None,
    help="Calibrate probabilities on held-out objects. On by default for ikfd and ikqd; krein "
    "is always calibrated.",
)
running = together(
    seed,
    jobs,
    click.option(
        "--cache",
        type=click.Path(file_okay=False),
        help="Folder for finished comparisons: after an interruption, the same command "
        "resumes from there.",
    ),
)


def _refuse_more(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Say how several files are read as one."""
    if value:
        model, files = context.params["model"], " ".join([context.params["new"], *value])
        raise click.UsageError(
            f"NEW is one file; read several as one: cat {files} | krein {context.info_name} "
            f"{model} -"
        )


@dataclass(frozen=True)
class ModelOptions:
    """What the user says about MODEL: the file, and how it compares new objects."""

    model: str
    measure: str | None = None
    unknown_letters: str | None = None
    n_jobs: int | None = None


@dataclass(frozen=True)
class NewOptions:
    """What the user says about NEW: how to read it.

    Fields with a default are options that not every command has.
    """

    new: str
    objects: str | None
    names: str | None
    input_format: str | None
    no_header: bool
    max_size: int | None
    queries: str | None = None
    columns: list[str] | None = None


new_objects = together(
    click.argument("model", type=click.Path()),
    click.argument("new", type=click.Path(allow_dash=True), default="-"),
    click.argument("more", nargs=-1, metavar="", expose_value=False, callback=_refuse_more),
    gathered(ModelOptions, "model"),
    gathered(NewOptions, "new"),
)
own_measure = click.option(
    "--measure",
    metavar="FILE.py:FUNCTION",
    help="The function that the model was fitted with, if it is your own.",
)
novel_below = click.option(
    "--novel-below",
    type=Share(0, 1),
    metavar="P",
    help="Call objects novel (like none of the classes) if their p-value is at most this. "
    "Default: 0.01.",
)
ambiguous_below = click.option(
    "--ambiguous-below",
    type=Share(0, 1),
    metavar="P",
    help="Call objects ambiguous if their best label has a lower probability. Default: 0.8.",
)
unknown_letters = click.option(
    "--unknown-letters",
    type=click.Choice(LETTER_POLICIES),
    help="What to do with letters that the model does not score: X reads them as X (N in DNA), "
    "skip leaves out the whole sequence, which then counts as unreadable, fail ends the run (or "
    "refuses the request). By default, U is read as C, O as K and others as X, and gaps and a "
    "final * are left out. To leave out the letters only, fit the model with --measure-param "
    "unknown_letters=skip.",
)
label_ranks = together(
    click.option(
        "--label-ranks",
        metavar="SIGN",
        help="Separator of hierarchical labels, such as ';': also report the deepest rank that is "
        "probable enough, and in an evaluation the figures for each rank.",
    ),
    click.option(
        "--rank-above",
        type=Share(0.5, 1, min_open=True),
        default=0.9,
        metavar="P",
        help="Minimum probability of that rank.",
    ),
)
row_output = together(
    click.option(
        "-o",
        "--output",
        type=click.Path(allow_dash=True),
        callback=lambda context, option, path: None if path == "-" else path,
        help="File to write the rows to. Default, or with -: standard output.",
    ),
    click.option(
        "--format",
        "row_format",
        type=click.Choice(ROW_FORMATS),
        help="Format of the rows. Default: by the suffix of -o, else JSON lines if the input is "
        "JSON lines, else CSV.",
    ),
    click.option(
        "--escape-formulas",
        is_flag=True,
        help="Put an apostrophe before text in CSV and TSV that a spreadsheet would run as a "
        "formula: names and labels that begin with =, +, -, @ or a tab.",
    ),
)

OPTIONS_FOR_PARAMETERS = {
    "objects": "--objects",
    "labels": "--labels",
    "names": "--names",
    "format": "--input-format",
    "symmetrize": "--symmetrize",
    "n_landmarks": "--n-landmarks",
    "landmarks": "--landmarks",
    "measure": "--measure",
    "measure_params": "--measure-param",
    "folds": "--folds",
    "groups": "--groups",
    "max_size": "--max-size",
    "skip_unlabelled": "--skip-unlabelled",
    "min_class_size": "--min-class-size",
    "label_ranks": "--label-ranks",
    "columns": "--columns",
    "score": "--score",
}
