"""Thin scikit-learn façades over `krein.core`."""

from .discriminant import IKFD, IKQD
from .maps import IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
from .persist import load

__all__ = ["IKFD", "IKQD", "IndefiniteKernelPCA", "NystromMap", "PseudoEuclideanEmbedding", "load"]
