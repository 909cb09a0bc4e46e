"""Thin scikit-learn façades over `krein.core`."""

from .ikfd import IKFD
from .ikqd import IKQD
from .krein import KreinClassifier
from .maps import IndefiniteKernelPCA, NystromMap, PseudoEuclideanEmbedding
from .pcvm import PCVM
from .persist import load

__all__ = [
    "IKFD",
    "IKQD",
    "PCVM",
    "IndefiniteKernelPCA",
    "KreinClassifier",
    "NystromMap",
    "PseudoEuclideanEmbedding",
    "load",
]
