"""Tables 3 to 7: which methods run on the larger sets.

If N is in the thousands, the dense methods are too expensive, as in the paper.
"""

from __future__ import annotations

from .folds import Unit
from .methods import FAMILIES, solvers
from .sets import LARGE, SOURCES

FEW_FOLDS = 3

COSTLY = (
    *(
        (name, f"pcvm:all:{form}")
        for name in ("gesture", "peptides")
        for form in ("paper", "variant")
    ),
    *((name, "pcvm:") for name in ("zongker", "proteom", "chromo")),
    *(("zongker", f"ikfd:all:{form}") for form in ("paper", "variant")),
    ("chromo", "ikfd:all:"),
    ("swiss", "pcvm:"),
    ("swiss", "ikfd:auto:"),
)
"""Sets and prefixes of methods that take a minute or more per fold: only the first folds are used.
The exception is PCVM with our solver and the landmarks of a rule, which takes seconds."""


def unit(name: str, method: str) -> Unit:
    """Return the method on the set, with fewer folds if all of them would take too long.

    >>> unit("zongker", "pcvm:all:paper").folds, unit("zongker", "pcvm:meb:ours").folds
    (3, None)
    """
    quick = method.startswith("pcvm:") and method.endswith(":ours") and ":auto:" not in method
    costly = any(name == n and method.startswith(m) for n, m in COSTLY) and not quick
    return Unit(name, method, FEW_FOLDS if costly else None)


def units(rule: str) -> list[Unit]:
    """Return iKFD and PCVM with the landmarks of `rule`, then dense, for both solvers."""
    return [
        unit(name, f"{family}:{which}:{solver}")
        for which in (rule, "all")
        for name in LARGE
        if which != "all" or SOURCES[name].dense
        for family in FAMILIES
        for solver in solvers(family, which)
    ]
