"""Pure mathematics: arrays in, arrays out. numpy and scipy only.

Where both have a routine, NumPy's is taken: its BLAS and SciPy's keep threads of their own, and the
two would wait for the same processors.
"""
