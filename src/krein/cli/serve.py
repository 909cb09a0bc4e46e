"""`krein serve`: predictions over HTTP, as JSON, within limits.

`Service` knows nothing of HTTP: it turns the body of a request into objects, and objects into rows.
`make_app` puts it behind the routes, and `openapi.json` describes them for clients. Starlette,
uvicorn and the Prometheus client are optional, so they are imported only when the command runs.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import os
import queue
import re
import socket
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..compare.pairs import OutOfTime
from ..data.dataset import ForeignObjectWarning
from ..io import Chunk, DataError
from ..version import __version__
from .group import krein_command
from .inspect import describe_model
from .options import (
    Share,
    ambiguous_below,
    message_of,
    novel_below,
    own_measure,
    printable,
    unknown_letters,
)
from .output import say
from .predictor import Details, Predictor, Row

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

FOLDER = Path(__file__).parent  # of the page and the OpenAPI document

STEP, STEP_SECONDS = 32, 0.2
"""Maximum number of objects, and estimated time, of a step. Between two steps of a request, other
requests have their turn."""

GRACE = 1
"""Seconds that requests in progress have to finish when the service is stopped."""

QUIET = ("/health", "/ready", "/metrics")
"""Addresses that machines call all the time; they are not logged."""


@dataclass(frozen=True)
class Limits:
    """Limits on the size and time of a request, and on the number of requests."""

    bytes: int = 1_000_000
    objects: int = 1000
    length: int = 100_000  # of an object, in letters or numbers
    seconds: float = 30.0
    requests: int = 64  # in progress at the same time


class RequestError(Exception):
    """A request that is refused; `status` is the HTTP status code.

    `retry_after` is the number of seconds after which it may succeed, if it may.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


@krein_command("serve")
@click.argument("model", type=click.Path())
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on. The default is reachable from this machine only; there is no "
    "login.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=2,
    help="Number of objects, or small groups of objects, that are compared at the same time.",
)
@click.option(
    "--max-bytes", type=click.IntRange(1), default=1_000_000, help="Maximum size of a request."
)
@click.option(
    "--max-objects",
    type=click.IntRange(1),
    default=1000,
    help="Maximum number of objects per request.",
)
@click.option(
    "--max-length",
    type=click.IntRange(1),
    default=100_000,
    help="Maximum length of an object, in letters or numbers. A longer one is not compared.",
)
@click.option(
    "--max-seconds",
    type=Share(0, min_open=True),
    default=30.0,
    help="Maximum time per request, including the time in the queue.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=64,
    help="Maximum number of requests in progress. Others are told to try again later.",
)
@novel_below
@ambiguous_below
@own_measure
@unknown_letters
@click.option("--access-log/--no-access-log", default=True, help="Print a line for each request.")
def command(
    model: str,
    host: str,
    port: int,
    threads: int,
    max_bytes: int,
    max_objects: int,
    max_length: int,
    max_seconds: float,
    max_requests: int,
    novel_below: float | None,
    ambiguous_below: float | None,
    measure: str | None,
    unknown_letters: str | None,
    access_log: bool,
) -> None:
    """Serve predictions of a MODEL from krein fit, as JSON over HTTP.

    POST an object or a list of objects to /predict. /model describes the model, /health reports
    that the service is running, /ready that it accepts requests, /metrics counts them for
    Prometheus, /openapi.json documents the service, and / is a page where you can paste objects.

    \b
      krein serve model.krein --port 8000
    """
    try:
        import prometheus_client  # noqa: F401 - needed by `make_app`
        import starlette  # noqa: F401 - needed by `make_app`
        import uvicorn
    except ModuleNotFoundError as missing:
        if missing.name not in ("uvicorn", "starlette", "prometheus_client"):
            raise
        raise ImportError(
            f"krein serve needs the package {missing.name!r}, which is not installed: "
            'pip install "krein[serve]"'
        ) from missing
    # every row says so itself
    warnings.simplefilter("ignore", ForeignObjectWarning)
    limits = Limits(max_bytes, max_objects, max_length, max_seconds, max_requests)
    details = Details(nested=True, ambiguous_below=ambiguous_below, novel_below=novel_below)
    service = Service(model, limits, unknown_letters, details, measure)
    local = host in ("127.0.0.1", "localhost", "::1")
    app = make_app(service, threads=threads, local=local, access_log=access_log)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {host}, port {port}: {error}") from error
    with listening:
        # send responses at once: otherwise, the second packet waits about 40 ms for the
        # acknowledgement of the first. Connections inherit the option; asyncio does not set it on
        # sockets created this way
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shown = f"[{host}]" if ":" in host else host
        say("serving", f"http://{shown}:{listening.getsockname()[1]}")
        sys.stdout.flush()
        config = uvicorn.Config(
            app,
            http=header_timeout(limits.seconds),
            ws="none",
            log_level="critical",  # the application reports errors itself
            access_log=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=GRACE,
        )
        uvicorn.Server(config).run(sockets=[listening])


