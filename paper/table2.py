"""Table 2: run times for table 1, from the same fits."""

from __future__ import annotations

from .script import script
from .table1 import units

main = script("table2", __doc__, units)

if __name__ == "__main__":
    main()
