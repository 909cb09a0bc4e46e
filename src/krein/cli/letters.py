"""Handle and count letters of new sequences that the scoring matrix of a model does not contain."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..io import Chunk
from .output import printable

POLICIES = ("X", "skip", "fail")
"""Replace each letter by X, skip the whole sequence, or end the run.

In a measure, `unknown_letters="skip"` leaves out the letters only (`krein.measures.letters`).
"""


class LetterPolicy:
    """Reads letters that are not scored, and counts the sequences that contain some.

    `policy` is one of `POLICIES`, or None for the default (`krein.measures.letters`).
    """

    def __init__(self, matrix: str, policy: str | None) -> None:
        from ..measures.scoring import get_scoring

        self.alphabet = get_scoring(matrix).alphabet
        self.policy = {None: "map", "X": "X"}.get(policy, "fail")
        self.done: Counter[str] = Counter()
        self.n_mapped = 0

    def read(self, chunk: Chunk) -> tuple[list[Any], dict[int, str]]:
        """Return the sequences in the letters that are scored, and why some are skipped."""
        objects, reasons = list(chunk.objects), dict[int, str]()
        for i, given in enumerate(objects):
            done: Counter[str] = Counter()
            if isinstance(given, str):
                try:
                    objects[i] = self.alphabet.read(given, self.policy, done)
                except ValueError as error:
                    told = str(error).split("; remove it")[0]
                    reasons[i] = f"{chunk.where(i)}: {told}"
            if done:
                self.n_mapped += 1
                self.done += done
        return objects, reasons

    def told(self) -> str:
        """Return a message about the letters that were replaced."""
        how = ", ".join(f"{what} ({n:,})" for what, n in self.done.most_common())
        sequences = "1 sequence" if self.n_mapped == 1 else f"{self.n_mapped:,} sequences"
        return printable(
            f"{sequences} contained letters that {self.alphabet.name} does not score: {how} "
            "(--unknown-letters)",
            300,
        )


def letters_of(measure: Any, policy: str | None) -> LetterPolicy | None:
    """Return the letter policy for a measure that aligns sequences; None for any other measure.

    A model fitted with its own rule for unknown letters keeps it unless `policy` is given.
    """
    rule = getattr(measure, "unknown_letters", None)
    if rule is None or (policy is None and rule != "map"):
        return None
    return LetterPolicy(measure.matrix, policy)
