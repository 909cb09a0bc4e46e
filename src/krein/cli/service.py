"""The OpenAPI document of `krein serve`."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from .. import __version__
from ..io import Chunk, DataError
from ..measures import get_measure
from .inspect import describe_model
from .options import told
from .predictor import Predictor


def document(about: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a service for a model, given the description at `/model`."""
    thing = (
        {"type": "string"}
        if about["takes"] == "text"
        else {"type": "array", "items": {}, "description": "numbers, or lists of numbers"}
    )
    text = {"type": ["string", "null"]}
    number = {"type": ["number", "null"]}
    neighbour = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "label": {"type": "string"},
            "value": {"type": "number", "description": "value of the measure"},
        },
        "required": ["name", "label", "value"],
    }
    prediction = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "label": text,
            "probability": number,
            "runner_up": text,
            "runner_up_probability": number,
            "rejected": {"type": ["boolean", "null"]},
            "probabilities": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "number"},
            },
            "status": {"type": "string", "examples": ["known", "ambiguous", "novel", "unreadable"]},
            "novelty": {
                **number,
                "description": "p-value for none of the classes, if available",
            },
            "evidence": {
                "type": ["array", "null"],
                "items": neighbour,
                "description": "the nearest known objects, if the model keeps them",
            },
            "reason": text,
        },
        "required": ["name", "label", "probability", "probabilities", "status", "reason"],
    }
    many = {
        "type": "object",
        "properties": {"predictions": {"type": "array", "items": prediction}},
        "required": ["predictions"],
    }
    names = {"type": "array", "items": {"type": "string"}}
    objects = {"type": "array", "items": thing, "maxItems": about["limits"]["objects"]}
    asked = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"object": thing, "names": names},
                "required": ["object"],
            },
            {
                "type": "object",
                "properties": {"objects": objects, "names": names},
                "required": ["objects"],
            },
        ]
    }
    failed = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    refused = {
        "400": "the request does not have this form",
        "413": "the request is too large",
        "415": "the request is not JSON",
        "422": "the objects are not of the kind that the model compares",
        "503": "the request took too long",
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"krein: {about['model']}", "version": __version__},
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Label one object or many",
                    "requestBody": {"required": True, **_json(asked)},
                    "responses": {
                        "200": {
                            "description": "one prediction, or a list of them",
                            **_json({"oneOf": [prediction, many]}),
                        },
                        **{
                            status: {"description": reason, **_json(failed)}
                            for status, reason in refused.items()
                        },
                    },
                }
            },
            "/model": _get("Describe the model"),
            "/health": _get("Report that the service is running"),
            "/openapi.json": _get("This document"),
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _get(summary: str) -> dict[str, Any]:
    answer = {"description": summary, **_json({"type": "object"})}
    return {"get": {"summary": summary, "responses": {"200": answer}}}


# -------------------------------------------------------------------------------------------------
# The web application of `krein serve`: turns requests into chunks and rows into JSON, within
# limits.
# -------------------------------------------------------------------------------------------------

STEP = 32
"""Number of objects handled between two checks of the clock."""


@dataclass(frozen=True)
class Limits:
    """Limits on the size and time of a request."""

    bytes: int = 1_000_000
    objects: int = 1000
    seconds: float = 30.0
    threads: int = 2


