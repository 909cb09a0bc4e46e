"""Letters of sequences: those that a model does not score, proteins among DNA, and the strand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from ..io import NamedObjects
from .messages import printable

if TYPE_CHECKING:
    from ..measures.sequences import StrandDetector
    from ..model.model import Model

STRAND_OBJECTS = 1_000
"""The strand of DNA is determined from about this many known sequences."""

PROTEIN_LETTERS, PROTEIN_SHARE = frozenset("EFILPQefilpq"), 0.1
"""Letters that no code of DNA uses; a sequence with this share of them is a protein."""


class LetterReader:
    """Reads sequences with letters that the scoring matrix of a model does not contain.

    `policy` is one of `options.LETTER_POLICIES`, or None for the default
    (`krein.measures.sequences`). As text, it is a message about the letters that were replaced.
    """

    def __init__(self, matrix: str, policy: str | None) -> None:
        from ..measures.sequences import get_scoring

        self.alphabet = get_scoring(matrix).alphabet
        self.policy = {None: "map", "X": "X"}.get(policy, "fail")
        self.changes: Counter[str] = Counter()
        self.n_changed = 0

    def proteins(self, objects: Any) -> dict[int, str]:
        """Return the positions of proteins among sequences that are to be compared as DNA."""
        if not self.alphabet.nucleotides:
            return {}
        return {
            i: "letters of proteins"
            for i, one in enumerate(objects)
            if isinstance(one, str)
            and sum(map(one.count, PROTEIN_LETTERS)) >= max(1, PROTEIN_SHARE * len(one))
        }

    def read(
        self, chunk: NamedObjects, others: Collection[int] = ()
    ) -> tuple[list[Any], dict[int, str]]:
        """Return the sequences in the letters that are scored, and why some are skipped.

        Those at the positions `others` are left as they are.
        """
        from ..measures.sequences import UnreadableSequence

        objects, reasons = list(chunk.objects), dict[int, str]()
        for i, given in enumerate(objects):
            changes: Counter[str] = Counter()
            if isinstance(given, str) and i not in others:
                try:
                    objects[i] = self.alphabet.read(given, self.policy, changes)
                except UnreadableSequence as error:
                    reasons[i] = f"{chunk.where(i)}: {error.reason}"
            self.n_changed += bool(changes)
            self.changes += changes
        return objects, reasons

    def __str__(self) -> str:
        how = ", ".join(f"{what} ({n:,})" for what, n in self.changes.most_common())
        sequences = "1 sequence" if self.n_changed == 1 else f"{self.n_changed:,} sequences"
        return printable(
            f"{sequences} contained letters that {self.alphabet.name} does not score: {how} "
            "(--unknown-letters)",
            300,
        )


def letter_reader(measure: Any, policy: str | None) -> LetterReader | None:
    """Return the reader for a measure that aligns sequences; None for any other measure.

    A model fitted with its own rule for unknown letters keeps it unless `policy` is given.
    """
    rule = getattr(measure, "unknown_letters", None)
    if rule is None or (policy is None and rule != "map"):
        return None
    return LetterReader(measure.matrix, policy)


def strand_detector(model: Model, strand: str) -> StrandDetector | None:
    """Return what detects the strand of DNA; None if it does not matter.

    `strand` is plus, both, or auto.
    """
    if getattr(model.measure, "both_strands", True) or not _compares_dna(model.measure):
        if strand == "both":
            raise click.UsageError(
                "--strand both is for a model of DNA that was not fitted with --both-strands"
            )
        return None
    if strand == "plus":
        return None
    from ..measures.sequences import StrandDetector

    parts = [model.landmarks.objects]
    if model.second_look is not None:
        parts.append(model.second_look.objects)
    known = [str(one) for part in parts for one in part]
    return StrandDetector(known[:: max(1, len(known) // STRAND_OBJECTS)])


def _compares_dna(measure: Any) -> bool:
    if not hasattr(measure, "both_strands"):
        return False
    from ..measures.sequences import get_scoring

    return get_scoring(measure.matrix).strands


def turn(objects: Any, places: list[int], turned: Collection[int]) -> list[Any]:
    """Return the objects at `places`, those at `turned` as their reverse complement."""
    from ..measures.sequences import reverse_complement

    each = zip(places, objects, strict=True)
    return [reverse_complement(x) if i in turned else x for i, x in each]
