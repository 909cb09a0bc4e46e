"""`krein predict` in a pipe: each prediction is written before the next object arrives."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

WAIT = 60  # seconds until a test gives up; no test asserts how fast an answer arrives


@pytest.fixture
def asked(files, run, environment):
    """Start `krein predict` with a pipe to write to and a pipe to read from."""
    code, _, err = run(
        "fit", "words.csv", "--objects", "word", "--labels", "language", "-o", "model.krein"
    )
    assert code == 0, err
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
