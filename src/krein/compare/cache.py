"""A folder of finished blocks that survives the process, however it ends.

    manifest.json         format, measure and parameters
    blocks/<key>.npy      values of one block, followed by a checksum

The key of a block is a hash of the measure and of the contents of its row and column objects:
sketches, landmark columns, predictions, folds and refits can share a folder, and no block is ever
mistaken for another. Every file is written under a temporary name, flushed to disk, and renamed:
after a crash it is either complete or absent. Two processes that write the same file write the same
contents. Names of temporary files contain the process id and where it is valid, so leftovers of
dead processes can be removed.
"""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import json
import os
import socket
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..core.shapes import Array
from ..measures import Measure
from ..measures.fingerprints import SIZE, fingerprint
from ..measures.objects import Objects

Digests = NDArray[np.uint8]  # (N, SIZE)


def object_digests(objects: Objects) -> Digests:
    """Return one fingerprint per object, (N, SIZE) bytes. O(total size of the objects)."""
    digests = b"".join(fingerprint(item) for item in objects)
    return np.frombuffer(digests, dtype=np.uint8).reshape(len(objects), SIZE)


_serial = itertools.count()


def temporary_path(folder: Path, prefix: str, suffix: str = "") -> Path:
    """Return a path in `folder` that contains the process id and that no other process uses."""
    return folder / f"{prefix}{_machine()}-{os.getpid()}-{next(_serial)}{suffix}"


_INITIAL_NAMESPACE = "pid:[4026531836]"
"""The namespace of process ids outside all containers, on every Linux."""


def _machine() -> str:
    """Return a name for where the ids of processes are valid: the machine, or the container.

    Host names are not enough: containers may have equal ones, each with its own process 7.
    """
    known = ""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
        files = ["/etc/machine-id"]
        if namespace != _INITIAL_NAMESPACE:  # whose number is unique until the machine restarts
            known, files = namespace, ["/proc/sys/kernel/random/boot_id"]
        known += "".join(Path(file).read_text("ascii") for file in files)
    except (OSError, ValueError):
        pass  # not Linux, which has other containers, or a system without such files
    return f"{socket.gethostname()}-{hashlib.blake2b(known.encode(), digest_size=6).hexdigest()}"


def remove_stale(folder: Path, prefix: str, suffix: str = "") -> None:
    """Remove files from `temporary_path` whose process on this machine no longer exists.

    Files from other machines and other containers are kept, because their processes cannot be
    checked.
    """
    here = f"{prefix}{_machine()}-"
    try:
        found = [path for path in folder.iterdir() if path.name.startswith(here)]
    except OSError:
        return  # a folder that cannot be listed may still be writable
    for path in found:
        owner, _, number = path.name.removeprefix(here).removesuffix(suffix).partition("-")
        ours = path.name.endswith(suffix) and owner.isdecimal() and number.isdecimal()
        if ours and not _alive(int(owner)):
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue  # owned by another user


def _alive(process: int) -> bool:
    if os.name != "posix":
        return True  # on Windows, os.kill would end the process
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it exists, and belongs to another user
    return True


CACHE_FORMAT = 1
"""Incremented whenever older folders would be misread."""

_CHECKSUM = 16
_MANIFEST = "manifest.json"
_TEMPORARY = ".writing-"


def was_made(folder: str | PathLike[str]) -> bool:
    """Whether an earlier run created this folder."""
    return (Path(folder) / _MANIFEST).exists()


class CacheError(ValueError):
    """A folder that cannot be used as a cache; the objects are not the problem."""


