"""Table 6: run times and speed-up on the larger sets, from the fits of table 3."""

from __future__ import annotations

from .larger import units
from .script import script

main = script("table6", __doc__, lambda plan: units("meb"))

if __name__ == "__main__":
    main()
