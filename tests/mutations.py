"""Mutation testing: change the code in one place at a time, and check whether a test fails.

    python -m tests.mutations --count 160 --seed 0
    python -m tests.mutations --again        # after new tests: try the survivors once more

Each mutation alters one operator, comparison, condition, constant, function or statement of
`krein.core` or `krein.estimators`; `tests/mutants.py` lists the kinds. The tests that execute the
line run against a private copy, the most specific first, up to the first failure. Which tests
execute a line is recorded once by coverage. Everything is kept in `build/mutations`, so that a run
resumes where it stopped. `tests/equivalent.toml` lists mutations that change no result, and why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from .mutants import Mutant, mutants_of, spread

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "mutations"
COPY = KEPT / "copy"
MUTATED = ("src/krein/core", "src/krein/estimators")
TESTS = (
    "tests/core",
    "tests/landmarks",
    "tests/estimators",
    "tests/evaluation",
    "tests/test_package.py",
    "tests/test_reject.py",
    "tests/data/test_files.py",
    "tests/data/test_calibration.py",
    "tests/data/test_one_path.py",
    "tests/attack/test_models.py",
    *MUTATED,
)
"""Tests that may catch a mutation, doctests included; those that start a cluster take too long."""
LIBRARIES = (
    "hypothesis.extra.numpy", "numpy.testing", "pandas", "rapidfuzz", "rich.progress",
    "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "scipy.special", "scipy.stats",
    "sklearn.model_selection", "sklearn.utils.estimator_checks",
)  # fmt: skip
"""Modules that are loaded once, before a process is forked for each mutation."""
FAILED = (1, 2, 4)
"""Exit codes of pytest if a test failed, or if krein could not be imported by one test or all."""
NAMED = ("FAILED", "ERROR", "ImportError while loading conftest")
"""Prefixes of the lines that name what failed."""
BROKEN = 70
STARTUP = 60.0
"""A run of tests counts as hanging after this many seconds plus ten times its usual duration."""


def digest(*texts: str) -> str:
    """Return a short hash of some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def sources(root: Path = ROOT) -> dict[str, str]:
    """Return the text of each file that is mutated."""
    paths = (path for folder in MUTATED for path in sorted((root / folder).rglob("*.py")))
    return {str(path.relative_to(root)): path.read_text("utf-8") for path in paths}


