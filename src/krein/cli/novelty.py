"""What `krein predict` reports beyond labels: novelty, status, sets of labels, and evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any

import click
import numpy as np
from numpy.typing import NDArray

from ..io import Chunk, DataError, Source
from .options import Share
from .output import writing

NOVEL = "novel"
UNREADABLE = "unreadable"


def novelty_options(function: Any) -> Any:
    """The options for output beyond labels."""
    made = (
        click.option(
            "--novel-below",
            type=Share(0, 1),
            metavar="P",
            help="Call objects novel (like none of the classes) if their p-value is at most "
            "this. Default: 0.01.",
        ),
        click.option(
            "--sets",
            type=Share(0, 1, min_open=True, max_open=True),
            metavar="SHARE",
            help="Add the labels that cannot be ruled out: the set contains the true label for "
            "this share of the objects.",
        ),
        click.option(
            "--evidence",
            type=click.IntRange(1),
            metavar="N",
            help="Add the N nearest known objects, with their labels and values of the measure.",
        ),
        click.option(
            "--classified-out",
            type=click.Path(),
            metavar="FILE",
            help="Also write the sequences that got a label, as FASTA.",
        ),
        click.option(
            "--unclassified-out",
            type=click.Path(),
            metavar="FILE",
            help="Also write the sequences that are novel, rejected or unreadable, as FASTA.",
        ),
    )
    for option in reversed(made):
        function = option(function)
    return function


@dataclass(frozen=True)
class Asked:
    """The output beyond labels that the options ask for."""

    novel_below: float | None = None
    ambiguous_below: float | None = None
    sets: float | None = None
    evidence: int | None = None

    def check(self, model: Any) -> None:
        """Refuse options that the model does not support; set the thresholds."""
        if not hasattr(model, "assess"):
            for option in ("novel_below", "sets", "evidence"):
                if getattr(self, option) is not None:
                    asked = "evidence" if option == "evidence" else f"--{option.replace('_', '-')}"
                    raise DataError(
                        f"{asked} needs a model from krein fit --model auto; "
                        f"this one is {type(model).__name__.removeprefix('Fitted')}"
                    )
            return
        for name in ("novel_below", "ambiguous_below"):
            if getattr(self, name) is not None:
                setattr(model, name, getattr(self, name))

    def of(self, model: Any, objects: Any) -> NDArray[Any]:
        """Return a structured array with `probabilities` and further predictions.

        One pass: each pair is compared once.
        """
        if hasattr(model, "assess"):
            found: NDArray[Any] = model.assess(objects, coverage=self.sets, evidence=self.evidence)
            return found
        P = model.predict_proba(objects)
        dtype = np.dtype([("probabilities", np.float64, (P.shape[1],))])
        plain = np.empty(len(P), dtype=dtype)
        plain["probabilities"] = P
        return plain


def too_few(model: Any) -> str | None:
    """Return a warning if no object can be called novel because there are too few held-out
    objects."""
    reference = getattr(model, "reference_", None)
    if reference is None or reference.novelty.smallest <= model.novel_below:
        return None
    n, needed = len(reference.novelty.scores), int(np.ceil(1 / max(model.novel_below, 1e-9))) - 1
    return (
        f"too few training objects to call new objects novel at {model.novel_below:g}: it takes "
        f"{needed} held-out objects, and there are {n}; fit to more objects, or use krein "
        f"predict --novel-below {np.ceil(1000 * reference.novelty.smallest) / 1000:g}"
    )


def set_cells(assessed: NDArray[Any], names: Sequence[str]) -> list[list[Any]]:
    """Return the labels of each set, joined by |."""
    return [
        ["|".join(name for name, inside in zip(names, row, strict=True) if inside)]
        for row in assessed["set"]
    ]


def evidence_names(n: int) -> tuple[str, ...]:
    """Return the names of the columns for the n nearest known objects."""
    parts = ("nearest", "nearest_label", "nearest_value")
    return tuple(f"{part}_{k}" for k in range(1, n + 1) for part in parts)


def evidence_cells(assessed: NDArray[Any], n: int) -> list[list[Any]]:
    """Return the name (or row), label and value of the n nearest known objects."""
    rows = []
    for why in assessed["why"]:
        row: list[Any] = []
        for near in why.nearest:
            row += [near.name or str(near.index), str(near.label), near.value]
        rows.append(row + [None] * (3 * n - len(row)))
    return rows


def is_classified(row: Sequence[Any], at: Mapping[str, int]) -> bool:
    """Whether the object of a row got a label, that is, is not novel, rejected or unreadable."""
    return row[at["status"]] not in (UNREADABLE, NOVEL) and not row[at["rejected"]]


class Sorted:
    """Writes sequences to two FASTA files, with and without a label, as Kraken does."""

    def __init__(self, classified: IO[str] | None, unclassified: IO[str] | None) -> None:
        self.files = {True: classified, False: unclassified}

    def write(self, chunk: Chunk, rows: Sequence[Sequence[Any]], at: Mapping[str, int]) -> None:
        """Write the sequences of a chunk, each with its label."""
        for name, sequence, row in zip(chunk.names, chunk.objects, rows, strict=True):
            classified = is_classified(row, at)
            file = self.files[classified]
            if file is not None:
                label = f" label={row[at['label']]}" if classified else ""
                file.write(f">{name}{label}\n{sequence}\n")


@contextmanager
def sorting(
    source: Source, classified: str | None, unclassified: str | None
) -> Iterator[Sorted | None]:
    """Open the files that sequences are sorted into, if any."""
    if classified is None and unclassified is None:
        yield None
        return
    if source.kind != "sequences":
        raise click.UsageError(
            "--classified-out and --unclassified-out write FASTA, but NEW does not contain "
            "sequences"
        )
    with ExitStack() as stack:
        files = [
            None if path is None else stack.enter_context(writing(path))
            for path in (classified, unclassified)
        ]
        yield Sorted(*files)