@dataclass(frozen=True)
class Parsed:
    """The objects of a request; those at `reasons` cannot be read."""

    objects: list[Any]
    names: list[str]
    single: bool  # whether the response is one prediction, not a list
    reasons: dict[int, str] = field(default_factory=dict)


class Service:
    """A model and its limits: requests in, rows out."""

    def __init__(
        self,
        path: str,
        limits: Limits,
        unknown_letters: str | None = None,
        details: Details | None = None,
        measure: str | None = None,
    ) -> None:
        self.limits = limits
        details = details or Details(nested=True)
        self.predictor = Predictor(
            path, details, n_jobs=1, unknown_letters=unknown_letters, measure=measure
        )
        model, about = self.predictor.model, describe_model(path)
        if model.hits is not None and model.hits.score:
            raise DataError(
                f"{path}: was fitted to a table of hits, and needs another one for new objects: "
                "use krein predict"
            )
        self.accepts = model.measure.accepts
        known = model.landmarks.objects
        self.text = self.accepts == "objects" and isinstance(known[0], str | bytes)
        self.kind: Any = "strings"
        if model.measure.columns is not None:
            self.kind = "records"
        elif not self.text:
            self.kind = "series" if self.accepts == "objects" else "vectors"
        vectors = self.kind == "vectors" and self.accepts != "values"
        self.shape = np.shape(known)[1:] if vectors else None
        # novelty needs a second look at every object
        comparisons = int(about["landmarks"]) + int(about["candidates"] or 0)
        self.about = {
            **about,
            "model": os.path.basename(path),
            "takes": "text" if self.text else "records" if self.kind == "records" else "numbers",
            "columns": model.measure.columns,
            "comparisons_per_answer": None if self.accepts == "values" else comparisons,
            "novel_below": model.novel_below if self.predictor.assesses else None,
            "ambiguous_below": model.ambiguous_below,
            "limits": asdict(limits),
        }
        self._rate = self._measured_rate(known)

    def _measured_rate(self, known: Any) -> tuple[float, int]:
        """Return the processor time per letter or number, and how many it was measured on.

        The first call loads what is needed; with a fast measure, the second has a whole step.
        """
        if self.accepts == "values":
            return 0.0, 0
        some = list(known[:STEP])
        if self.text and isinstance(some[0], bytes):
            some = [one.decode("utf-8", "replace") for one in some]
        began = time.perf_counter()
        self._rows(some[:1], ["0"], 0, None)
        some = some[: STEP if time.perf_counter() - began < STEP_SECONDS else 1]
        rows, seconds = self._rows(some, [str(i) for i in range(len(some))], 0, None)
        units = self._units(some, rows)
        return seconds / max(units, 1), units

    def _units(self, objects: list[Any], rows: list[Row]) -> int:
        """Return the number of letters or numbers of the objects that were compared."""
        pairs = zip(objects, rows, strict=True)
        return sum(int(self._length(one)) for one, row in pairs if row["label"] is not None)

    def _length(self, one: Any) -> int:
        if self.kind == "records":
            return sum(map(_size, one.values()))
        return _size(one)

    def costs(self, objects: list[Any]) -> list[float]:
        """Return the estimated processor time of each object in seconds: by its length, and 0 if it
        will not be compared."""
        profile = self.predictor.model.profile
        found = {} if profile is None else profile.foreign(objects)
        foreign = {i for rows in found.values() for i in rows}
        return [
            0.0 if i in foreign else self._rate[0] * self._length(one)
            for i, one in enumerate(objects)
        ]

    @staticmethod
    def steps(costs: list[float]) -> Iterator[slice]:
        """Divide objects with these costs into steps of limited size and time."""
        start, seconds = 0, 0.0
        for i, cost in enumerate(costs):
            if i > start and (i == start + STEP or seconds + cost > STEP_SECONDS):
                yield slice(start, i)
                start, seconds = i, 0.0
            seconds += cost
        yield slice(start, len(costs))

    def answer(
        self, objects: list[Any], names: list[str], start: int, until: float | None
    ) -> list[Row]:
        """Return the rows of some objects, from `start` on; past `until`, raise an error."""
        rows, seconds = self._rows(objects, names, start, until)
        rate, measured_on = self._rate
        units = self._units(objects, rows)
        if units > measured_on // 2:  # a few letters would overestimate the rate
            new = seconds / units
            # a moving average, quick to fall; races between threads only make it less exact
            self._rate = rate + (0.5 if new < rate else 0.1) * (new - rate), measured_on
        return rows

    def _rows(
        self, objects: list[Any], names: list[str], start: int, until: float | None
    ) -> tuple[list[Row], float]:
        """Return the rows of some objects, and the processor time."""
        began = time.thread_time()
        part = np.stack(objects) if self.kind == "vectors" else objects
        chunk = Chunk(names, part, None, start, "the request", self.kind)
        try:
            rows = self.predictor.rows_of(chunk, until)
        except DataError as error:
            raise RequestError(422, message_of(error)) from error
        except OutOfTime:
            raise _too_late() from None
        return rows, time.thread_time() - began

    def parse(self, body: bytes) -> Parsed:
        """Return the objects of a request."""
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RequestError(400, "the request is not JSON") from error
        if not isinstance(request, dict) or ("object" in request) == ("objects" in request):
            raise RequestError(400, 'send {"object": …} or {"objects": […]}')
        if unknown := set(request) - {"object", "objects", "names"}:
            raise RequestError(400, f"there is no field {min(unknown)[:60]!r}")
        single = "object" in request
        objects = [request["object"]] if single else request["objects"]
        if not isinstance(objects, list) or not objects:
            raise RequestError(400, "objects must be a list of at least one object")
        if len(objects) > self.limits.objects:
            raise RequestError(413, f"a request may have at most {self.limits.objects:,} objects")
        names = request.get("names", [str(i) for i in range(len(objects))])
        if (
            not isinstance(names, list)
            or len(names) != len(objects)
            or not all(isinstance(name, str) for name in names)
        ):
            raise RequestError(400, "names must be a list of strings, one per object")
        if not all(map(_is_unicode, names)):
            raise RequestError(400, "a name contains half of a surrogate pair, which is not text")
        read, reasons, shape = list[Any](), dict[int, str](), self.shape
        for i, item in enumerate(objects):
            try:
                read.append(self._object(item, shape))
                if self.kind == "vectors":
                    shape = read[-1].shape
            except ValueError as error:
                read.append(None)
                reasons[i] = f"object {i}: {error}"
        return Parsed(read, names, single, reasons)

    def _object(self, item: Any, shape: tuple[int, ...] | None) -> Any:
        """Return an object of a request in the form that the file readers return."""
        most = self.limits.length
        if self.text:
            if not isinstance(item, str):
                raise ValueError("is not a string, but the model expects one")
            if not _is_unicode(item):
                raise ValueError("contains half of a surrogate pair, which is not text")
            if len(item) > most:
                raise ValueError(f"has {len(item):,} letters; at most {most:,} are allowed")
            return item
        if self.kind == "records":
            return self._record(item)
        try:
            array = np.array(item, dtype=np.float64)
        except (TypeError, ValueError, RecursionError, OverflowError):
            array = np.empty(0)
        if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
            raise ValueError("is not a list of finite numbers")
        if array.size > most:
            raise ValueError(f"has {array.size:,} numbers; at most {most:,} are allowed")
        if self.kind == "vectors" and shape not in (None, array.shape):
            assert shape is not None
            wanted = " × ".join(map(str, shape))
            raise ValueError(f"has {array.size:,} numbers; {wanted} are expected")
        return array[:, None] if self.accepts == "objects" and array.ndim == 1 else array

    def _record(self, item: Any) -> dict[str, Any]:
        """Return a record of a request; the measure checks its cells."""
        if not isinstance(item, dict) or not all(map(_is_unicode, item)):
            raise ValueError("is not a record with named fields, but the model expects one")
        texts = [cell for cell in item.values() if isinstance(cell, str)]
        if not all(map(_is_unicode, texts)):
            raise ValueError("contains half of a surrogate pair, which is not text")
        try:
            size = sum(map(_size, item.values()))
        except (ValueError, RecursionError):
            raise ValueError("contains lists of different lengths") from None
        if size > self.limits.length:
            raise ValueError(
                f"has {size:,} letters and numbers; at most {self.limits.length:,} are allowed"
            )
        return item


