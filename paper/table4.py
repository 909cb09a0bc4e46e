"""Table 4: iKFD and PCVM on the larger sets, dense and with k-means landmarks."""

from __future__ import annotations

from .larger import units
from .script import script

main = script("table4", __doc__, lambda plan: units("kmeans"))

if __name__ == "__main__":
    main()
