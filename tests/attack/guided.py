"""Search for files that break the readers, guided by coverage, if Atheris is installed.

    pip install atheris
    python -m tests.attack.guided --seconds 1800

Files are read from disk, text also from a pipe, and headers of models are sealed after each change.
The readers run in this process. They may raise only `DataError` and `ModelFileError`; anything
else, and anything slow or large, is a finding that Atheris records.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .damage import opened_model, sealed_text
from .seeds import Seed

SECONDS_EACH = 20
MEGABYTES = 1500


AS_FILE, AS_HEADER, AS_PIPE = range(3)
"""What is searched: a whole file, the header of a model, or the contents of a pipe."""


def contents(seed: Seed) -> list[bytes]:
    """Return the bytes of a seed to start from: as a file, and as a header or a pipe."""
    if seed.repack != "model":
        return [seed.content, b"", seed.content]
    return [seed.content, json.dumps(opened_model(seed.content)[1]).encode()]


def read(data: bytes, seeds: list[Seed], folder: Path) -> None:
    """Read a file; the first byte of `data` selects its name, the second how it is passed.

    The header of a model is sealed before, or no change would pass the checksum.
    """
    from krein import load
    from krein.io import DataError, open_source
    from krein.io.modelfile import ModelFileError

    if len(data) < 2:
        return
    seed, how, content = seeds[data[0] % len(seeds)], data[1] % 3, data[2:]
    path = folder / seed.name
    with contextlib.suppress(DataError, ModelFileError):
        if seed.repack == "model":
            if how == AS_HEADER:
                content = sealed_text(opened_model(seed.content)[0], content)
            path.write_bytes(content)
            load(path)
        elif how == AS_PIPE:
            with fed(content[:65_536]) as descriptor:
                _read_all(open_source(f"/dev/fd/{descriptor}"))
        else:
            path.write_bytes(content)
            _read_all(open_source(path))


def _read_all(source: Any) -> None:
    for _ in source.chunks(4096):
        pass


@contextlib.contextmanager
def fed(content: bytes) -> Iterator[int]:
    """Return a pipe that contains some bytes, as many as fit."""
    reader, writer = os.pipe()
    try:
        with contextlib.suppress(BlockingIOError):
            os.set_blocking(writer, False)
            os.write(writer, content)
        os.close(writer)
        yield reader
    finally:
        os.close(reader)


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
            import krein.io.modelfile
        import krein.model.file  # noqa: F401 - imported before the search starts

        from .seeds import make_seeds

        seeds = make_seeds(folder / "good")
        corpus = folder / "corpus"
        corpus.mkdir()
        for i, seed in enumerate(seeds):
            for how, content in enumerate(contents(seed)):
                (corpus / f"{how}-{seed.name}").write_bytes(bytes([i, how]) + content)

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
            lambda data: read(data, seeds, folder),
        )
        atheris.Fuzz()  # ends the process, with 0 if nothing was found
    return 0


if __name__ == "__main__":
    sys.exit(main())