def make_copy() -> None:
    """Copy what the tests need, so that the working tree is not changed."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for folder in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / folder, COPY / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", COPY)


def prepare() -> None:
    """Use one thread and the same examples every time, and load what all tests need."""
    os.environ |= {
        "PYTHONPATH": str(COPY / "src"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "CI": "1",
    }
    for name in LIBRARIES:
        import_module(name)


class Recorder:
    """A pytest plugin: which lines each test executes, and how long it takes.

    The lines that a shared fixture executes are counted for each test that uses the fixture.
    """

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)
        self.fixtures: dict[str, list[str]] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.fixtures[item.nodeid] = list(getattr(item, "fixturenames", ()))
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.switch_context("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        if fixturedef.scope == "function":
            yield
            return
        self.coverage.switch_context(f"fixture {fixturedef.baseid} {fixturedef.argname}")
        yield
        current = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        self.coverage.switch_context(current)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def tests_of(self, context: str) -> list[str]:
        """Return the tests that a context stands for."""
        if not context.startswith("fixture "):
            return [context] if context else []
        _, base, name = context.split(" ", 2)
        return [
            test for test, names in self.fixtures.items() if name in names and test.startswith(base)
        ]


def record(paths: list[str], folder: Path) -> None:
    """Run tests, and write for each test file which lines each of its tests executes."""
    import coverage

    measured = coverage.Coverage(data_file=None, source=[str(ROOT / p) for p in MUTATED])
    recorder = Recorder(measured)
    measured.start()
    code = pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", *paths], plugins=[recorder])
    measured.stop()
    if code not in (0, 1):  # 1: some fail, and are left out
        raise SystemExit(f"the tests cannot be run: pytest ended with {code!r}")
    data = measured.get_data()
    lines: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for file in data.measured_files():
        inside = str(Path(file).relative_to(ROOT))
        for line, contexts in data.contexts_by_lineno(file).items():
            for test in {test for context in contexts for test in recorder.tests_of(context)}:
                lines[test].append((inside, line))
    for path in paths:
        found = {
            test: {"seconds": seconds, "lines": [] if test in recorder.failed else lines[test]}
            for test, seconds in recorder.seconds.items()
            if test.startswith(f"{path}::")
        }
        (folder / f"{recording(path, ROOT)}.json").write_text(json.dumps(found), "utf-8")
    if recorder.failed:
        print(f"these fail without a mutation, and are left out: {recorder.failed}")


def recording(path: str, root: Path) -> str:
    """Return the name of the recording of a test file, given the present source."""
    return digest(*sources(root).values(), path, (root / path).read_text("utf-8"))


class Covering:
    """Which tests execute a line, from one recording per test file."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.width: dict[str, int] = {}
        self.lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.files: dict[str, set[str]] = defaultdict(set)

    def collect(self) -> None:
        """Read the recordings, and make those that are missing or out of date."""
        folder = KEPT / "recorded"
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name in TESTS:
            found = sorted((COPY / name).rglob("*.py" if name in MUTATED else "test_*.py"))
            paths += [str(path.relative_to(COPY)) for path in found] or [name]
        kept_as = {path: folder / f"{recording(path, COPY)}.json" for path in paths}
        missing = [path for path in paths if not kept_as[path].exists()]
        if missing:
            print(f"recording which lines {len(missing)} test files execute", flush=True)
            command = [sys.executable, "-m", "tests.mutations", "--record", str(folder)]
            with open(KEPT / "recording.log", "w", encoding="utf-8") as log:
                subprocess.run([*command, *missing], cwd=COPY, check=True, stdout=log)
        for path in paths:
            kept = json.loads(kept_as[path].read_text("utf-8"))
            for test, found in kept.items():
                self.seconds[test] = found["seconds"]
                self.width[test] = len(found["lines"])
                for file, line in found["lines"]:
                    self.lines[file, line].add(test)
                    self.files[file].add(test)

    def _users(self, file: str) -> set[str]:
        """Return the tests of the modules that import a module of declarations."""
        imported = f".{Path(file).stem} import"
        users = [other for other, text in sources(COPY).items() if imported in text]
        return set().union(*(self.files[other] for other in users))

    def tests(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests that execute a mutated line, within a budget.

        The fastest case of each test comes before its other cases, and a test that executes few
        lines before one that executes many: it is quick and specific.
        A line that runs when its module is imported concerns every test that uses the module.
        """
        found: set[str] = set()
        for line in mutant.lines:
            found |= self.lines.get((mutant.file, line), set())
        if mutant.at_import:
            found = found or self.files[mutant.file] or self._users(mutant.file)
        cases: Counter[str] = Counter()
        order = []
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            name = test.partition("[")[0]
            order.append((cases[name], self.width[test], test))
            cases[name] += 1
        chosen, total = [], 0.0
        for _, _, test in sorted(order):
            if not chosen or total + self.seconds[test] <= budget:
                chosen.append(test)
                total += self.seconds[test]
        return chosen


def attempt(file: str, mutated: str, tests: list[str], seconds: float) -> tuple[str, str]:
    """Run tests against a copy with one file changed; return how it ended, and what failed."""
    target, said = COPY / file, KEPT / "said"
    before = target.read_text("utf-8")
    try:
        _write(target, mutated)
        child = os.fork()
        if child == 0:
            _run(tests, said)
        status = _wait(child, STARTUP + 10 * seconds)
    finally:
        _write(target, before)
    if status is None:
        return "caught", "timeout"
    if status == 0:
        return "survived", ""
    lines = said.read_text("utf-8", "replace").splitlines()
    failed = [line for line in lines if line.startswith(NAMED)]
    if status > 0 and (status not in FAILED or not failed):
        raise RuntimeError("\n".join(["pytest could not run:", *lines[-20:]]))
    return "caught", (failed or [f"signal {-status}"])[0]


def control(failures: set[str], seconds: dict[str, float]) -> None:
    """Raise an error unless the tests that caught a mutation pass without one."""
    named = {line.removeprefix("FAILED ").partition(" - ")[0] for line in failures}
    tests = sorted(named & seconds.keys())
    if tests:
        file = f"{MUTATED[0]}/__init__.py"
        text = (COPY / file).read_text("utf-8")
        how, by = attempt(file, text, tests, sum(seconds[test] for test in tests))
        if how != "survived":
            raise RuntimeError(f"this fails without a mutation: {by}")
        print(f"{len(tests)} tests caught a mutation; they pass without one")


def _write(target: Path, text: str) -> None:
    """Change a file, and delete its bytecode, whose time stamps have a resolution of one second."""
    target.write_text(text, "utf-8")
    for stale in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
        stale.unlink()


def _run(tests: list[str], said: Path) -> None:
    """Run tests in this process, a child, and end it; libraries are loaded already."""
    os.setsid()
    os.chdir(COPY)
    with open(said, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "krein")]:
        del sys.modules[name]
    sys.path[:0] = [str(COPY), str(COPY / "src")]
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of libraries loaded already
    code = BROKEN
    try:
        code = int(pytest.main([*options, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, seconds: float) -> int | None:
    """Return the exit status of a child; after this many seconds, kill it and return None."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)  # not waited for yet, so its process id is still its own
    os.waitpid(child, 0)
    return None


def equivalent() -> dict[str, str]:
    """Return the reason for each mutation that is known not to change any result."""
    listed = tomllib.loads((ROOT / "tests" / "equivalent.toml").read_text("utf-8"))
    return {entry["mutation"]: entry["reason"] for entry in listed["equivalent"]}


def summary(results: dict[str, dict[str, Any]], chosen: list[Mutant]) -> None:
    """Print the share caught, by kind, and the survivors."""
    reasons = equivalent()
    done = [(mutant, results[mutant.key]) for mutant in chosen if mutant.key in results]
    uncaught = [mutant for mutant, result in done if result["how"] != "caught"]
    alike = [mutant for mutant in uncaught if mutant.name in reasons]
    counted = [(mutant, result) for mutant, result in done if mutant not in alike]
    survivors = [mutant for mutant in uncaught if mutant not in alike]
    kinds: Counter[str] = Counter(mutant.kind for mutant, _ in counted)
    missed: Counter[str] = Counter(mutant.kind for mutant in survivors)
    for mutant in survivors:
        print(f"survived: {mutant.name}  (line {mutant.lines[0]}, {results[mutant.key]['how']})")
    for kind, number in kinds.most_common():
        print(f"{kind:12} {number - missed[kind]:4} of {number:4} caught")
    print(f"{len(done)} mutations, {len(alike)} of them equivalent; of the others")
    for name, left_out in [("all", ""), ("without tuning constants", "tuning")]:
        total = sum(number for kind, number in kinds.items() if kind != left_out)
        caught = total - sum(number for kind, number in missed.items() if kind != left_out)
        print(f"{name}: {caught} of {total} caught ({caught / max(1, total):.1%})")


def main() -> None:
    """Try mutations until the requested number has been tested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=160, help="mutations in the sample")
    parser.add_argument("--seed", type=int, default=0, help="which sample")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests per mutation")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--report", action="store_true", help="print what is known")
    parser.add_argument("--record", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.record:
        return record(asked.paths, Path(asked.record))

    texts = sources()
    candidates = {file: mutants_of(file, text) for file, text in texts.items()}
    chosen = spread(candidates, asked.count, asked.seed)
    KEPT.mkdir(parents=True, exist_ok=True)
    store = KEPT / "results.jsonl"
    results: dict[str, dict[str, Any]] = {}
    for line in store.read_text("utf-8").splitlines() if store.exists() else []:
        results[json.loads(line)["key"]] = json.loads(line)
    if asked.report:
        return summary(results, chosen)

    reasons = equivalent()
    make_copy()
    prepare()
    covering = Covering()
    covering.collect()
    for number, mutant in enumerate(chosen, 1):
        known = results.get(mutant.key)
        if known and (known["how"] == "caught" or not asked.again or mutant.name in reasons):
            continue
        tests = covering.tests(mutant, asked.budget)
        started = time.perf_counter()
        how, by = "uncovered", ""
        if tests:
            usual = sum(covering.seconds[test] for test in tests)
            how, by = attempt(mutant.file, mutant.apply(texts[mutant.file]), tests, usual)
        took = round(time.perf_counter() - started, 1)
        result = {"key": mutant.key, "name": mutant.name, "how": how, "by": by, "seconds": took}
        results[mutant.key] = result
        with open(store, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print(f"{number:4} {how:9} {took:6.1f} s  {mutant.name}", flush=True)
    control({result["by"] for result in results.values()}, covering.seconds)
    return summary(results, chosen)


if __name__ == "__main__":
    main()
