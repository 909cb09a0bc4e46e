"""Cross-validate several models on the same folds; each pair is compared once and shared by all."""

from .plan import AVAILABLE
from .result import Evaluation, ModelResult
from .run import evaluate

__all__ = ["AVAILABLE", "Evaluation", "ModelResult", "evaluate"]
