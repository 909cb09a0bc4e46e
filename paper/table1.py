"""Table 1: accuracy and SMSS of iKFD on the four small sets, for SIM1 to SIM6."""

from __future__ import annotations

from .folds import Plan, Unit
from .methods import solvers
from .published import SIM, SMALL
from .script import script
from .sets import seeds


def units(plan: Plan) -> list[Unit]:
    return [
        Unit(name, f"ikfd:{rule}:{solver}", seed=seed)
        for name in SMALL
        for seed in seeds(name, plan.objects)
        for rule in SIM.values()
        for solver in solvers("ikfd", rule)
        if seed == 0 or solver != "ours"
    ]


main = script("table1", __doc__, units)

if __name__ == "__main__":
    main()
