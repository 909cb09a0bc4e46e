"""Write the results of an evaluation to one HTML file."""

from .page import render_report, write_report
from .why import write_explanations

__all__ = ["render_report", "write_explanations", "write_report"]
