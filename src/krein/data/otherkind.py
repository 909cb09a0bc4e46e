"""Collect objects of another kind over all chunks, and report them in one warning."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..measures.likeness import NAMED, Likeness, OtherKindWarning
from .chunk import Chunk

LISTED = 10_000
"""Maximum number of rows listed per reason: a file may contain more objects than fit in memory."""


@dataclass
class OtherKinds:
    """Objects of another kind in consecutive chunks, to be reported in one warning."""

    rows: dict[str, list[int]] = field(default_factory=dict)
    named: dict[str, tuple[list[str], int]] = field(default_factory=dict)

    def add(self, first: int, chunk: Chunk, others: dict[str, list[int]]) -> None:
        """Add the objects of a chunk by reason; `first` is the number of its first object."""
        for why, places in others.items():
            rows = self.rows.setdefault(why, [])
            rows += [first + i for i in places[: LISTED - len(rows)]]
            names, n = self.named.get(why, ([], 0))
            more = [chunk.where(i) for i in places[: NAMED - len(names)]]
            self.named[why] = (names + more, n + len(places))

    def warning(self) -> OtherKindWarning:
        """Return the warning about all of them."""
        return OtherKindWarning(self.rows, self.named)


def warn_of_partition(likeness: Likeness | None, chunk: Chunk) -> None:
    """Warn about the objects of a partition; on a worker, the client is warned too."""
    others = {} if likeness is None else likeness.others(chunk.objects)
    if others:
        from distributed import warn

        found = OtherKinds()
        found.add(0, chunk, others)
        warn(found.warning())
