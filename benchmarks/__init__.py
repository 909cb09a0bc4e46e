"""Benchmarks: ratios to a bare reference, measured in the same run. `make bench`."""
