"""`krein serve`: predictions over HTTP."""

from __future__ import annotations

import socket
import sys

import click

from .group import command as krein_command
from .options import Share
from .output import say
from .predictor import Predictor
from .reading import POLICIES


@krein_command("serve")
@click.argument("model", type=click.Path())
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. The default is reachable from this machine only; there is no "
    "login.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Number of requests handled at the same time.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Maximum size of a request.",
)
@click.option(
    "--max-objects",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Maximum number of objects per request.",
)
@click.option(
    "--max-seconds",
    type=Share(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Maximum time per request, including the time in the queue.",
)
@click.option(
    "--unknown-letters",
    type=click.Choice(POLICIES),
    help="What to do with letters that the model does not score: X reads them as X (N in DNA), "
    "skip answers that the whole sequence is unreadable, fail refuses the request. Default: see "
    "krein predict.",
)
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
        import uvicorn

        from .service import Limits, make_app
    except ModuleNotFoundError as missing:
        if missing.name not in ("uvicorn", "starlette"):
            raise
        raise ImportError(
            f"krein serve needs the package {missing.name!r}, which is not installed: "
            'pip install "krein[serve]"'
        ) from missing
    predictor = Predictor(model, jobs=1, unknown_letters=unknown_letters, every=True)
    limits = Limits(max_bytes, max_objects, max_seconds, threads)
    app = make_app(predictor, model, limits, local=host in ("127.0.0.1", "localhost", "::1"))
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
        config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=5)
        uvicorn.Server(config).run(sockets=[listening])
