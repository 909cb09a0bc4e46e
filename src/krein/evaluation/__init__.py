"""Several models on the same folds of the same objects; no value is computed again for another."""

from .models import AVAILABLE
from .result import Evaluation, ModelResult
from .run import evaluate

__all__ = ["AVAILABLE", "Evaluation", "ModelResult", "evaluate"]
