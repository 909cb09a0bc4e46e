"""Table 5: iKFD and PCVM on the larger sets, dense and with entropy landmarks."""

from __future__ import annotations

from .larger import units
from .script import script

main = script("table5", __doc__, lambda plan: units("entropy"))

if __name__ == "__main__":
    main()
