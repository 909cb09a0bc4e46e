"""Output files: inputs are never overwritten, and pipes and links never replaced."""

import os
import threading

import pytest

import krein as library

WORDS = ("fit", "words.csv", "--objects", "word", "--labels", "language")


@pytest.fixture
def model(files, run):
    code, _, err = run(*WORDS, "-o", "m.krein")
    assert code == 0, err
    return files / "m.krein"


def drained(path):
    """Read a FIFO in a thread: (thread, bytes)."""
    found = []
    thread = threading.Thread(target=lambda: found.append(path.read_bytes()))
    thread.start()
    return thread, found


def test_a_fifo_stays_a_fifo_and_gets_the_rows(files, model, run):
    fifo = files / "rows.fifo"
    os.mkfifo(fifo)
    thread, found = drained(fifo)
    code, _, err = run("predict", "m.krein", "-o", "rows.fifo", input="house\n")
    thread.join(20)
    assert code == 0, err
    assert fifo.is_fifo()
    assert found[0].startswith(b"name,label")


def test_a_model_is_written_to_a_fifo_without_force(files, run):
    fifo = files / "model.fifo"
    os.mkfifo(fifo)
    thread, found = drained(fifo)
    code, _, err = run(*WORDS, "-o", "model.fifo")
    thread.join(20)
    assert code == 0, err
    (files / "got.krein").write_bytes(found[0])
    assert library.load(files / "got.krein").predict(["house"]) == ["en"]


def test_an_open_descriptor_is_written_to(files, model, run):
    reader, writer = os.pipe()
    try:
        code, _, err = run("predict", "m.krein", "-o", f"/dev/fd/{writer}", input="house\n")
        assert code == 0, err
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read().startswith(b"name,label")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link_and_its_file_is_written(files, model, run, there):
    (files / "sub").mkdir()
    target = files / "sub" / "rows.csv"
    if there:
        target.write_text("old")
    link = files / "link.csv"
    link.symlink_to(target)
    code, _, err = run("predict", "m.krein", "-o", "link.csv", input="house\n")
    assert code == 0, err
    assert link.is_symlink()
    assert target.read_text().startswith("name,label")


def test_a_file_name_may_have_the_maximum_length(files, model, run):
    name = "n" * 251 + ".csv"
    code, _, err = run("predict", "m.krein", "-o", name, input="house\n")
    assert code == 0, err
    assert (files / name).exists()


@pytest.mark.parametrize("link", [True, False])
def test_no_command_overwrites_its_input(files, model, run, link):
    (files / "y.txt").write_text("".join(f"{'en' if i % 4 < 2 else 'de'}\n" for i in range(40)))
    (files / "y.csv").write_text("".join(f"{i},{i % 2},x\n" for i in range(40)))

    def named(path):
        if not link:
            return path
        (files / f"to-{path}").unlink(missing_ok=True)
        (files / f"to-{path}").symlink_to(files / path)
        return f"to-{path}"

    data = ("words.csv", "--objects", "word")
    calls = [
        (("predict", "m.krein", "-o"), "m.krein"),
        (("predict", "m.krein", "words.csv", "--objects", "word", "-o"), "words.csv"),
        (("fit", *data, "--labels", "language", "--force", "-o"), "words.csv"),
        (("fit", *data, "--labels", "y.txt", "--force", "-o"), "y.txt"),
        (("fit", *data, "--labels", "y.csv:0", "--force", "-o"), "y.csv"),
        (("landmarks", *data, "-o"), "words.csv"),
        (("landmarks", *data, "--labels", "y.txt", "-o"), "y.txt"),
        (("evaluate", *data, "--labels", "language", "--report"), "words.csv"),
        (("evaluate", *data, "--labels", "y.txt", "--report"), "y.txt"),
    ]
    for args, target in calls:
        before = (files / target).read_bytes()
        code, _, err = run(*args, named(target), input="house\n")
        assert (code, "is an input and would be overwritten" in err) == (2, True), (args, err)
        assert (files / target).read_bytes() == before
