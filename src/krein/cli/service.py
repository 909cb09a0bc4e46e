"""What `krein serve` does, without HTTP: bodies of requests become objects, and objects rows."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..compare.pairs import OutOfTime
from ..io import DataError, NamedObjects
from ..version import __version__
from .about import describe_model
from .columns import Details
from .messages import message_of
from .options import ModelOptions
from .predictor import Predictor
from .status import Row

STEP, STEP_SECONDS = 32, 0.2
"""Maximum number of objects, and estimated time, of a step. Between two steps of a request, other
requests have their turn."""


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
        self, options: ModelOptions, limits: Limits, details: Details | None = None
    ) -> None:
        path, self.limits = options.model, limits
        # requests are compared in threads of their own
        self.predictor = Predictor(
            replace(options, n_jobs=1), replace(details or Details(), nested=True)
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
            "novel_below": model.novel_below if model.reference is not None else None,
            "ambiguous_below": model.ambiguous_below,
            "limits": asdict(limits),
        }
        self._rate = self._measured_rate(known)

    def _measured_rate(self, known: Any) -> tuple[float, int]:
        """Return the processor time per letter or number, and how many it was measured on.

        The first call loads what is needed; the second is measured, on a whole step if the measure
        is fast.
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
        """Return the estimated processor time of each object in seconds, by its length.

        It is 0 if the object will not be compared.
        """
        foreign = self.predictor.find_foreign(objects)
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

    def unreadable_rows(self, parsed: Parsed) -> dict[int, Row]:
        """Return the rows of the objects that cannot be read, by position."""
        reasons = parsed.reasons.items()
        return {i: self.predictor.unreadable_row(parsed.names[i], why) for i, why in reasons}

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
        chunk = NamedObjects(names, part, None, start, "the request", self.kind)
        try:
            rows = self.predictor.rows_of(chunk, until)
        except DataError as error:
            raise RequestError(422, message_of(error)) from error
        except OutOfTime:
            raise too_late() from None
        return rows, time.thread_time() - began

    def parse(self, body: bytes) -> Parsed:
        """Return the objects of a request: JSON, or sequences in FASTA format."""
        if is_fasta(body):
            return self._parse_fasta(body)
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
        names = request.get("names", [str(i) for i in range(len(objects))])
        if (
            not isinstance(names, list)
            or len(names) != len(objects)
            or not all(isinstance(name, str) for name in names)
        ):
            raise RequestError(400, "names must be a list of strings, one per object")
        if not all(map(_is_unicode, names)):
            raise RequestError(400, "a name contains half of a surrogate pair, which is not text")
        return self._read(objects, names, single)

    def _parse_fasta(self, body: bytes) -> Parsed:
        """Return the sequences of a request, each with the first word of its header as its name."""
        if not self.text:
            raise RequestError(415, "the model does not compare sequences: send JSON")
        try:
            records = re.split(r"^\s*>", body.decode(), flags=re.MULTILINE)[1:]
        except UnicodeDecodeError:
            raise RequestError(400, "the request is not text in UTF-8") from None
        parts = [record.partition("\n") for record in records]
        names = [(header.split() or [str(i)])[0] for i, (header, _, _) in enumerate(parts)]
        return self._read(["".join(letters.split()) for _, _, letters in parts], names, False)

    def _read(self, objects: list[Any], names: list[str], single: bool) -> Parsed:
        """Return the objects in the form that the file readers return, or why they cannot be."""
        if len(objects) > self.limits.objects:
            raise RequestError(413, f"a request may have at most {self.limits.objects:,} objects")
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


def is_fasta(body: bytes) -> bool:
    """Whether a request contains sequences in FASTA format, and not JSON.

    >>> is_fasta(b"\\n>read 1\\nACGT"), is_fasta(b'{"object": "ACGT"}')
    (True, False)
    """
    return body.lstrip().startswith(b">")


def too_late() -> RequestError:
    """Return the refusal of a request whose time is over."""
    return RequestError(
        503, "the request took too long: send fewer or shorter objects, or try again later", 1
    )


def document(about: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI document of a service, given the description of its model at `/model`."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("openapi.json").read_text("utf-8"))
    found["info"] = {"title": f"krein: {about['model']}", "version": __version__}
    schemas = found["components"]["schemas"]
    numbers = {"type": "array", "items": {}, "description": "numbers, or lists of numbers"}
    schemas["Object"] = {"type": "string"} if about["takes"] == "text" else numbers
    if about["takes"] == "records":
        schemas["Object"] = {"type": "object", "required": list(about["columns"])}
    schemas["ManyObjects"]["properties"]["objects"]["maxItems"] = about["limits"]["objects"]
    return found
