"""`krein serve`: predictions over HTTP, as JSON, within limits.

`Service` knows nothing of HTTP: it turns the body of a request into a chunk, and rows into records.
`make_app` puts it behind the routes, and `openapi.json` describes them for clients. Starlette and
uvicorn are optional, so they are imported only when the command runs.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import socket
import sys
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..io import Chunk, DataError
from ..version import __version__
from .group import krein_command
from .inspect import describe_model
from .options import Share, message_of, unknown_letters
from .output import say
from .predictor import Details, Predictor

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

FOLDER = Path(__file__).parent  # of the page and the OpenAPI document

STEP = 32
"""Number of objects handled between two checks of the clock."""


@dataclass(frozen=True)
class Limits:
    """Limits on the size and time of a request."""

    bytes: int = 1_000_000
    objects: int = 1000
    seconds: float = 30.0


class RequestError(Exception):
    """A request that is refused; `status` is the HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


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
    help="Number of requests handled at the same time.",
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
    "--max-seconds",
    type=Share(0, min_open=True),
    default=30.0,
    help="Maximum time per request, including the time in the queue.",
)
@unknown_letters
def command(
    model: str,
    host: str,
    port: int,
    threads: int,
    max_bytes: int,
    max_objects: int,
    max_seconds: float,
    unknown_letters: str | None,
) -> None:
    """Serve predictions of a MODEL from krein fit, as JSON over HTTP.

    POST an object or a list of objects to /predict. /model describes the model, /health reports
    that the service is running, /openapi.json documents it, and / is a page where you can paste an
    object.

    \b
      krein serve model.krein --port 8000
    """
    try:
        import starlette  # noqa: F401 - needed by `make_app`
        import uvicorn
    except ModuleNotFoundError as missing:
        if missing.name not in ("uvicorn", "starlette"):
            raise
        raise ImportError(
            f"krein serve needs the package {missing.name!r}, which is not installed: "
            'pip install "krein[serve]"'
        ) from missing
    service = Service(model, Limits(max_bytes, max_objects, max_seconds), unknown_letters)
    local = host in ("127.0.0.1", "localhost", "::1")
    app = make_app(service, threads=threads, local=local)
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
            http=header_timeout(max_seconds),
            ws="none",
            log_level="warning",
            timeout_keep_alive=5,
        )
        uvicorn.Server(config).run(sockets=[listening])


class Service:
    """A model and its limits: requests in, records out."""

    def __init__(self, path: str, limits: Limits, unknown_letters: str | None = None) -> None:
        self.limits = limits
        details = Details(nested=True)
        self.predictor = Predictor(path, details, n_jobs=1, unknown_letters=unknown_letters)
        model, about = self.predictor.model, describe_model(path)
        self.accepts = model.measure.accepts
        first = model.landmarks.objects[0]
        self.text = self.accepts == "objects" and isinstance(first, str | bytes)
        # novelty needs a second look at every object
        comparisons = int(about["landmarks"]) + int(about["candidates"] or 0)
        self.about = {
            **about,
            "model": os.path.basename(path),
            "takes": "text" if self.text else "numbers",
            "comparisons_per_answer": None if self.accepts == "values" else comparisons,
            "limits": asdict(limits),
        }

    def answer(self, objects: list[Any], names: list[str], until: float) -> list[dict[str, Any]]:
        """Return the predictions for some objects, if they are ready before a time."""
        kind: Any = "strings"
        if not self.text:
            kind = "series" if self.accepts == "objects" else "vectors"
        if kind == "vectors" and len({item.shape for item in objects}) > 1:
            raise RequestError(422, "all objects of a request must have the same length")
        found: list[dict[str, Any]] = []
        for start in range(0, len(objects), STEP):
            if time.monotonic() > until:
                raise _too_late()
            some: Any = objects[start : start + STEP]
            part = np.stack(some) if kind == "vectors" else some
            chunk = Chunk(names[start : start + STEP], part, None, start, "the request", kind)
            try:
                found += self.predictor.rows_of(chunk)
            except DataError as error:
                raise RequestError(422, message_of(error)) from error
        return found

    def parse(self, body: bytes) -> tuple[list[Any], list[str], bool]:
        """Return the objects of a request, their names, and whether it contains a single object."""
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
        return [self._object(item, i) for i, item in enumerate(objects)], names, single

    def _object(self, item: Any, i: int) -> Any:
        """Return an object of a request in the form that the file readers return."""
        if self.text:
            if not isinstance(item, str):
                raise RequestError(422, f"object {i} is not a string, but the model expects one")
            if not _is_unicode(item):
                raise RequestError(422, f"object {i} contains half of a surrogate pair")
            return item
        try:
            array = np.array(item, dtype=np.float64)
        except (TypeError, ValueError, OverflowError, RecursionError):
            array = np.empty(0)
        if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
            raise RequestError(422, f"object {i} is not a list of finite numbers")
        return array[:, None] if self.accepts == "objects" and array.ndim == 1 else array


def _is_unicode(text: str) -> bool:
    """Whether a string can be encoded: JSON may contain half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def make_app(service: Service, *, threads: int = 2, local: bool = True) -> Starlette:
    """Return the web application. A local one answers only requests to this machine's own names."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    limits = service.limits
    pool = ThreadPoolExecutor(threads, thread_name_prefix="krein-serve")
    html = (FOLDER / "page.html").read_text("utf-8")
    policy = {"Content-Security-Policy": _content_policy(html)}

    async def page(request: Request) -> Response:
        return HTMLResponse(html, headers=policy)

    async def predict(request: Request) -> Response:
        until = time.monotonic() + limits.seconds
        try:
            body = await _in_time(_read_body(request, limits.bytes), limits.seconds)
            objects, names, single = service.parse(body)
            work = asyncio.get_running_loop().run_in_executor(
                pool, service.answer, objects, names, until
            )
            # the thread checks the clock itself, and then becomes free for other requests
            found = await _in_time(work, until - time.monotonic())
            return JSONResponse(found[0] if single else {"predictions": found})
        except RequestError as error:
            return JSONResponse({"error": str(error)}, status_code=error.status)
        except ClientDisconnect:
            return Response(status_code=400)

    def get_route(path: str, content: Any) -> Route:
        async def get(request: Request) -> Response:
            return JSONResponse(content)

        return Route(path, get)

    # refuse requests under another host name, which a site could point here (DNS rebinding)
    hosts = ["127.0.0.1", "localhost", "[::1]", "::1"] if local else ["*"]
    return Starlette(
        routes=[
            Route("/", page),
            Route("/predict", predict, methods=["POST"]),
            get_route("/health", {"status": "ok"}),
            get_route("/model", service.about),
            get_route("/openapi.json", document(service.about)),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
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


async def _in_time(work: Awaitable[Any], seconds: float) -> Any:
    try:
        return await asyncio.wait_for(work, max(seconds, 0.0))
    except TimeoutError:
        raise _too_late() from None


def _too_late() -> RequestError:
    return RequestError(
        503, "the request took too long: send fewer or shorter objects, or try again later"
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
    schemas["ManyObjects"]["properties"]["objects"]["maxItems"] = about["limits"]["objects"]
    return found
