"""Probabilistic classification with similarities that are not kernels."""

__version__ = "0.1.0"
