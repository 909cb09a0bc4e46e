"""Beyond the paper: alternatives from scikit-learn on the same data sets and folds."""

from __future__ import annotations

from .baselines import BASELINES
from .folds import Plan, Unit
from .larger import unit
from .published import SMALL
from .script import script

OURS = (
    "ikfd:all:ours",
    "ikfd:meb:ours",
    "ikfd:meb:ours:calibrated",
    "ikfd:auto:ours",
    "pcvm:meb:ours",
    "pcvm:auto:ours",
)


METHODS = (*OURS, *BASELINES)

SETS = (*SMALL, "sonatas", "peptides")
"""Small sets, of both kinds; on those of thousands of objects, most of these methods take hours."""

AUTO = 100
"""With fewer objects, none can be held out to choose the number of landmarks."""


def units(plan: Plan) -> list[Unit]:
    """Return all methods on all sets."""
    few = plan.objects is not None and plan.objects < AUTO
    return [
        unit(name, method)
        for name in SETS
        for method in METHODS
        if not (few and ":auto:" in method)
    ]


main = script("beyond", __doc__, units)

if __name__ == "__main__":
    main()