class RequestError(Exception):
    """A request that is refused; `status` is the HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def make_app(
    predictor: Predictor, path: str, limits: Limits | None = None, *, local: bool = True
) -> Starlette:
    """Return the application. A local one answers only requests to this machine's own names."""
    service = Service(predictor, path, limits or Limits())
    # refuse requests under another host name, which a site could point here (DNS rebinding)
    hosts = ["127.0.0.1", "localhost", "[::1]", "::1"] if local else ["*"]
    return Starlette(
        routes=[
            Route("/", service.page),
            Route("/health", service.health),
            Route("/model", service.model),
            Route("/openapi.json", service.openapi),
            Route("/predict", service.predict, methods=["POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
    )


class Service:
    """A model and its limits, with one method per endpoint."""

    def __init__(self, predictor: Predictor, path: str, limits: Limits) -> None:
        self.predictor, self.limits = predictor, limits
        about = describe_model(path)
        measure = get_measure(predictor.model.measure, predictor.model.measure_params)
        self.accepts = measure.accepts
        self.about = {
            **about,
            "model": os.path.basename(path),
            "takes": _takes(predictor.model.landmark_objects_, measure.accepts),
            "comparisons_per_answer": _comparisons(about, measure.accepts),
            "limits": {"bytes": limits.bytes, "objects": limits.objects, "seconds": limits.seconds},
        }
        self.document = document(self.about)
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="krein-serve")
        self._html = (Path(__file__).parent / "page.html").read_text("utf-8")
        self._policy = _content_policy(self._html)

    async def page(self, request: Request) -> Response:
        """Return the page where you can paste an object."""
        return HTMLResponse(self._html, headers={"Content-Security-Policy": self._policy})

    async def health(self, request: Request) -> Response:
        """Report that the service is running."""
        return JSONResponse({"status": "ok"})

    async def model(self, request: Request) -> Response:
        """Describe the model."""
        return JSONResponse(self.about)

    async def openapi(self, request: Request) -> Response:
        """Document the service."""
        return JSONResponse(self.document)

    async def predict(self, request: Request) -> Response:
        """Label one object or many."""
        until = time.monotonic() + self.limits.seconds
        try:
            body = await _in_time(self._body(request), self.limits.seconds)
            objects, names, single = self._asked(body)
            work = asyncio.get_running_loop().run_in_executor(
                self._pool, self._answers, objects, names, until
            )
            # the thread checks the clock itself, and then becomes free for other requests
            answers = await _in_time(work, until - time.monotonic())
        except RequestError as error:
            return JSONResponse({"error": str(error)}, status_code=error.status)
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse(answers[0] if single else {"predictions": answers})

    async def _body(self, request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # a form on another site cannot send this
            raise RequestError(415, "send JSON, with the header Content-Type: application/json")
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self.limits.bytes:
                raise RequestError(413, f"a request may have at most {self.limits.bytes:,} bytes")
            parts.append(part)
        return b"".join(parts)

    def _asked(self, body: bytes) -> tuple[list[Any], list[str], bool]:
        """Return the objects of a request, their names, and whether it contains a single object."""
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RequestError(400, "the request is not JSON") from error
        if not isinstance(asked, dict) or ("object" in asked) == ("objects" in asked):
            raise RequestError(400, 'send {"object": …} or {"objects": […]}')
        if unknown := set(asked) - {"object", "objects", "names"}:
            raise RequestError(400, f"there is no field {min(unknown)[:60]!r}")
        single = "object" in asked
        objects = [asked["object"]] if single else asked["objects"]
        if not isinstance(objects, list) or not objects:
            raise RequestError(400, "objects must be a list of at least one object")
        if len(objects) > self.limits.objects:
            raise RequestError(413, f"a request may have at most {self.limits.objects:,} objects")
        names = asked.get("names", [str(i) for i in range(len(objects))])
        if (
            not isinstance(names, list)
            or len(names) != len(objects)
            or not all(isinstance(name, str) for name in names)
        ):
            raise RequestError(400, "names must be a list of strings, one per object")
        return [self._object(item, i) for i, item in enumerate(objects)], names, single

    def _object(self, item: Any, i: int) -> Any:
        """Return an object of a request in the form that the file readers return."""
        if self.about["takes"] == "text":
            if not isinstance(item, str):
                raise RequestError(422, f"object {i} is not a string, but the model expects one")
            return item
        try:
            array = np.array(item, dtype=np.float64)
        except (TypeError, ValueError, RecursionError):
            array = np.empty(0)
        if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
            raise RequestError(422, f"object {i} is not a list of finite numbers")
        return array[:, None] if self.accepts == "objects" and array.ndim == 1 else array

    def _answers(self, objects: list[Any], names: list[str], until: float) -> list[dict[str, Any]]:
        kind: Any = "strings"
        if self.about["takes"] != "text":
            kind = "vectors" if self.accepts != "objects" else "series"
        found: list[dict[str, Any]] = []
        for start in range(0, len(objects), STEP):
            if time.monotonic() > until:
                raise _too_late()
            part: Any = objects[start : start + STEP]
            if kind == "vectors":
                if len({item.shape for item in objects}) > 1:
                    raise RequestError(422, "all objects of a request must have the same length")
                part = np.stack(part)
            chunk = Chunk(names[start : start + STEP], part, None, start, "the request", kind)
            try:
                rows = self.predictor.rows_of(chunk)
            except DataError as error:
                raise RequestError(422, told(error)) from error
            found += [dict(zip(self.predictor.names, row, strict=True)) for row in rows]
        return found


async def _in_time(work: Awaitable[Any], seconds: float) -> Any:
    try:
        return await asyncio.wait_for(work, max(seconds, 0.0))
    except TimeoutError:
        raise _too_late() from None


def _too_late() -> RequestError:
    return RequestError(
        503, "the request took too long: send fewer or shorter objects, or try again later"
    )


def _takes(landmarks: Any, accepts: str) -> str:
    """Return the JSON type of an object, judging by the landmarks: "text" or "numbers"."""
    if accepts != "objects":
        return "numbers"
    return "text" if isinstance(landmarks[0], str | bytes) else "numbers"


def _comparisons(about: dict[str, Any], accepts: str) -> int | None:
    """Return the number of comparisons for each object of a request; None for given values.

    A model with a second look compares every object with its candidates too: answers contain the
    novelty, which needs them.
    """
    if accepts == "values":
        return None
    return int(about["landmarks"]) + int(about["candidates"] or 0)


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
