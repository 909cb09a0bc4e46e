"""Read an array in NumPy's format from any stream; its size is known before memory is allocated.

Nothing is unpickled. NumPy's own reader evaluates the header as a Python expression and raises a
dozen kinds of errors for damaged files; this reader raises only one.
"""

from __future__ import annotations

import ast
import math
import warnings
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .streams import DataError

_MAGIC = b"\x93NUMPY"
_LONGEST = 10_000
"""Maximum number of characters of a header, which contains a type and a shape."""
_READ_BYTES = 2**22


class ArrayFormatError(ValueError):
    """Bytes that are not an array in NumPy's format."""


@dataclass(frozen=True)
class ArrayHeader:
    """The description of an array, which precedes its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    length: int  # of the header itself, in bytes

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""
        return self.size * self.dtype.itemsize


def read_header(file: IO[bytes]) -> ArrayHeader:
    """Return the header of an array, and leave the stream at its first value."""
    start = _exactly(file, 8)
    if start[:6] != _MAGIC:
        raise ArrayFormatError("it does not begin like a .npy file")
    version = start[6]
    if version not in (1, 2, 3):
        raise ArrayFormatError(f"its format has the unknown version {version}")
    width = 2 if version == 1 else 4
    n = int.from_bytes(_exactly(file, width), "little")
    if n > _LONGEST:
        raise ArrayFormatError(f"its header has {n:,} bytes")
    text = _exactly(file, n)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in a damaged header
            found = ast.literal_eval(text.decode("utf-8" if version == 3 else "latin-1").strip())
        shape, fortran = found["shape"], found["fortran_order"]
        dtype = np.lib.format.descr_to_dtype(found["descr"])
    # damaged bytes make literal_eval and NumPy raise nearly anything
    except Exception as error:
        raise ArrayFormatError("its header is damaged") from error
    if dtype.hasobject:
        raise ArrayFormatError("it contains pickled objects, which may run code")
    sound = isinstance(shape, tuple) and len(shape) <= 32 and isinstance(fortran, bool)
    if not sound or not all(type(k) is int and 0 <= k < 2**48 for k in shape):
        raise ArrayFormatError("its header is damaged")
    return ArrayHeader(shape, dtype, fortran, 8 + width + n)


def read_values(file: IO[bytes], header: ArrayHeader) -> NDArray[Any]:
    """Return the array that follows a header, read directly into its memory."""
    values: NDArray[Any] = np.empty(header.size, dtype=header.dtype)
    if header.nbytes:
        target = values.view(np.uint8)
        filled = 0
        while filled < len(target):
            part = file.read(min(_READ_BYTES, len(target) - filled))
            if not part:
                raise ArrayFormatError(
                    f"it ends after {filled:,} of {len(target):,} bytes; the file is truncated"
                )
            target[filled : filled + len(part)] = np.frombuffer(part, dtype=np.uint8)
            filled += len(part)
    if header.fortran:
        return values.reshape(header.shape[::-1]).transpose()
    return values.reshape(header.shape)


def check_characters(array: NDArray[Any], where: str) -> None:
    """Raise an error if an array of strings contains invalid code points."""
    if array.dtype.kind != "U" or array.size == 0 or array.dtype.itemsize == 0:
        return
    flat = np.ascontiguousarray(array).reshape(-1)
    codes = flat.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()):
        raise DataError(f"{where}: contains a string with an invalid character")


def _exactly(file: IO[bytes], n: int) -> bytes:
    found = file.read(n)
    if len(found) < n:
        raise ArrayFormatError("it ends within its header; the file is truncated")
    return found
