"""A seeded generator of damaged files: transmission errors and forgeries."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .seeds import Seed

TOKENS = (
    b"\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xfe\xff",
    b"\xff\xfe", b"\xef\xbb\xbf", b"nan", b"inf", b"-1", b"1e999", b"9" * 40,
    b"\x1b[31mred\x1b]0;title\x07",
    b"\r", b"\n\n\n", b'"', b"'", b",,,,", b";", b"\t", b">", b">\n", b"@", b"@data\n", b":",
    b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"True", b"None", b"{", b"[" * 200, b"__import__('os')",
    b"(1, 1000000000000)", b"<f8", b"|O", b"<U99999999", b"PK\x03\x04", b"PK\x01\x02", b"x" * 1500,
    b"\x93NUMPY", b"labels=None", b"../../../tmp/x", b"\x80\x04\x95", b"=cmd|' /C calc'!A0",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A damaged file, and the command that reads it."""

    number: int
    name: str
    content: bytes
    command: tuple[str, ...]
    how: str
    fifo: bool = False  # whether the command reads it from a named pipe


def cases(seeds: list[Seed], seed: int, first: int, count: int) -> Iterator[Case]:
    """Yield cases by number; a case does not depend on those before it."""
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number])
        chosen = seeds[number % len(seeds)]
        others = seeds[int(rng.integers(len(seeds)))]
        content, how = _damaged(chosen, others.content, rng)
        command = chosen.commands[int(rng.integers(len(chosen.commands)))]
        yield Case(number, chosen.name, content, command, how, bool(rng.random() < 0.1))


NUMBERS = (0, -1, 2**31, 10**18, float("nan"))


def forgeries(seeds: list[Seed], first: int = 0) -> Iterator[Case]:
    """Yield every model with one part of its header changed, and sealed as krein seals it.

    Each number in turn becomes 0, −1, 2³¹, 10¹⁸ and NaN, each list is repeated, and each string is
    emptied. There is a case for each of the seed's commands.
    """
    number = first
    for seed in seeds:
        if seed.repack != "model":
            continue
        members, header = opened_model(seed.content)
        for path, value in _parts(header["tree"]):
            for how, forged in _forged(value):
                header["tree"] = _replaced(header["tree"], path, forged)
                content = _sealed(members, header)
                header["tree"] = _replaced(header["tree"], path, value)
                place = f"{'.'.join(map(str, path))[-80:]} {how}"
                for command in seed.commands:
                    yield Case(number, seed.name, content, command, f"sealed: {place}")
                    number += 1


def _parts(tree: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple, object]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _parts(value, (*path, key))
        return
    yield path, tree
    if isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from _parts(value, (*path, i))


def _forged(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, list) and value:
        yield "twice", value * 2
        if len(value) < 20:
            yield "often", value * 2000
    elif isinstance(value, str) and value:
        yield "emptied", ""
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from ((str(number), number) for number in NUMBERS)


def _replaced(tree, path, value):
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = _replaced(tree[path[0]], path[1:], value)
    return copy


