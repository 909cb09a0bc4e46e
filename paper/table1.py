"""Table 1: accuracy and SMSS of iKFD on the four small sets, for SIM1 to SIM6."""

from __future__ import annotations

from .folds import Plan, Unit
from .methods import SOLVERS
from .published import SIM, SMALL
from .script import script


def units(plan: Plan) -> list[Unit]:
    return [
        Unit(name, f"ikfd:{rule}:{solver}")
        for name in SMALL
        for rule in SIM.values()
        for solver in SOLVERS
    ]


main = script("table1", __doc__, units)

if __name__ == "__main__":
    main()