def _size(cell: Any) -> int:
    """Return the number of letters or numbers of an object."""
    return len(cell) if isinstance(cell, str | bytes) else int(np.size(cell))


def _is_unicode(text: str) -> bool:
    """Whether a string can be encoded: JSON may contain half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Workers:
    """Threads that run the steps of all requests in the order in which they were added.

    A request adds a step when its previous one is done, so requests take turns. The process does
    not wait for the threads when it exits.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._steps: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._steps = queue.SimpleQueue()
        for i in range(n):
            threading.Thread(target=self._work, name=f"krein-serve-{i}", daemon=True).start()

    def add(self, step: Callable[[], Any]) -> Future[Any]:
        """Run a step as soon as a thread is free, unless it is cancelled before."""
        future: Future[Any] = Future()
        self._steps.put((future, step))
        return future

    def close(self) -> None:
        """Let the threads end after their current steps."""
        for _ in range(self.n):
            self._steps.put(None)

    def _work(self) -> None:
        while (found := self._steps.get()) is not None:
            future, step = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(step())
            except BaseException as error:
                future.set_exception(error)


class Metrics:
    """What `/metrics` reports, in the format of Prometheus."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        about: dict[str, Any] = {"namespace": "krein", "registry": self.registry}
        self.requests = Counter("requests", "Requests.", ["path", "status"], **about)
        self.seconds = Histogram(
            "request_seconds", "Time per request, including the queue.", ["path"], **about
        )
        self.objects = Counter(
            "objects", "Objects by the status of their row.", ["status"], **about
        )
        self.in_progress = Gauge("requests_in_progress", "Requests running or waiting.", **about)

    def text(self) -> tuple[bytes, str]:
        """Return the report and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST


