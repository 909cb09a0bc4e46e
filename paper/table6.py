"""Table 6: run times on the larger sets, and how much faster low rank is; the fits of table 3."""

from __future__ import annotations

from .larger import units
from .script import script

main = script("table6", __doc__, lambda plan: units("meb"))

if __name__ == "__main__":
    main()
