"""Search for files that break the readers, guided by coverage, if Atheris is installed.

    pip install atheris
    python -m tests.attack.guided --seconds 1800

The readers run in this process. They may raise only `DataError` and `ModelFileError`; anything
else, and anything slow or large, is a finding that Atheris records.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

SECONDS_EACH = 20
MEGABYTES = 1500


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.attack.guided")
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    try:
        import atheris
    except ModuleNotFoundError:
        print("no guided search: Atheris is not installed (pip install atheris)")
        return 0
    options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        import krein.landmarks  # the layers below the readers are not instrumented

        with atheris.instrument_imports(include=["krein.io"]):
            from krein.io import DataError, modelfile, open_source
        import krein.model.file

        from .seeds import make_seeds

        seeds = make_seeds(folder / "good")
        corpus = folder / "corpus"
        corpus.mkdir()
        for i, seed in enumerate(seeds):
            (corpus / seed.name).write_bytes(bytes([i]) + seed.content)

        def one(data: bytes) -> None:
            """Write and read a file; the first byte of `data` selects its name."""
            if not data:
                return
            path = folder / seeds[data[0] % len(seeds)].name
            path.write_bytes(data[1:])
            with contextlib.suppress(DataError, modelfile.ModelFileError):
                if path.suffix == ".krein":
                    krein.load(path)
                else:
                    for _ in open_source(path).chunks(4096):
                        pass

        atheris.Setup(
            [
                sys.argv[0],
                str(corpus),
                f"-max_total_time={options.seconds}",
                f"-timeout={SECONDS_EACH}",
                f"-rss_limit_mb={MEGABYTES}",
                f"-artifact_prefix={options.keep}/",
                "-max_len=8192",
                "-print_final_stats=1",
            ],
            one,
        )
        atheris.Fuzz()  # ends the process, with 0 if nothing was found
    return 0


if __name__ == "__main__":
    sys.exit(main())
