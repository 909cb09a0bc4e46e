"""Run the command on damaged files, each in a separate process, and count the outcomes.

    python -m tests.attack.fuzz --cases 10000

One file in ten is read from a named pipe. After the damaged files come forged models: every number,
list and string of a header is changed, and the header sealed again (`damage.forgeries`).

A file may be refused, with exit code 1 or 2 and short lines without control characters. It may be
read, if the damage did no harm. Anything else is a failure, and the file is kept: a traceback, a
signal, more than 1 GB of memory or more than 20 s.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from .damage import Case, cases, forgeries
from .seeds import make_seeds

SECONDS = 20
MEGABYTES = 1000
LONGEST = 300
ALLOWED = ("read", "refused")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case."""

    kind: str
    seconds: float
    megabytes: float
    message: str


def warm_up() -> None:
    """Import and compile what the commands need, once, before child processes are forked."""
    import numpy as np
    import sklearn.utils.estimator_checks  # noqa: F401

    import krein.cli.commands.fit
    import krein.cli.commands.inspect
    import krein.cli.commands.predict
    import krein.model.file  # noqa: F401
    from krein.measures import available
    from krein.measures.registry import measure_class

    for name in available():
        cls = measure_class(name)
        if name in ("dtw", "msm"):
            cls().block(cls().check([[1.0, 2.0]]), cls().check([[1.0]]))
    with contextlib.suppress(ModuleNotFoundError):
        import pyarrow.parquet  # noqa: F401
    np.linalg.eigh(np.eye(3))


def run(case: Case, folder: Path) -> Outcome:
    """Run the command on a damaged file, in a child of this process."""
    path, out, said = folder / case.name, folder / "out", folder / "said"
    path.unlink(missing_ok=True)
    if case.fifo:
        os.mkfifo(path)
    else:
        path.write_bytes(case.content)
    out.unlink(missing_ok=True)
    words = {"FILE": str(path), "OUT": str(out)}
    command = [words.get(word, word) for word in case.command]
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        _child(command, said, folder / "printed")
    with feeding(path, case.content) if case.fifo else contextlib.nullcontext():
        status, usage, late = _waited(child, start)
    text = said.read_text("utf-8", "replace")
    megabytes = usage.ru_maxrss / 1024
    kind = "too slow" if late else _kind(status, text, (folder / "printed").read_bytes())
    if kind in ALLOWED and megabytes > MEGABYTES:
        kind = "too much memory"
    if kind in ALLOWED and sorted(folder.glob(".krein-*")):
        kind = "left something behind"
    return Outcome(kind, time.perf_counter() - start, megabytes, text[-500:])


@contextlib.contextmanager
def feeding(fifo: Path, content: bytes) -> Iterator[None]:
    """Write to a named pipe in a thread, as soon and as long as somebody reads it."""
    ended = threading.Event()

    def write() -> None:
        descriptor, left = -1, memoryview(content)
        while not ended.wait(0.002):
            try:
                if descriptor < 0:
                    descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:
                continue  # the pipe is full
            except BrokenPipeError:
                break
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads it yet
                    raise
                continue
            if not left:
                break
        if descriptor >= 0:
            os.close(descriptor)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _load(model: str, new: str) -> int:
    """Load a model and ask it everything, as a program in Python would; return an exit code."""
    import krein
    from krein.cli.group import _say
    from krein.io.modelfile import ModelFileError

    try:
        estimator = krein.load(model)
    except ModelFileError as error:
        _say(f"error: {error}")
        return 1
    columns = estimator.measure_.columns
    objects = krein.io.open_source(new, objects=columns).read().objects
    estimator.predict(objects)
    estimator.decision_function(objects)
    if estimator.model_.reference is not None:
        estimator.assess(objects, coverage=0.9, evidence=3)
        estimator.predict_set(objects)
    return 0


