"""Pure mathematics: arrays in, arrays out. numpy and scipy only.

Where both have a routine, use NumPy's: NumPy and SciPy each ship a BLAS with its own threads, and
the two would compete for the same processors.
"""
