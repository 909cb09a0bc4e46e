"""The web application of `krein serve`: routes, threads, metrics, and the server that runs it.

It needs Starlette, uvicorn and the Prometheus client, which are optional.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import math
import queue
import re
import signal
import socket
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import uvicorn
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .messages import printable
from .service import RequestError, Service, document, is_fasta, too_late

GRACE = 1
"""Seconds that requests in progress have to finish when the service is stopped."""

QUIET = ("/health", "/ready", "/metrics")
"""Addresses that machines call all the time; they are not logged."""

LOCAL_HOSTS = frozenset(("127.0.0.1", "localhost", "[::1]"))
"""The names of this machine. A local service refuses requests under any other host name, which a
site could point here (DNS rebinding)."""

BODY_SECONDS, BODY_RATE = 3.0, 50_000
"""The body of a request may take this many seconds, and one more for each so many bytes: a slower
client would keep others waiting at almost no cost to itself."""


def hosts_of(listening: socket.socket, host: str) -> frozenset[str] | None:
    """Return the host names that a service answers to; None for any.

    If it listens on a loopback address, it is local, whatever the name of the address.
    """
    address = ipaddress.ip_address(listening.getsockname()[0].partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    if not address.is_loopback:
        return None
    own = f"[{address}]" if address.version == 6 else str(address)
    return LOCAL_HOSTS | {own, host.lower()}


def run_app(app: Starlette, listening: socket.socket, seconds: float) -> None:
    """Run the application until it is stopped; headers may take this many seconds."""
    config = uvicorn.Config(
        app,
        http=header_timeout(seconds),
        ws="none",
        log_level="critical",  # the application reports errors itself
        access_log=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE,
    )
    server = uvicorn.Server(config)
    with _stopping_on_hangup(server):
        server.run(sockets=[listening])


@contextmanager
def _stopping_on_hangup(server: uvicorn.Server) -> Iterator[None]:
    """Stop on SIGHUP as on SIGTERM, with time for requests in progress.

    `nohup` ignores the signal, and so does the service then.
    """
    number = getattr(signal, "SIGHUP", None)  # Windows has none
    if number is None or signal.getsignal(number) == signal.SIG_IGN:
        yield
        return
    received = False

    def stop(number: int, frame: Any) -> None:
        nonlocal received
        received = server.should_exit = True

    before = signal.signal(number, stop)
    try:
        yield
    finally:
        signal.signal(number, before)
    if received:
        signal.raise_signal(number)


def make_app(
    service: Service,
    *,
    threads: int = 2,
    hosts: frozenset[str] | None = LOCAL_HOSTS,
    access_log: bool = False,
) -> Starlette:
    """Return the web application. It answers only requests to these host names; None for any."""
    metrics, workers = Metrics(), Workers(threads)
    predictions = Predictions(service, workers, metrics)
    html = Path(__file__).with_name("page.html").read_text("utf-8")

    async def report(request: Request) -> Response:
        return Response(
            generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        workers.close()

    routes = [
        _always("/", HTMLResponse, html, {"Content-Security-Policy": _content_policy(html)}),
        Route("/predict", predictions.predict, methods=["POST"]),
        Route("/ready", predictions.ready),
        Route("/metrics", report),
        _always("/health", JSONResponse, {"status": "ok"}),
        _always("/model", JSONResponse, service.about),
        _always("/openapi.json", JSONResponse, document(service.about)),
    ]
    known = frozenset(route.path for route in routes)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Watched, metrics=metrics, paths=known, hosts=hosts, log=access_log)],
        exception_handlers={HTTPException: _failed, Exception: _failed},
        lifespan=lifespan,
    )


def _always(
    path: str, kind: type[Response], content: Any, headers: dict[str, str] | None = None
) -> Route:
    """Return a route whose answer is always the same."""

    async def get(request: Request) -> Response:
        return kind(content, headers=headers)

    return Route(path, get)


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        response = _refusal(RequestError(error.status_code, error.detail.lower()))
        response.headers.update(error.headers or {})
        return response
    for line in "".join(traceback.format_exception(error)).splitlines():
        click.echo(printable(line, 1000), err=True)
    return _refusal(RequestError(500, "the service failed; its log says why"))


def _refusal(error: RequestError) -> Response:
    again = error.retry_after
    headers = {} if again is None else {"Retry-After": str(again)}
    if error.status == 408:  # the rest of the request is of no use
        headers["Connection"] = "close"
    return JSONResponse({"error": str(error)}, status_code=error.status, headers=headers)


class Predictions:
    """Answers requests for predictions, a limited number of them at a time.

    `busy` requests are in progress, whose remaining cost is estimated as `backlog` seconds. Only
    the event loop changes the two.
    """

    def __init__(self, service: Service, workers: Workers, metrics: Metrics) -> None:
        self.service, self.workers, self.metrics = service, workers, metrics
        self.busy, self.backlog = 0, 0.0

    async def ready(self, request: Request) -> Response:
        """Report whether another request would be accepted."""
        return self._too_many() or JSONResponse({"status": "ready"})

    async def predict(self, request: Request) -> Response:
        """Answer a request, or refuse it."""
        if refused := self._too_many():
            return refused
        seconds = self.service.limits.seconds
        work = self._answered(request, time.monotonic() + seconds)
        self._count(1)
        try:
            return await asyncio.wait_for(asyncio.ensure_future(work), seconds)
        except RequestError as error:
            return _refusal(error)
        except TimeoutError:
            return _refusal(too_late())
        except ClientDisconnect:
            return Response(status_code=400)
        except asyncio.CancelledError:  # the time to finish is over
            return _refusal(RequestError(503, "the service is being stopped", GRACE))
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        self.busy += more
        self.metrics.in_progress.set(self.busy)

    def _too_many(self) -> Response | None:
        """Return the refusal of a request if enough others are in progress."""
        if self.busy < self.service.limits.requests:
            return None
        again = min(max(1, math.ceil(self.backlog / self.workers.n)), 60)
        text = "too many requests are in progress: try again later"
        return _refusal(RequestError(503, text, again))

    async def _answered(self, request: Request, until: float) -> Response:
        service, limits = self.service, self.service.limits
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
        rows = service.unreadable_rows(parsed)
        self.backlog += cost
        try:
            for part in service.steps(costs) if objects else ():
                step = partial(service.answer, objects[part], names[part], part.start, until)
                found = await asyncio.wrap_future(self.workers.add(step))
                rows.update(zip(good[part], found, strict=True))
        finally:
            self.backlog -= cost
        for row in rows.values():
            self.metrics.objects.labels(row["status"]).inc()
        ordered = [rows[i] for i in range(len(parsed.objects))]
        return JSONResponse(ordered[0] if parsed.single else {"predictions": ordered})


async def _read_body(request: Request, most: int) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # a form on another site cannot send JSON, and a browser says where a request comes from
    from_browser = bool({"origin", "sec-fetch-site"} & set(request.headers))
    refusal = RequestError(
        415,
        "send JSON, with the header Content-Type: application/json; "
        "FASTA is not accepted from a web page",
    )
    if kind != "application/json" and from_browser:
        raise refusal
    parts, size = list[bytes](), 0
    began, stream = time.monotonic(), request.stream()
    while True:
        left = began + BODY_SECONDS + size / BODY_RATE - time.monotonic()
        try:
            part = await asyncio.wait_for(anext(stream, None), left)
        except TimeoutError:
            text = f"the request arrives too slowly: send at least {BODY_RATE:,} bytes per second"
            raise RequestError(408, text) from None
        if part is None:
            break
        size += len(part)
        if size > most:
            raise RequestError(413, f"a request may have at most {most:,} bytes")
        parts.append(part)
    body = b"".join(parts)
    if kind != "application/json" and not is_fasta(body):
        raise refusal
    return body


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
    text = "this service answers only requests to localhost; --host changes that"
    await JSONResponse({"error": text}, status_code=400)(scope, receive, send)


def header_timeout(seconds: float) -> Any:
    """Return uvicorn's HTTP protocol with a time limit for the headers of a request.

    Uvicorn itself waits for ever, so that half-sent requests would keep their connections open.
    Whether a connection waits for headers is known only to uvicorn's protocol (`cycle`), and so is
    what is not HTTP at all (`send_400_response`), whose answer is JSON as that of any other error;
    this is the one place that relies on what uvicorn does not document.
    """

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

        def send_400_response(self, msg: str) -> None:
            refused = _refusal(RequestError(400, "the request is not valid HTTP"))
            lines = [b"HTTP/1.1 400 Bad Request", b"connection: close"]
            lines += [b": ".join(header) for header in refused.raw_headers]
            self.transport.write(b"\r\n".join([*lines, b"", bytes(refused.body)]))
            self.transport.close()

        def _wait(self, for_headers: bool) -> None:
            if for_headers and self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.close)
            elif not for_headers and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Protocol


def _content_policy(html: str) -> str:
    """Return the content security policy: only the page's own script and style, by hash."""
    listed = {}
    for tag in ("script", "style"):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in texts]
        listed[tag] = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        f"default-src 'none'; img-src data:; connect-src 'self'; script-src {listed['script']}; "
        f"style-src {listed['style']}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