def _child(command: list[str], said: Path, printed: Path) -> None:
    """Run the command and exit; never returns."""
    code = 99
    try:
        os.setsid()
        limit = 8 * 2**30  # far above the memory allowed, but low enough to protect the machine
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for descriptor, target in ((1, printed), (2, said)):
            opened = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, descriptor)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        from krein.cli import krein

        warnings.resetwarnings()  # the caller may have turned them into errors
        try:
            if command[0] == "load":
                sys.exit(_load(*command[1:]))
            krein.main(command, prog_name="krein")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    os._exit(code)


def _waited(child: int, start: float) -> tuple[int, resource.struct_rusage, bool]:
    pause = 0.002
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return status, usage, False
        if time.perf_counter() - start > SECONDS:
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            return status, usage, True
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def _kind(status: int, said: str, printed: bytes) -> str:
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    code, lines = os.waitstatus_to_exitcode(status), said.splitlines()
    if "Traceback" in said or "(--debug" in said:
        return "traceback"
    if code not in (0, 1, 2):
        return f"exit {code}"
    if any(len(line) > LONGEST for line in lines):
        return "overlong line"
    if any(not line.isprintable() for line in lines) or b"\x1b" in printed:
        return "control characters"
    errors = [line for line in lines if line.startswith("krein: error: ")]
    if code and (len(errors) != 1 or any(not line.startswith("krein") for line in lines)):
        return "not one line"
    return "refused" if code else "read"


def fuzz(
    count: int, seed: int = 0, keep: Path | None = None, jobs: int = 1, every: int = 1
) -> Counter[str]:
    """Run cases and count their outcomes; files that fail are kept in the folder `keep`.

    There are `count` damaged files, and every `every`-th of all forged headers.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeds = make_seeds(folder / "good")
        warm_up()
        children, reports = [], []
        for job in range(jobs):
            first, last = count * job // jobs, count * (job + 1) // jobs
            reports.append(folder / f"report-{job}.json")
            place = folder / f"cases-{job}"
            place.mkdir()
            forged = islice(forgeries(seeds, count), job * every, None, jobs * every)
            share = chain(cases(seeds, seed, first, last - first), forged)
            if jobs == 1:
                _share(share, place, reports[-1], keep)
            elif (child := os.fork()) == 0:
                _share(share, place, reports[-1], keep)
                os._exit(0)
            else:
                children.append(child)
        for child in children:
            os.waitpid(child, 0)
        total: Counter[str] = Counter()
        for report in reports:
            total.update(json.loads(report.read_text()))
        return total


def _share(share: Iterable[Case], place: Path, report: Path, keep: Path | None) -> None:
    counts: Counter[str] = Counter()
    for case in share:
        outcome = run(case, place)
        counts[f"{outcome.kind}|{case.name}"] += 1
        (place / case.name).unlink()
        if outcome.kind not in ALLOWED and keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{case.number}-{case.name}").write_bytes(case.content)
            (keep / f"{case.number}.txt").write_text(
                f"{outcome.kind}\n{case.how}\n{' '.join(case.command)}\n"
                f"{outcome.seconds:.1f} s, {outcome.megabytes:.0f} MB\n{outcome.message}\n"
            )
    report.write_text(json.dumps(counts))


def table(counts: Counter[str]) -> str:
    """Return the counts by file and outcome, as text."""
    outcomes = sorted({key.partition("|")[0] for key in counts})
    names = sorted({key.partition("|")[2] for key in counts})
    rows = [("", *outcomes)]
    rows += [(name, *(str(counts[f"{kind}|{name}"]) for kind in outcomes)) for name in names]
    sums = [sum(counts[f"{kind}|{name}"] for name in names) for kind in outcomes]
    rows.append(("all", *map(str, sums)))
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(r, width, strict=True)) for r in rows)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.attack.fuzz")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    start = time.perf_counter()
    counts = fuzz(options.cases, options.seed, options.keep, options.jobs)
    print(table(counts))
    failed = sum(n for key, n in counts.items() if key.partition("|")[0] not in ALLOWED)
    seconds = time.perf_counter() - start
    number = f"{sum(counts.values()):,} damaged and forged files"
    print(f"{number} in {seconds:.0f} s, seed {options.seed}: {failed} failures")
    if failed:
        print(f"they are kept in {options.keep}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
