"""NumPy's format: the header of an array is read and checked before its values.

Nothing is unpickled. Arrays of strings may contain labels.
"""

from __future__ import annotations

import io
import math
import warnings
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .streams import (
    DataError,
    array_limit,
    has_packed_suffix,
    open_bytes,
    refuse_stream,
    too_large,
)

_HEADER_BYTES = 10_000
"""Maximum number of characters of a header, which contains a type and a shape."""


class ArrayFormatError(ValueError):
    """Bytes that are not an array, or a damaged one."""


@dataclass(frozen=True)
class ArrayHeader:
    """The description of a stored array, which is known before its values are read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

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
    """Return the header of an array in NumPy's format.

    NumPy receives only the first bytes, because it reads a header of any length before it looks at
    the length. An item size of 0 is refused: the values would have no bytes in the file, but some
    in memory.
    """
    start = io.BytesIO(file.read(_HEADER_BYTES))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in a damaged header
            first = npy.read_magic(start) == (1, 0)
            read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
            shape, _, dtype = read(start, max_header_size=_HEADER_BYTES)
    # damaged bytes make NumPy raise nearly anything
    except Exception as error:
        reason = "it does not begin like a .npy file, or its header is damaged"
        raise ArrayFormatError(reason) from error
    if dtype.hasobject:
        raise ArrayFormatError("it contains pickled objects, which may run code")
    if dtype.itemsize == 0:
        raise ArrayFormatError(f"it contains values of 0 bytes ({dtype.str})")
    sound = len(shape) <= 32 and all(type(k) is int and k >= 0 for k in shape)
    if not sound or math.prod(max(k, 1) for k in shape) * dtype.itemsize >= 2**62:
        raise ArrayFormatError("its header is damaged")
    return ArrayHeader(shape, dtype)


def read_values(file: IO[bytes]) -> NDArray[Any]:
    """Return the array of a stream whose header has been read and checked."""
    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    except ValueError as error:
        raise ArrayFormatError(f"{error}; the file is truncated") from error
    return found


def check_characters(array: NDArray[Any], where: str) -> None:
    """Raise an error if an array of strings contains invalid code points."""
    if array.dtype.kind != "U" or array.size == 0:
        return
    flat = np.ascontiguousarray(array).reshape(-1)
    codes = flat.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()):
        raise DataError(f"{where}: contains a string with an invalid character")


def load_npy(path: str, max_size: int | None = None) -> NDArray[Any]:
    """Return the array of an `.npy` file, memory-mapped unless it is compressed."""
    refuse_stream(path, "an array")
    packed = has_packed_suffix(path)
    try:
        with open_bytes(path) if packed else open(path, "rb") as file:
            header = read_header(file)
            if packed:
                return values_within(file, header, path, array_limit(path, max_size))
        if header.size == 0:  # which cannot be mapped
            return np.empty(header.shape, header.dtype)
        return npy.open_memmap(path, mode="r")
    except DataError:
        raise
    except (ValueError, OverflowError) as error:
        raise unreadable_file(path, "npy", error) from error


def values_within(file: IO[bytes], header: ArrayHeader, where: str, limit: int) -> NDArray[Any]:
    """Return the array of a stream whose header has been read, if it is within the limit."""
    if header.nbytes > limit:
        raise too_large(where, header.nbytes, limit)
    found = read_values(file)
    file.read(1)  # at the end, an archive verifies its checksum
    check_characters(found, where)
    return found


def unreadable_file(path: str, format: str, error: Exception) -> DataError:
    """Return the error for a file of arrays that is damaged, or is not one."""
    return DataError(f"{path}: cannot be read as .{format}: {error}")


def as_labels(array: Any, what: str) -> list[str]:
    """Return an array of labels as strings; whole numbers without a decimal point."""
    array = np.squeeze(np.asarray(array))
    check_characters(array, what)
    if array.ndim != 1:
        raise DataError(f"{what}: labels must be a list; got an array of shape {array.shape}")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise DataError(
                f"{what}: the label of object {int(np.argmin(np.isfinite(array)))} "
                "is NaN or infinite"
            )
        if (array == np.round(array)).all() and (np.abs(array) <= 2**53).all():
            array = array.astype(np.int64)
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{what}: a label is not UTF-8 ({error})") from None
    if array.dtype.kind not in "biufUO":
        raise DataError(f"{what}: labels must be numbers or strings; got {array.dtype}")
    return [str(label).strip() for label in array.tolist()]