class BlockCache:
    """The store of finished blocks of one measure, over any objects.

    A folder of another measure or other parameters is refused, because it was probably passed by
    mistake.
    """

    def __init__(
        self, folder: str | PathLike[str], measure: Measure, symmetrize: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.blocks = self.folder / "blocks"
        about = {"measure": measure.name, "params": measure.params(), "symmetrize": symmetrize}
        text = json.dumps(about, sort_keys=True)
        self.about = json.loads(text)  # tuples become lists, as they are read back
        self._measured = f"{CACHE_FORMAT} {text} "
        try:
            self.blocks.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _explained(error, self.folder) from error
        self._claim()
        for used in (self.folder, self.blocks):
            remove_stale(used, _TEMPORARY)

    def key(self, what: str, *digests: Digests) -> str:
        """Return the key of a block, from the fingerprints of its rows and columns."""
        key = hashlib.blake2b((self._measured + what).encode(), digest_size=20)
        for part in digests:
            key.update(len(part).to_bytes(8, "little"))
            key.update(np.ascontiguousarray(part).data)
        return key.hexdigest()

    def load(self, key: str, shape: tuple[int, ...]) -> Array | None:
        """Return the stored values, or None if there are none or they are damaged."""
        values = _read(self.blocks / f"{key}.npy", shape)
        return values if values is not None and np.isfinite(values).all() else None

    def store(self, key: str, values: Array) -> None:
        """Store the values; they are on disk when this returns."""
        _write(self.blocks / f"{key}.npy", values)

    def _claim(self) -> None:
        """Write the manifest unless there is one, and check that it belongs to this measure."""
        manifest = self.folder / _MANIFEST
        if not manifest.exists():
            names = {item.name for item in self.folder.iterdir()} - {"blocks", _MANIFEST}
            strangers = sorted(name for name in names if not name.startswith(_TEMPORARY))
            if strangers and not manifest.exists():  # which another process may have written
                raise CacheError(
                    f"{self.folder} is not a cache folder (it contains {strangers[0]!r}); name a "
                    f"new or empty one"
                )
            text = json.dumps({"format": CACHE_FORMAT, "about": self.about}, indent=1)
            _put(manifest, text.encode("utf-8"), keep=True)
        try:
            found = json.loads(manifest.read_text("utf-8"))
            version, about = found["format"], found["about"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CacheError(f"{manifest} cannot be read ({error}); delete {self.folder}") from None
        if version != CACHE_FORMAT:
            raise CacheError(
                f"{self.folder} has format {version}, but this version reads {CACHE_FORMAT}; "
                "name another folder"
            )
        if about != self.about:
            raise CacheError(
                f"{self.folder} contains blocks of {_called(about)}, not of {_called(self.about)}; "
                "name another folder"
            )


def _called(about: Any) -> str:
    try:
        params = ", ".join(f"{name}={value!r}" for name, value in about["params"].items())
        averaged = ", symmetrized" if about["symmetrize"] else ""
        return f"{about['measure']}({params}){averaged}"
    except (KeyError, TypeError, AttributeError):  # the manifest was edited
        return "an unknown measure"


def _read(path: Path, shape: tuple[int, ...]) -> Array | None:
    """Return the array in the file, or None if it is damaged or another one; it is then computed
    again.

    The checksum is not a secret: a forged block may have a valid one, and claim any size.
    """
    try:
        contents = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _explained(error, path, "read") from error
    body, checksum = contents[:-_CHECKSUM], contents[-_CHECKSUM:]
    if hashlib.blake2b(body, digest_size=_CHECKSUM).digest() != checksum:
        return None
    try:
        start = io.BytesIO(body)
        npy.read_magic(start)
        claimed, _, dtype = npy.read_array_header_1_0(start)
        if claimed != shape or dtype != np.float64:
            return None
        array: Array = np.load(io.BytesIO(body), allow_pickle=False)
    except Exception:  # NumPy reports damage with a dozen kinds of errors
        return None
    return array


def _write(path: Path, array: NDArray[Any]) -> None:
    body = io.BytesIO()
    np.save(body, np.ascontiguousarray(array), allow_pickle=False)
    contents = body.getvalue()
    _put(path, contents + hashlib.blake2b(contents, digest_size=_CHECKSUM).digest())


def _put(path: Path, contents: bytes, keep: bool = False) -> None:
    """Write a file atomically, and flush it to disk.

    With `keep`, an existing file is kept.
    """
    temporary = temporary_path(path.parent, _TEMPORARY)
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            if keep:
                _link(temporary, path)
            else:
                os.replace(temporary, path)
            _flush_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _explained(error, path.parent) from error


def _link(temporary: Path, path: Path) -> None:
    """Rename the file, unless the new name exists."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # no hard links; nearly as good, because all write the same
        if not path.exists():
            os.replace(temporary, path)


def _flush_folder(folder: Path) -> None:
    """Flush the new name to disk too, if the system supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explained(error: OSError, folder: Path, done: str = "written") -> OSError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = "the disk is full; finished blocks are kept, and a rerun resumes from there"
    else:
        reason = f"cannot be {done}: {error.strerror or error}"
    return OSError(error.errno, f"{folder}: {reason}")
