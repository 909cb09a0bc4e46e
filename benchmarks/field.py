"""KreinClassifier compared with BLAST+, MMseqs2 and DIAMOND on Swiss-Prot; needs `KREIN_DATA`.

The alternative for a bioinformatician is the label of the best hit. Each tool is measured if it is
installed (Debian: `ncbi-blast+`, `mmseqs2`, `diamond-aligner`), with two threads, on the first of
ten folds. A query without a hit counts as wrong. Speed is the CPU time of the queries, without
building the database or the model, so a busy machine does not change the ratios.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss

from krein import KreinClassifier
from krein.datasets import load_swissprot

from .accuracy import FOLDS, folder, no_data
from .timing import row

THREADS = "2"


def run(folds: int = 1) -> list[dict]:
    if folder() is None:
        return no_data()
    X, y = load_swissprot()
    tools = {name: tool for name, tool in TOOLS.items() if shutil.which(tool[0])}
    found: dict[str, list[tuple[np.ndarray, float]]] = {}
    losses, pairs, fits, sizes = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for k, (train, test) in enumerate(FOLDS.split(y, y)):
            if k == folds:
                break
            start = time.process_time()
            clf = KreinClassifier("smith-waterman").fit(X[train], y[train])
            fits.append(time.process_time() - start)
            pairs.append(clf.comparisons_to_fit_)
            clf.save(place / "model.krein")
            sizes.append((place / "model.krein").stat().st_size)
            start = time.process_time()
            P = clf.predict_proba(X[test])
            took = time.process_time() - start
            losses.append(log_loss(y[test], P, labels=clf.classes_))
            right = clf.classes_[P.argmax(axis=1)] == y[test]
            found.setdefault("KreinClassifier", []).append((right, took))
            write(place / "train.fasta", X[train])
            write(place / "test.fasta", X[test])
            for name, (_, prepare, search) in tools.items():
                prepare(place)
                start = children()
                hits = search(place)
                took = children() - start
                best = best_hits(hits, len(test))
                right = (best >= 0) & (y[train][best] == y[test])
                found.setdefault(name, []).append((right, took))
                print(k, name, f"{right.mean():.4f} {took:.1f} s", flush=True)
    return rows(found, losses, pairs, fits, sizes)


def rows(
    found: dict[str, list[tuple[np.ndarray, float]]],
    losses: list[float],
    pairs: list[int],
    fits: list[float],
    sizes: list[int],
) -> list[dict]:
    """Return the accuracy and speed of each tool."""
    ours = sum(took for _, took in found["KreinClassifier"])
    entries = []
    for name, folds in found.items():
        right = np.concatenate([right for right, _ in folds])
        took = sum(took for _, took in folds)
        detail = (
            f"± {100 * right.std() / np.sqrt(len(right)):.2f}, {took / len(folds):.1f} s per fold"
        )
        if name == "KreinClassifier":
            detail += (
                f", log-loss {np.mean(losses):.4f}; fit: {np.mean(pairs):,.0f} pairs, "
                f"{np.mean(fits):.0f} s; model of {np.mean(sizes) / 1e6:.1f} MB"
            )
        entries.append(row(name, 100 * right.mean(), WANTED.get(name, ""), detail, unit="%"))
        if name != "KreinClassifier":
            speed = row(f"KreinClassifier's speed over {name}'s", took / ours, "", "", unit="×")
            entries.append(speed | {"target": SPEED.get(name, "")})
    return entries


WANTED = {"KreinClassifier": "BLAST's − 0.3"}
SPEED = {"BLAST+": "30", "DIAMOND": "8"}


def children() -> float:
    """Return the CPU time of all commands run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write(path: Path, sequences: np.ndarray) -> None:
    path.write_text("".join(f">{i}\n{s}\n" for i, s in enumerate(sequences)))


def best_hits(hits: Path, n: int) -> np.ndarray:
    """Return the training sequence with the largest bit score for each query; −1 for none."""
    best, score = np.full(n, -1), np.full(n, -np.inf)
    for line in hits.read_text().splitlines():
        query, target, bits = line.split("\t")[:3]
        if float(bits) > score[int(query)]:
            best[int(query)], score[int(query)] = int(target), float(bits)
    return best


def call(place: Path, *command: str) -> Path:
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    return place / "hits.tsv"


def blast_prepare(place: Path) -> None:
    call(place, "makeblastdb", "-in", "train.fasta", "-dbtype", "prot", "-out", "blast")


def blast(place: Path) -> Path:
    command = "blastp -query test.fasta -db blast -max_target_seqs 5 -out hits.tsv -num_threads"
    return call(place, *command.split(), THREADS, "-outfmt", "6 qseqid sseqid bitscore")


def mmseqs_prepare(place: Path) -> None:
    for part in ("train", "test"):
        call(place, "mmseqs", "createdb", f"{part}.fasta", part, "-v", "1")


def mmseqs(place: Path) -> Path:
    for old in (*place.glob("found*"), *place.glob("scratch")):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    search = "mmseqs search test train found scratch -s 7.5 -v 1 --threads"
    call(place, *search.split(), THREADS)
    read = "mmseqs convertalis test train found hits.tsv --format-output query,target,bits -v 1"
    return call(place, *read.split(), "--threads", THREADS)


def diamond_prepare(place: Path) -> None:
    call(place, "diamond", "makedb", "--in", "train.fasta", "-d", "diamond", "--quiet")


def diamond(place: Path) -> Path:
    command = "diamond blastp -q test.fasta -d diamond -o hits.tsv --ultra-sensitive --quiet -k 5"
    fields = "--outfmt 6 qseqid sseqid bitscore --threads"
    return call(place, *command.split(), *fields.split(), THREADS)


Tool = tuple[str, Callable[[Path], None], Callable[[Path], Path]]
TOOLS: dict[str, Tool] = {
    "BLAST+": ("blastp", blast_prepare, blast),
    "MMseqs2 -s 7.5": ("mmseqs", mmseqs_prepare, mmseqs),
    "DIAMOND": ("diamond", diamond_prepare, diamond),
}
