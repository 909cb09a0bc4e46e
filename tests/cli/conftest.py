"""Small files of every kind, and two ways to run the command."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from krein.cli import krein

SOURCE = Path(__file__).parents[2] / "src"


PATTERN_OF_FAMILIES = ("--label-pattern", r"family=(\S+)")


def family(rng, ancestor, n, letters="ACDEFGHIKLMNPQRSTVWY"):
    """Sequences that differ from an ancestor in some places."""
    found = []
    for _ in range(n):
        sequence = list(ancestor)
        for place in rng.integers(0, len(sequence), len(sequence) // 3):
            sequence[place] = rng.choice(list(letters))
        found.append("".join(sequence))
    return found


def write_fasta(path, rows):
    path.write_text("".join(f">{n} family={c}\n{s}\n" for n, c, s in rows))


def write_hits(folder, rng):
    """Write hits of 120 references in three classes among each other, and of 30 queries.

    Every tenth query has no hit; the names of all queries are in a FASTA file.
    """
    codes = np.arange(120) % 3
    places = 3.0 * codes + rng.normal(size=120)
    with open(folder / "taxonomy.tsv", "w") as file:
        file.writelines(f"ref{i}\t{'abc'[c]}\n" for i, c in enumerate(codes))

    def rows(names, objects):
        for name, place in zip(names, objects, strict=True):
            apart = np.abs(places - place)
            for j in np.argsort(apart)[:40]:
                bits, identity = 300 - 40 * apart[j], 100 - 8 * apart[j]
                end = f"100\t0\t0\t1\t100\t1\t100\t1e-9\t{bits:.2f}\n"
                yield f"{name}\tref{j}\t{identity:.2f}\t{end}"

    (folder / "refs-vs-refs.tsv").write_text("".join(rows([f"ref{i}" for i in range(120)], places)))
    names, new = [f"query{i}" for i in range(30)], 3.0 * rng.integers(3, size=30)
    found = [i for i in range(30) if i % 10]
    hits = rows([names[i] for i in found], new[found] + rng.normal(size=len(found)))
    (folder / "queries-vs-refs.tsv").write_text("".join(hits))
    (folder / "queries.fasta").write_text("".join(f">{name} text\nACGT\n" for name in names))


def make_files(folder):
    """Write the files that the examples of `--help` read."""
    rng = np.random.default_rng(0)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    rows = []
    for c in ("globin", "kinase", "actin"):
        ancestor = "".join(rng.choice(letters, 60))
        rows += [(f"{c}{i}", c, s) for i, s in enumerate(family(rng, ancestor, 30))]
    order = rng.permutation(len(rows))
    rows = [rows[i] for i in order]
    write_fasta(folder / "families.fasta", rows[:70])
    write_fasta(folder / "new.fasta", rows[70:])
    words = [("house", "en"), ("mouse", "en"), ("haus", "de"), ("maus", "de")]
    with open(folder / "words.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["word", "language"])
        for k in range(10):
            writer.writerows((w + "aeiou"[k % 5] * (k % 3), lang) for w, lang in words)
    with open(folder / "people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "class", "name", "born"])
        for k in range(60):
            stem, age, group = (("Annabel", 30, "a"), ("Bernhard", 45, "b"))[k % 2]
            name = "".join(x if rng.random() > 0.3 else rng.choice(list("xyz")) for x in stem)
            born = f"{2020 - age}-0{rng.integers(1, 9)}-1{rng.integers(9)}"
            writer.writerow([f"p{k}", f"{age + rng.normal() * 6:.3f}", group, name, born])
    write_hits(folder, rng)
    points = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(4, 1, (20, 2))])
    D = np.abs(points[:, None] - points[None]).sum(axis=2)
    np.savetxt(folder / "distances.csv", D, delimiter=",", fmt="%.17g")
    with open(folder / "labels.csv", "w") as file:
        file.writelines(f"{i},{'left' if i < 20 else 'right'}\n" for i in range(40))
    return folder


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def files(prepared, tmp_path, monkeypatch):
    """A separate folder with the files, as the current folder."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """Run the command in this process: (exit code, standard output, standard error)."""

    def called(*args, input=None, catch=True):
        result = CliRunner().invoke(
            krein, [str(a) for a in args], input=input, prog_name="krein", catch_exceptions=catch
        )
        return result.exit_code, result.stdout, result.stderr

    return called


@pytest.fixture(scope="session")
def models():
    """What `krein fit` has printed and written, by its arguments."""
    return {}


@pytest.fixture
def fit(files, run, models):
    """Write the model that `krein fit` makes of files that are the same in each test.

    The arguments end with the name of the model. The command runs once for all tests, and its
    standard output is returned.
    """

    def written(*args):
        if args not in models:
            code, out, err = run("fit", *args)
            assert code == 0, err
            models[args] = out, (files / args[-1]).read_bytes()
        out, content = models[args]
        (files / args[-1]).write_bytes(content)
        return out

    return written


@pytest.fixture
def environment(tmp_path_factory):
    """Environment variables with which a shell finds the command `krein`."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "krein"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m krein "$@"\n')
    script.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCE),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def shell(environment):
    """Run a line in a shell."""

    def called(line, folder):
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return called
