"""Table 3: iKFD and PCVM on the larger sets, dense and with MEB landmarks."""

from __future__ import annotations

from .larger import units
from .script import script

main = script("table3", __doc__, lambda plan: units("meb"))

if __name__ == "__main__":
    main()
