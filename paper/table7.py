"""Table 7: share of training objects with a weight above 1e-4, from the fits of table 3."""

from __future__ import annotations

from .larger import units
from .script import script

main = script("table7", __doc__, lambda plan: units("meb"))

if __name__ == "__main__":
    main()
