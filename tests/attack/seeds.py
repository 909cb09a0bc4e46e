"""Small valid files in every format that krein reads, and commands that read them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Seed:
    """A valid file and commands that read it: FILE is its path, OUT a path to write to.

    The command `load` stands for `krein.load` and predictions in Python.
    """

    name: str
    content: bytes
    commands: tuple[tuple[str, ...], ...]
    repack: str = "plain"  # how to damage the content beneath a checksum or compression


LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def make_seeds(folder: Path) -> list[Seed]:
    """Return the seeds; valid files that the commands also read are written to `folder`."""
    rng = np.random.default_rng(0)
    labels = ["left" if i % 2 else "right" for i in range(16)]
    sequences = ["M" + "".join(rng.choice(list(LETTERS), 12)) for _ in range(16)]
    words = [("haus", "house")[i % 2] + "aeiou"[i % 5] * (i % 3 + 1) for i in range(16)]
    points = rng.normal(size=(16, 3)) + np.arange(16)[:, None] % 2 * 4
    D = np.abs(points[:, None] - points[None]).sum(axis=2)
    series = [np.cumsum(rng.normal(size=6 + i % 4)) for i in range(16)]
    folder.mkdir(parents=True, exist_ok=True)

    fasta = "".join(
        f">s{i} family={c}\n{s}\n" for i, (s, c) in enumerate(zip(sequences, labels, strict=True))
    ).encode()
    fastq = "".join(f"@r{i}\n{s}\n+\n{'I' * len(s)}\n" for i, s in enumerate(sequences)).encode()
    table = "name,word,language\n" + "".join(
        f'n{i},"{w}",{c}\n' for i, (w, c) in enumerate(zip(words, labels, strict=True))
    )
    vectors = "a\tb\tc\tlabel\n" + "".join(
        "\t".join(f"{v:.4f}" for v in p) + f"\t{c}\n" for p, c in zip(points, labels, strict=True)
    )
    matrix = "\n".join(",".join(f"{v:.5f}" for v in row) for row in D) + "\n"
    lines = "".join(f"{w}\n" for w in words)
    ts = "@problemName toy\n@univariate true\n@classLabel true left right\n@data\n" + "".join(
        ",".join(f"{v:.3f}" for v in s) + f":{c}\n" for s, c in zip(series, labels, strict=True)
    )
    records = "".join(
        json.dumps({"id": f"n{i}", "word": w, "label": c}) + "\n"
        for i, (w, c) in enumerate(zip(words, labels, strict=True))
    )
    in_order = "".join(f"{c}\n" for c in labels)
    (folder / "words.txt").write_text(lines)
    (folder / "order.txt").write_text(in_order)
    (folder / "points.npy").write_bytes(_npy(points))

    fit = ("fit", "FILE", "-o", "OUT", "--force", "--jobs", "1")
    pattern = ("--label-pattern", r"family=(\S+)")
    look = ("inspect", "FILE")
    order = ("--labels", str(folder / "order.txt"))
    seeds = [
        Seed("a.fasta", fasta, ((*look, *pattern), (*fit, *pattern))),
        Seed("a.fastq", fastq, (look,)),
        Seed("a.csv", table.encode(), (look, (*fit, "--objects", "word", "--labels", "language"),
             (*fit, "--measure", "word=levenshtein,name=damerau*2", "--labels", "language"))),
        Seed("a.tsv", vectors.encode(), (look, fit)),
        Seed("m.csv", matrix.encode(), ((*look, "--distance"), (*fit, "--distance", *order))),
        Seed("a.txt", lines.encode(), (look, (*fit, *order))),
        Seed("a.ts", ts.encode(), (look, fit)),
        Seed("a.jsonl", records.encode(), (look, fit)),
        Seed("labels.csv", in_order.encode(),
             (("fit", str(folder / "words.txt"), "--labels", "FILE", *fit[2:]),)),
        Seed("p.npy", _npy(points), (look, (*fit, *order))),
        Seed("m.npy", _npy(D), ((*look, "--distance"),)),
        Seed("s.npy", _npy(np.stack([s[:6] for s in series])[:, :, None]), (look, (*fit, *order))),
        Seed("l.npy", _npy(np.array(labels)),
             (("fit", str(folder / "words.txt"), "--labels", "FILE", *fit[2:]),)),
        Seed("a.npz", _npz(X=points, y=np.array(labels)), (look, fit), "zip"),
        *_matlab(points, labels, look, fit),
        *_parquet(words, points, series, labels, look, fit),
        *_models(folder, words, points, series, sequences, labels),
    ]  # fmt: skip
    packed = [
        Seed(f"{s.name}.{suffix}", pack(s.content), s.commands, suffix)
        for s, suffix, pack in (
            (seeds[0], "gz", lambda b: gzip.compress(b, mtime=0)),
            (seeds[2], "xz", lzma.compress),
            (seeds[6], "bz2", bz2.compress),
            (seeds[9], "gz", lambda b: gzip.compress(b, mtime=0)),
        )
    ]
    return seeds + packed


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _matlab(points, labels, look, fit):
    from scipy.io import savemat

    found = []
    content = {"X": points, "y": np.array(labels, dtype=object), "note": "made up"}
    for name, how in (
        ("a.mat", {"do_compression": False}),
        ("c.mat", {"do_compression": True}),
        ("old.mat", {"format": "4"}),
    ):
        buffer = io.BytesIO()
        arrays = content if "format" not in how else {"X": points, "y": np.arange(16.0) % 2}
        savemat(buffer, arrays, **how)
        repack = "mat" if name == "c.mat" else "plain"
        found.append(Seed(name, buffer.getvalue(), (look, fit), repack))
    return found


def _parquet(words, points, series, labels, look, fit):
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        return []
    found = []
    for name, columns in (
        ("w.parquet", {"word": words, "label": labels}),
        ("v.parquet", {"a": points[:, 0], "b": points[:, 1], "label": labels}),
        ("s.parquet", {"series": [s.tolist() for s in series], "label": labels}),
    ):
        buffer = io.BytesIO()
        parquet.write_table(pa.table(columns), buffer)
        found.append(Seed(name, buffer.getvalue(), (look, fit)))
    return found


def _models(folder, words, points, series, sequences, labels):
    from krein import IKFD, IKQD, PCVM, KreinClassifier
    from krein.measures import Combined

    both = Combined({"word": "levenshtein", "place": ("euclidean", ["x", "y"])}, [1, 0.5])
    records = [
        {"word": w, "x": x, "y": y} for w, (x, y, _) in zip(words, points.tolist(), strict=True)
    ]
    images = np.concatenate([points, points, points], axis=1).reshape(16, 3, 3)
    made = (
        ("ikfd", IKFD("levenshtein", landmarks="all", calibrate=True), words, "words.txt"),
        ("ikqd", IKQD("elm", random_state=0), points, "points.npy"),
        ("pcvm", PCVM("manhattan", random_state=0), points, "points.npy"),
        ("msm", IKFD("msm", landmarks="all"), series, "series.ts"),
        ("krein", KreinClassifier("levenshtein", n_landmarks=6), words, "words.txt"),
        ("sw", KreinClassifier("smith-waterman", n_landmarks=6), sequences, "sequences.txt"),
        ("tangent", IKFD("tangent", landmarks="all", calibrate=True), images, "images.npy"),
        ("records", KreinClassifier(both, n_landmarks=6), records, "records.csv"),
    )
    (folder / "records.csv").write_text(
        "x,word,y\n" + "".join(f"{r['x']},{r['word']},{r['y']}\n" for r in records)
    )
    text = "@univariate true\n@classLabel false\n@data\n"
    text += "".join(",".join(f"{v:.3f}" for v in s) + "\n" for s in series)
    (folder / "series.ts").write_text(text)
    (folder / "sequences.txt").write_text("".join(f"{s}\n" for s in sequences))
    np.save(folder / "images.npy", images.reshape(16, 9))
    found = []
    for name, estimator, objects, new in made:
        path = folder / f"{name}.krein"
        with warnings.catch_warnings(), contextlib.suppress(FileNotFoundError):
            warnings.simplefilter("ignore")
            estimator.fit(objects, labels).save(path)
        command = ("predict", "FILE", str(folder / new), "-o", "OUT", "--jobs", "1")
        if estimator.model_.reference is not None:
            command = (*command, "--sets", "0.9", "--evidence", "3", "--top", "3")
        commands = (command, ("load", "FILE", str(folder / new)))
        found.append(Seed(f"{name}.krein", path.read_bytes(), commands, "model"))
    return found