def make_app(
    service: Service, *, threads: int = 2, local: bool = True, access_log: bool = False
) -> Starlette:
    """Return the web application. A local one answers only requests to this machine's own names."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    limits, metrics, workers = service.limits, Metrics(), Workers(threads)
    html = (FOLDER / "page.html").read_text("utf-8")
    policy = {"Content-Security-Policy": _content_policy(html)}
    # requests in progress, and their estimated cost; only the event loop changes them
    busy, backlog = 0, 0.0

    def refusal(error: RequestError) -> Response:
        again = error.retry_after
        headers = {} if again is None else {"Retry-After": str(again)}
        return JSONResponse({"error": str(error)}, status_code=error.status, headers=headers)

    async def page(request: Request) -> Response:
        return HTMLResponse(html, headers=policy)

    async def predict(request: Request) -> Response:
        nonlocal busy
        if busy >= limits.requests:
            return refusal(_too_many(backlog / threads))
        busy += 1
        metrics.in_progress.set(busy)
        until = time.monotonic() + limits.seconds
        work = asyncio.ensure_future(answered(request, until))
        try:
            return await asyncio.wait_for(work, limits.seconds)
        except RequestError as error:
            return refusal(error)
        except TimeoutError:
            return refusal(_too_late())
        except ClientDisconnect:
            return Response(status_code=400)
        except asyncio.CancelledError:  # the time to finish is over
            return refusal(RequestError(503, "the service is being stopped", GRACE))
        finally:
            busy -= 1
            metrics.in_progress.set(busy)

    async def answered(request: Request, until: float) -> Response:
        nonlocal backlog
        parsed = service.parse(await _read_body(request, limits.bytes))
        good = [i for i in range(len(parsed.objects)) if i not in parsed.reasons]
        objects = [parsed.objects[i] for i in good]
        names = [parsed.names[i] for i in good]
        costs = service.costs(objects)
        cost = sum(costs)
        if cost > limits.seconds:
            raise RequestError(
                413,
                f"the request would take about {cost:,.0f} s, and {limits.seconds:,.0f} s are "
                f"allowed: send fewer or shorter objects",
            )
        rows = {
            i: service.predictor.row_without_label(parsed.names[i], reason)
            for i, reason in parsed.reasons.items()
        }
        backlog += cost
        try:
            for part in service.steps(costs) if objects else ():
                step = partial(service.answer, objects[part], names[part], part.start, until)
                found = await asyncio.wrap_future(workers.add(step))
                rows.update(zip(good[part], found, strict=True))
        finally:
            backlog -= cost
        for row in rows.values():
            metrics.objects.labels(row["status"]).inc()
        ordered = [rows[i] for i in range(len(parsed.objects))]
        return JSONResponse(ordered[0] if parsed.single else {"predictions": ordered})

    async def ready(request: Request) -> Response:
        if busy >= limits.requests:
            return refusal(_too_many(backlog / threads))
        return JSONResponse({"status": "ready"})

    async def report(request: Request) -> Response:
        text, kind = metrics.text()
        return Response(text, headers={"Content-Type": kind})

    def get_route(path: str, content: Any) -> Route:
        async def get(request: Request) -> Response:
            return JSONResponse(content)

        return Route(path, get)

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            problem = RequestError(error.status_code, error.detail.lower())
            response = refusal(problem)
            response.headers.update(error.headers or {})
            return response
        return refusal(RequestError(500, "the service failed; its log says why"))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        workers.close()

    routes = [
        Route("/", page),
        Route("/predict", predict, methods=["POST"]),
        Route("/ready", ready),
        Route("/metrics", report),
        get_route("/health", {"status": "ok"}),
        get_route("/model", service.about),
        get_route("/openapi.json", document(service.about)),
    ]
    # refuse requests under another host name, which a site could point here (DNS rebinding)
    hosts = frozenset(("127.0.0.1", "localhost", "[::1]")) if local else None
    known = frozenset(route.path for route in routes)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Watched, metrics=metrics, paths=known, hosts=hosts, log=access_log)],
        exception_handlers={HTTPException: failed, Exception: failed},
        lifespan=lifespan,
    )


def header_timeout(seconds: float) -> Any:
    """Return uvicorn's HTTP protocol with a time limit for the headers of a request.

    Uvicorn itself waits for ever, so that half-sent requests would keep their connections open.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait(True)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait(self.cycle is None or self.cycle.response_complete)

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait(False)
            super().connection_lost(exc)

        def _wait(self, for_headers: bool) -> None:
            if for_headers and self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.close)
            elif not for_headers and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Protocol


