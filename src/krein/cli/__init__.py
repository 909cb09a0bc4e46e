"""The command `krein`: files in, probabilities and a report out. One file per command.

What commands share: `options`, `output` and `group`; for labelled objects `reading`, `measure`
and `hits`; for new objects `predictor`, `letters`, `status` and `columns`.
`copies` and `counts` belong to `predict`, `service` and `web` to `serve`.
"""

import os

from .group import krein


def main() -> None:
    """Run the command."""
    # krein runs BLAS in one thread; buffers for others would only take memory, which may be limited
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    krein(prog_name="krein")


__all__ = ["krein", "main"]
