"""The command `krein`: files in, probabilities and a report out.

`group` finds a command in `commands/`, one file each, and reports its errors. All commands use
`options` and `output`. Those that learn from labelled objects use `reading` and `measure`, or
`hittables` for tables of hits. For new objects, `predictor` reads and assesses them (`letters`),
`status` decides and `columns` makes rows; `copies` and `counts` are what `predict` writes besides
rows, `service` and `web` are for `serve`. `about` describes a model file.
"""

import os

from .group import krein


def main() -> None:
    """Run the command."""
    # krein runs BLAS in one thread; buffers for others would only take memory, which may be limited
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    krein(prog_name="krein")


__all__ = ["krein", "main"]
