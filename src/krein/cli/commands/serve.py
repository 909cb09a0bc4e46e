"""`krein serve`: predictions over HTTP, as JSON, within limits.

`service.py` turns requests into rows and knows nothing of HTTP, which is in `web.py`. Starlette,
uvicorn and the Prometheus client are optional, so `web.py` is imported only when the command runs.
"""

from __future__ import annotations

import socket
import sys
import warnings

import click

from ...data.foreign import ForeignObjectWarning
from .. import options
from ..columns import Details
from ..group import krein_command
from ..service import Limits, Service
from ..terminal import say


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
    "--max-bytes",
    "bytes",
    type=click.IntRange(1),
    default=1_000_000,
    help="Maximum size of a request.",
)
@click.option(
    "--max-objects",
    "objects",
    type=click.IntRange(1),
    default=1000,
    help="Maximum number of objects per request.",
)
@click.option(
    "--max-length",
    "length",
    type=click.IntRange(1),
    default=100_000,
    help="Maximum length of an object, in letters or numbers. A longer one is not compared.",
)
@click.option(
    "--max-seconds",
    "seconds",
    type=options.Share(0, min_open=True),
    default=30.0,
    help="Maximum time per request, including the time in the queue.",
)
@click.option(
    "--max-requests",
    "requests",
    type=click.IntRange(1),
    default=64,
    help="Maximum number of requests in progress. Others are told to try again later.",
)
@options.novel_below
@options.ambiguous_below
@options.own_measure
@options.unknown_letters
@click.option("--access-log/--no-access-log", default=True, help="Print a line for each request.")
@options.gathered(options.ModelOptions, "model")
@options.gathered(Limits, "limits")
@options.gathered(Details, "details")
def command(
    model: options.ModelOptions,
    host: str,
    port: int,
    threads: int,
    limits: Limits,
    details: Details,
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
        from .. import web
    except ModuleNotFoundError as missing:
        if missing.name not in ("uvicorn", "starlette", "prometheus_client"):
            raise
        raise ImportError(
            f"krein serve needs the package {missing.name!r}, which is not installed: "
            'pip install "krein[serve]"'
        ) from missing
    # every row says so itself
    warnings.simplefilter("ignore", ForeignObjectWarning)
    service = Service(model, limits, details)
    if not host:
        raise click.UsageError(
            "--host '': name an address; 0.0.0.0 stands for all of this machine's IPv4 addresses"
        )
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
        hosts = web.hosts_of(listening, host)
        app = web.make_app(service, threads=threads, hosts=hosts, access_log=access_log)
        shown = f"[{host}]" if ":" in host else host
        say("serving", f"http://{shown}:{listening.getsockname()[1]}")
        sys.stdout.flush()
        web.run_app(app, listening, limits.seconds)
