"""Write the results of an evaluation, or explanations of labels, to one HTML file."""

from .explanations import write_explanations
from .page import render_report, write_report

__all__ = ["render_report", "write_explanations", "write_report"]
