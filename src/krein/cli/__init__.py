"""The command `krein`: files in, probabilities and a report out.

`group` finds a command in `commands/`, one file each, and reports its errors. The other files are
what commands share:

- all of them: `options`, `messages`, `terminal` (what a person reads) and `output` (files and rows)
- labelled objects: `reading`, `classes`, `measure`, and `hittables` for tables of hits
- new objects: `predictor` reads and assesses them (`letters`), `status` decides, `columns` makes
  rows
- only `predict`: `resuming`, `copies` and `counts`, for what it writes besides rows
- only `serve`: `service` and `web`
- model files: `about` describes them
"""

import os

from .group import krein


def main() -> None:
    """Run the command."""
    # krein runs BLAS in one thread; buffers for others would only take memory, which may be limited
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    krein(prog_name="krein")


__all__ = ["krein", "main"]
