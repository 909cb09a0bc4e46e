"""Pipes: predictions are written before the next object arrives, and nothing is lost."""

import os
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from krein.io import DataError, open_source

WAIT = 60  # seconds until a test gives up; no test asserts how fast an answer arrives


@pytest.fixture
def asked(files, fit, environment):
    """Start `krein predict` with a pipe to write to and a pipe to read from."""
    fit("words.csv", "--objects", "word", "--labels", "language", "-o", "model.krein")
    started = []

    def start(*args):
        process = subprocess.Popen(
            [sys.executable, "-m", "krein", "predict", "model.krein", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=files,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def ask(process, text):
    process.stdin.write(text.encode())
    process.stdin.flush()


def answers(process, n):
    """Return the next n lines, or fail if they do not arrive."""
    found, until = b"", time.monotonic() + WAIT
    while found.count(b"\n") < n:
        ready, _, _ = select.select([process.stdout], [], [], max(0, until - time.monotonic()))
        assert ready, f"only {found!r} arrived"
        part = os.read(process.stdout.fileno(), 65_536)
        assert part, f"only {found!r} arrived: {process.stderr.read()!r}"
        found += part
    return found.decode().splitlines()


@pytest.mark.parametrize(
    ("args", "before", "questions"),
    [
        ((), "", ["louse\n", "laus\n", "mouse\n"]),
        (("--objects", "word"), "id,word\n", ["a,louse\n", "b,laus\n", "c,mouse\n"]),
        (("--objects", "word"), "", ['{"word": "louse"}\n', '{"word": "laus"}\n']),
        # a sequence ends only when the next one begins
        ((), ">a\nlouse\n", [">b\nlaus\n", ">c\nmouse\n"]),
    ],
)
def test_an_answer_comes_before_the_next_question(asked, args, before, questions):
    process = asked(*args, "--format", "tsv")
    ask(process, before)
    for i, question in enumerate(questions):
        ask(process, question)
        rows = answers(process, 2 if i == 0 else 1)
        assert rows[0].startswith("name\t") == (i == 0)
    process.stdin.close()
    assert process.wait(WAIT) == 0
    assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_waits_can_be_stopped(asked, number):
    process = asked()
    ask(process, "louse\n")
    answers(process, 2)
    process.send_signal(number)
    assert process.wait(WAIT) == 128 + number
    assert process.stderr.read() == b"krein: stopped\n"


@pytest.fixture
def lines(files, fit, run):
    """Write a file of many lines, and return the rows that a model predicts for it."""
    fit("words.csv", "--objects", "word", "--labels", "language", "-o", "model.krein")
    texts = [f"{w}{'aeiou'[i % 5]}{i}" for i in range(1200) for w in ("haus", "mouse")]
    (files / "lines.txt").write_text("".join(f"{text}\n" for text in texts))
    code, rows, err = run("predict", "model.krein", "lines.txt")
    assert code == 0, err
    return rows


@pytest.mark.parametrize(
    "new", ["<(cat lines.txt)", "<(gzip -c lines.txt)", "<(sleep 0.1; cat lines.txt)", "fifo"]
)
def test_pipes_are_read_from_their_first_byte(files, lines, shell, new):
    line = f"krein predict model.krein {new}"
    if new == "fifo":
        os.mkfifo(files / "fifo")
        line = f"cat lines.txt > fifo & {line}"
    done = shell(line, files)
    assert done.returncode == 0, done.stderr
    assert done.stdout == lines


def test_tables_labels_and_fits_may_come_from_pipes(files, shell, run):
    options = "--objects 1 --no-header --landmarks all --model ikfd"
    (files / "rows.csv").write_text("".join((files / "words.csv").read_text().splitlines(True)[1:]))
    code, _, err = run("fit", "rows.csv", "--labels", "2", "-o", "a.krein", *options.split())
    assert code == 0, err
    piped = "krein fit <(cut -d, -f1 rows.csv) --labels <(cut -d, -f2 rows.csv) --input-format csv"
    done = shell(f"{piped} -o b.krein {options}", files)
    assert done.returncode == 0, done.stderr
    assert run("predict", "a.krein", "rows.csv", "--no-header", "--objects", "1") == run(
        "predict", "b.krein", "rows.csv", "--no-header", "--objects", "1"
    )


def test_what_is_read_out_of_order_is_refused_from_a_pipe(files, lines, shell):
    for line in (
        "krein predict <(cat model.krein) lines.txt",
        "krein inspect --input-format npy <(cat lines.txt)",
        "krein predict model.krein <(cat lines.txt) --classified-out a.txt",
    ):
        done = shell(line, files)
        assert done.returncode in (1, 2), line
        assert "to a file first" in done.stderr
        assert done.stderr.count("error:") == 1


def test_a_pipe_can_be_opened_again_but_read_once(tmp_path):
    fifo = tmp_path / "words.fifo"
    os.mkfifo(fifo)
    for text in ("house\nmouse\n", "haus\n", "maus"):
        thread = threading.Thread(target=fifo.write_text, args=(text,))
        thread.start()
        source = open_source(fifo)
        assert source.read().objects == text.split()
        thread.join()
        with pytest.raises(DataError, match=r"fifo can be read only once; save it to a file"):
            source.read()
