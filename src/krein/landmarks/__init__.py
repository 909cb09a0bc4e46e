"""Which objects stand for all: one selection rule a file behind one small protocol."""

from .all import All, Given
from .auto import Auto
from .base import Rule, Selection, select_landmarks
from .entropy import Entropy
from .kmeans import KMeans
from .leverage import Leverage
from .meb import MEB
from .random import Random
from .registry import get_rule
from .stratified import Stratified

__all__ = [
    "MEB",
    "All",
    "Auto",
    "Entropy",
    "Given",
    "KMeans",
    "Leverage",
    "Random",
    "Rule",
    "Selection",
    "Stratified",
    "get_rule",
    "select_landmarks",
]
