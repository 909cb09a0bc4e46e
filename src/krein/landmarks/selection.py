"""What a selection rule finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..core.checks import Array, Indices
from ..core.family import Family


@dataclass(frozen=True)
class Selection:
    """Landmarks, and what the rule found on the way."""

    indices: Indices  # ascending, none twice
    details: dict[str, Any] = field(default_factory=dict)
    values: Array | None = None  # (N, m) of all objects to the landmarks, where they are known
    family: Family | None = None  # what the rule fitted, with what that has chosen on the way