class Watched:
    """The outermost layer of the application: allowed hosts, the access log, and metrics."""

    def __init__(
        self,
        app: Any,
        metrics: Metrics,
        paths: frozenset[str],
        hosts: frozenset[str] | None,
        log: bool,
    ) -> None:
        self.app, self.metrics, self.paths = app, metrics, paths
        self.hosts, self.log = hosts, log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), 500, 0

        async def watched(message: Any) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        try:
            if self.hosts is None or _host(scope) in self.hosts:
                await self.app(scope, receive, watched)
            else:
                await _refuse_host(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - began
            # strangers must not add paths without limit
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(seconds)
            if self.log and path not in QUIET:
                when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                client = (scope.get("client") or ("-",))[0]
                asked = f"{scope['method']} {printable(scope['path'], 200)}"
                line = f"{when} {client} {asked} {status} {size:,} bytes {1000 * seconds:.1f} ms"
                click.echo(line)


def _host(scope: Any) -> str:
    """Return the host name that a request was sent to, without the port."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host = str(named.decode("latin-1"))
    return host if host.endswith("]") else re.sub(r":\d*$", "", host)


async def _refuse_host(scope: Any, receive: Any, send: Any) -> None:
    from starlette.responses import JSONResponse

    text = "this service answers only requests to localhost; --host changes that"
    await JSONResponse({"error": text}, status_code=400)(scope, receive, send)


async def _read_body(request: Request, most: int) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # a form on another site cannot send this
        raise RequestError(415, "send JSON, with the header Content-Type: application/json")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise RequestError(413, f"a request may have at most {most:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _too_many(seconds: float) -> RequestError:
    """Return the refusal of a request if others will take about so long."""
    again = min(max(1, math.ceil(seconds)), 60)
    return RequestError(503, "too many requests are in progress: try again later", again)


def _too_late() -> RequestError:
    return RequestError(
        503, "the request took too long: send fewer or shorter objects, or try again later", 1
    )


def _content_policy(html: str) -> str:
    """Return the content security policy: the page may load only its own script and style, by
    hash."""
    listed = {}
    for tag in ("script", "style"):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in texts]
        listed[tag] = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        f"default-src 'none'; img-src data:; connect-src 'self'; script-src {listed['script']}; "
        f"style-src {listed['style']}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def document(about: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI document of a service, given the description of its model at `/model`."""
    found: dict[str, Any] = json.loads((FOLDER / "openapi.json").read_text("utf-8"))
    found["info"] = {"title": f"krein: {about['model']}", "version": __version__}
    schemas = found["components"]["schemas"]
    numbers = {"type": "array", "items": {}, "description": "numbers, or lists of numbers"}
    schemas["Object"] = {"type": "string"} if about["takes"] == "text" else numbers
    if about["takes"] == "records":
        schemas["Object"] = {"type": "object", "required": list(about["columns"])}
    schemas["ManyObjects"]["properties"]["objects"]["maxItems"] = about["limits"]["objects"]
    return found
