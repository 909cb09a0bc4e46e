"""The result of a selection rule, which a model file contains; it needs no scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..core.checks import Array, Indices
from ..core.family import Family


@dataclass(frozen=True)
class Selection:
    """The landmarks that a rule chose, and what else it found."""

    indices: Indices  # ascending, without repetition
    details: dict[str, Any] = field(default_factory=dict)
    values: Array | None = None  # (N, m) of all objects to the landmarks, if known
    family: Family | None = None  # the family that the rule fitted, with the settings it chose
