"""Tables 3 to 7: which methods run on the larger sets.

Where N is in the thousands the dense methods are out of reach, here as in the paper.
"""

from __future__ import annotations

from .folds import Unit
from .methods import FAMILIES, SOLVERS
from .sets import LARGE, SOURCES

FEW_FOLDS = 3

COSTLY = ("zongker", "pcvm:all:paper"), ("swiss", "pcvm:"), ("swiss", "ikfd:auto:")
"""Sets and beginnings of methods that take a minute a fold or more: the first folds have to do.
The exception is PCVM by our solver on the landmarks of a rule, which takes seconds."""


def unit(name: str, method: str) -> Unit:
    """Return the method on the set, on fewer folds where it takes too long for all.

    >>> unit("zongker", "pcvm:all:paper").folds, unit("zongker", "pcvm:meb:paper").folds
    (3, None)
    """
    quick = method.startswith("pcvm:") and method.endswith(":ours") and ":auto:" not in method
    costly = any(name == n and method.startswith(m) for n, m in COSTLY) and not quick
    return Unit(name, method, FEW_FOLDS if costly else None)


def units(rule: str) -> list[Unit]:
    """Return iKFD and PCVM with landmarks of `rule`, then dense; the paper's solver and ours."""
    return [
        unit(name, f"{family}:{which}:{solver}")
        for which in (rule, "all")
        for name in LARGE
        if which != "all" or SOURCES[name].dense
        for family in FAMILIES
        for solver in SOLVERS
    ]
