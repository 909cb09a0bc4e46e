"""One HTML file that tells what an evaluation found."""

from .page import render_report, write_report

__all__ = ["render_report", "write_report"]
