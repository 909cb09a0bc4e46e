"""Engines, which run functions somewhere and keep their results there.

`Threads` is the engine of this process; `DaskEngine` in `dask.py` runs tasks on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..compare.workers import limit_blas_threads
from ..core.moments import FAN, ordered_sum
from .chunks import Add

Task = Any
"""A present or future result that an engine stores and accepts as an argument of other tasks."""

Calls = Sequence[tuple[Any, ...]]
"""The arguments of several calls of one function: values, tasks, a `Call`, or lists of them."""


@dataclass(frozen=True)
class Call:
    """A function call as an argument of a task: it runs before the task, and belongs to it.

    Unlike a separate task, it does not start early and occupy memory that others need.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class TaskKilledError(RuntimeError):
    """Several workers died running the same task; `number` is its position among the tasks."""

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.number = number


class Engine(Protocol):
    """Runs functions somewhere and keeps their results there until they are needed.

    Another engine is one class with these methods; the code that divides data into tasks uses
    nothing else.

    Examples
    --------
    >>> from krein.data import Engine, Threads
    >>> engine: Engine = Threads(2)
    >>> shared = engine.broadcast(10)
    >>> engine.gather(engine.submit(pow, [(2, 3), (shared, 2)]))
    [8, 100]
    """

    threads: int
    """Number of tasks that run at a time."""

    def broadcast(self, item: Any) -> Task:
        """Send `item` to every worker once, when it is first needed."""

    def submit(
        self, function: Callable[..., Any], calls: Calls, beside: Sequence[Task] | None = None
    ) -> list[Task]:
        """Start `function(*call)` for every call; arguments may be tasks, a `Call`, or lists.

        With `beside`, each preferably runs where that task's result is stored.
        """

    def completed(self, tasks: list[Task]) -> Iterator[tuple[int, Task]]:
        """Yield the tasks with their numbers as they finish, and release them; empties the list."""

    def gather(self, tasks: Sequence[Task]) -> list[Any]:
        """Return the results in the order of the tasks; errors are raised here."""


class Threads:
    """The engine of this process.

    Parameters
    ----------
    threads : int
        Number of threads that run tasks at the same time.

    Examples
    --------
    >>> from krein.data import Threads
    >>> engine = Threads(2)
    >>> engine.gather(engine.submit(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="krein")

    def broadcast(self, item: Any) -> Task:
        """Return the item: it is here already."""
        return item

    def submit(
        self, function: Callable[..., Any], calls: Calls, beside: Sequence[Task] | None = None
    ) -> list[Task]:
        """Start the calls. One that depends on another starts after it, which avoids deadlocks."""
        return [self._pool.submit(_run, function, call) for call in calls]

    def completed(self, tasks: list[Task]) -> Iterator[tuple[int, Task]]:
        """Yield the tasks with their numbers as they end."""
        number = {task: i for i, task in enumerate(tasks)}
        tasks.clear()
        for task in as_completed(number):
            task.result()
            yield number[task], task

    def gather(self, tasks: Sequence[Task]) -> list[Any]:
        """Return the results."""
        return [task.result() for task in tasks]


def _run(function: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    with limit_blas_threads():
        return function(*(_resolved(argument) for argument in call))


def _resolved(argument: Any) -> Any:
    if isinstance(argument, Future):
        return argument.result()
    if isinstance(argument, Call):
        return argument.function(*(_resolved(item) for item in argument.arguments))
    if isinstance(argument, list):
        return [_resolved(item) for item in argument]
    return argument


def branches(engine: Engine, tasks: Sequence[Task], add: Add[Any]) -> list[Task]:
    """Return the sums of `FAN` results each, merged where they are stored."""
    parts = [list(tasks[i : i + FAN]) for i in range(0, len(tasks), FAN)]
    return engine.submit(ordered_sum, [(part, add) for part in parts])


def tree_sum(engine: Engine, tasks: Sequence[Task], add: Add[Any]) -> Any:
    """Return the sum of the results in the fixed order, merged on the engine `FAN` at a time."""
    while len(tasks) > FAN:
        tasks = branches(engine, tasks, add)
    return ordered_sum(engine.gather(tasks), add)


def aligned(item: Any) -> Any:
    """Return contiguous, aligned arrays; anything else unchanged.

    An array from a message may start at any byte, and BLAS then rounds differently. Also handles
    dataclasses, tuples and lists of arrays, such as the sums of a pass.
    """
    if isinstance(item, np.ndarray):
        return item if item.dtype == object else np.require(item, requirements=["C", "A"])
    if type(item) is tuple or (type(item) is list and isinstance(next(iter(item), 0), np.ndarray)):
        return type(item)(aligned(part) for part in item)
    if is_dataclass(item) and not isinstance(item, type):
        old = {part.name: getattr(item, part.name) for part in fields(item) if part.init}
        new = {name: aligned(part) for name, part in old.items()}
        moved = {name: part for name, part in new.items() if part is not old[name]}
        return replace(item, **moved) if moved else item
    return item
