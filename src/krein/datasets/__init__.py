"""Data to try things on: generators with a seed, in scikit-learn's manner."""

from .simulated import make_checkerboard, make_three_gaussians

__all__ = ["make_checkerboard", "make_three_gaussians"]