def _damaged(seed: Seed, other: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    deep = rng.random() < 0.5 and seed.repack != "plain"
    if not deep:
        content, how = mutated(seed.content, other, rng)
        return content, how
    return _REPACK[seed.repack](seed.content, other, rng)


def mutated(content: bytes, other: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Return the bytes with one to four random changes."""
    data, done = bytearray(content), []
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(data) + 1))
        how = str(rng.choice(["flip", "byte", "cut", "drop", "copy", "token", "number", "splice",
                              "repeat", "swap", "zero"]))  # fmt: skip
        length = int(min(2 ** rng.integers(0, 9), max(len(data) - at, 0)))
        if how == "flip" and at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
        elif how == "byte" and at < len(data):
            data[at] = int(rng.integers(256))
        elif how == "cut" and rng.random() < 0.5:
            del data[at:]
        elif how == "drop":
            del data[at : at + length]
        elif how == "copy":
            to = int(rng.integers(len(data) + 1))
            data[to:to] = data[at : at + length]
        elif how == "token":
            data[at:at] = TOKENS[int(rng.integers(len(TOKENS)))]
        elif how == "number" and at + 8 <= len(data):
            extreme = int(rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40]))
            data[at : at + 8] = struct.pack("<Q", extreme)[: 8 if rng.random() < 0.5 else 4]
        elif how == "splice" and other:
            start = int(rng.integers(len(other)))
            data[at : at + length] = other[start : start + length]
        elif how == "repeat":
            data[at:at] = bytes(data[at : at + length]) * int(rng.integers(2, 60))
        elif how == "swap" and at + 2 * length <= len(data):
            a, b = bytes(data[at : at + length]), bytes(data[at + length : at + 2 * length])
            data[at : at + 2 * length] = b + a
        elif how == "zero":
            data[at : at + length] = bytes(length)
        else:
            continue
        done.append(how)
    return bytes(data), "+".join(done) or "nothing"


def _through(unpack, pack):  # type: ignore[no-untyped-def]
    def repacked(content: bytes, other: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
        inner, how = mutated(unpack(content), other, rng)
        return pack(inner), f"packed {how}"

    return repacked


def _zip(content: bytes, other: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Damage one member of an archive, and correct its checksums afterwards."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[int(rng.integers(len(members)))]
    members[name], how = mutated(members[name], other, rng)
    return _zipped(members), f"{name} {how}"


def _zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def _mat(content: bytes, other: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Damage the contents of the compressed elements of a MATLAB file."""
    out, place, done = bytearray(content[:128]), 128, []
    while place + 8 <= len(content):
        kind, length = struct.unpack("<II", content[place : place + 8])
        inner = content[place + 8 : place + 8 + length]
        if kind == 15 and rng.random() < 0.6:
            changed, how = mutated(zlib.decompress(inner), other, rng)
            inner = zlib.compress(changed)
            done.append(how)
        out += struct.pack("<II", kind, len(inner)) + inner
        place += 8 + length
    return bytes(out), f"packed {'; '.join(done)}"


def _model(content: bytes, other: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Change a model and seal it again, as an attacker would."""
    members, header = opened_model(content)
    done = []
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5:
            done.append(_change_array(header, members, rng))
        else:
            done.append(_change_tree(header["tree"], rng))
    if rng.random() < 0.1:
        members["more.npy"] = _npy(np.zeros(10))
        done.append("member not listed")
    return _sealed(members, header), "sealed: " + "; ".join(done)


def opened_model(content: bytes) -> tuple[dict[str, bytes], dict]:
    """Return the members of a model, and its header."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return members, json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())


def _sealed(members: dict[str, bytes], header: dict) -> bytes:
    """Return a model file with this header and its checksum."""
    return sealed_text(members, json.dumps(header).encode())


def sealed_text(members: dict[str, bytes], text: bytes) -> bytes:
    """Return a model file with this text as its header, and its checksum."""
    members["header.npy"] = _npy(np.frombuffer(text, dtype=np.uint8))
    seal = hashlib.sha256(text).digest()
    members["seal.npy"] = _npy(np.frombuffer(seal, dtype=np.uint8))
    return _zipped(members)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _change_array(header: dict, members: dict[str, bytes], rng: np.random.Generator) -> str:
    from krein.io.modelfile import _digest

    names = [name for name in header["sha256"] if f"{name}.npy" in members]
    if not names:
        return "no arrays"
    name = names[int(rng.integers(len(names)))]
    array = np.load(io.BytesIO(members[f"{name}.npy"]))
    how = str(rng.choice(["empty", "longer", "nan", "huge", "negative", "axis", "type", "strings"]))
    if how == "empty":
        array = array[:0]
    elif how == "longer":
        array = np.concatenate([array, array])
    elif how == "nan" and array.dtype.kind == "f" and array.size:
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = rng.choice([np.nan, np.inf, -np.inf])
    elif how == "huge":
        with np.errstate(over="ignore"):
            array = array * 1e300 if array.dtype.kind == "f" else array
    elif how == "negative":
        array = -array - 1 if array.dtype.kind in "if" else array
    elif how == "axis":
        array = array[None]
    elif how == "type":
        single = array.dtype.kind == "f" and rng.random() < 0.5
        array = array.astype(np.float32 if single else "S8")
    else:
        array = np.array(["\x1b[31m"] * max(len(array), 1))
    members[f"{name}.npy"] = _npy(array)
    header["sha256"][name] = _digest(array)
    return f"{name} {how}"


def _change_tree(tree: object, rng: np.random.Generator) -> str:
    """Replace a random part of a header's tree."""
    path = []
    while isinstance(tree, dict | list) and len(tree):
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[int(rng.integers(len(keys)))]
        path.append(str(key))
        if not isinstance(tree[key], dict | list) or rng.random() < 0.1:  # type: ignore[index]
            wrong = [None, True, -1, 0, 10**40, 1e308, float("nan"), "", "\x1b[2J", "x" * 2000, [],
                     {}, {"list": []}, {"array": "no such"}, {"dict": {"cache": "x"}},
                     "levenshtein", "dtw", "precomputed", "../../x", "\ud800"]  # fmt: skip
            tree[key] = wrong[int(rng.integers(len(wrong)))]  # type: ignore[index]
            break
        tree = tree[key]  # type: ignore[index]
    return ".".join(path)[-60:]


_REPACK = {
    "gz": _through(gzip.decompress, lambda b: gzip.compress(b, mtime=0)),
    "xz": _through(lzma.decompress, lzma.compress),
    "bz2": _through(bz2.decompress, bz2.compress),
    "zip": _zip,
    "mat": _mat,
    "model": _model,
}
