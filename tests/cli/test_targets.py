"""Output files: inputs are never overwritten, and pipes and links never replaced."""

import contextlib
import csv
import os
import stat
import subprocess
import sys
import threading

import pytest

import krein as library

WORDS = ("fit", "words.csv", "--objects", "word", "--labels", "language")


@pytest.fixture
def model(files, fit):
    fit(*WORDS[1:], "-o", "m.krein")
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


@pytest.mark.parametrize("there", [True, False])
def test_no_two_outputs_are_the_same_file(files, model, run, shell, there):
    (files / "sub").mkdir()
    if there:
        (files / "same.fasta").write_text("old")
    (files / "link.fasta").symlink_to("same.fasta")
    predict = ("predict", "m.krein", "new.fasta")
    calls = [
        ("--classified-out", "same.fasta", "--unclassified-out", "same.fasta"),
        ("--classified-out", "same.fasta", "--unclassified-out", "sub/../same.fasta"),
        ("--classified-out", "link.fasta", "--unclassified-out", "same.fasta"),
        ("-o", "same.fasta", "--unclassified-out", "same.fasta"),
        ("-o", "same.fasta", "--kraken-report", "./same.fasta"),
        ("--kraken-report", "same.fasta", "--classified-out", "same.fasta"),
    ]
    for args in calls:
        code, _, err = run(*predict, *args)
        assert (code, "is named for two outputs" in err) == (2, True), (args, err)
        assert (files / "same.fasta").exists() == there
    done = shell("krein predict m.krein new.fasta --classified-out out.fasta > out.fasta", files)
    assert done.returncode == 2
    assert "is named for two outputs" in done.stderr
    code, _, err = run(*predict, "-o", os.devnull, "--kraken-report", os.devnull)
    assert code == 0, err


@contextlib.contextmanager
def small_files():
    """Limit the size of files that this process writes; skip the test where that is impossible."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# numpy 1.26 leaves the archive open when the disk is full
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_names_the_file(files, model, run, environment):
    """The size of files is limited, which fails as a full disk does: while writing."""
    (files / "many.txt").write_text("house\n" * 400)
    for command in (
        ("predict", "m.krein", "many.txt", "-o", "rows.csv"),
        ("predict", "m.krein", "many.txt", "-o", "rows.csv.gz", "--evidence", "9"),
        ("predict", "m.krein", "many.txt", "-o", os.devnull, "--unclassified-out", "rows.csv"),
        (*WORDS, "-o", "rows.krein"),
    ):
        named = next(word for word in command if word.startswith("rows"))
        if named.endswith(".gz"):
            words = "".join(f"{i * 7919**3 % 2**40:x}\n" for i in range(1000))
            (files / "many.txt").write_text(words)
        with small_files():
            code, _, err = run(*command)
        *warned, told = err.splitlines()
        assert told == f"krein: error: {named}: File too large"
        assert all(line.startswith("krein: warning: only 28 objects") for line in warned)
        assert code == 1
        assert not list(files.glob("*rows*"))
        assert not list(files.glob(".krein-*"))
    if os.path.exists("/dev/full"):
        _, _, err = run("predict", "m.krein", "many.txt", "-o", "/dev/full")
        assert err == "krein: error: /dev/full: No space left on device\n"
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "krein", "predict", "m.krein", "many.txt"],
                env=environment, cwd=files, stdout=full, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        assert done.stderr == "krein: error: standard output: No space left on device\n"


def test_cells_that_look_like_formulas_can_be_escaped(files, model, run):
    names = ["=1+2", "+cmd|'x'!A0", "-1+1", "@SUM(A1)", "\tx", "-1.5", "plain", "'=1"]
    rows = "".join(f'"{name}",house\n' for name in names)
    (files / "new.csv").write_text("id,word\n" + rows)
    predict = ("predict", "m.krein", "new.csv", "--names", "id", "--objects", "word")
    found = {}
    for option in ((), ("--escape-formulas",)):
        code, out, err = run(*predict, *option)
        assert code == 0, err
        found[option] = [row["name"] for row in csv.DictReader(out.splitlines())]
    stripped = [name.strip() for name in names]
    assert found[()] == stripped
    assert found[("--escape-formulas",)] == [
        "'=1+2", "'+cmd|'x'!A0", "'-1+1", "'@SUM(A1)", "x", "-1.5", "plain", "'=1"
    ]  # fmt: skip


def test_an_enlarged_table_is_escaped_as_rows_are(files, model, run):
    (files / "new.csv").write_text('word,=note\nhaus,=1+2\nhouse,-1.5\nmaus,"@a\rb"\n')
    command = ("predict", "m.krein", "new.csv", "--objects", "word", "-o", "out.csv")
    found = {}
    for option in ((), ("--escape-formulas",)):
        code, _, err = run(*command, "--table-out", "more.csv", *option)
        assert code == 0, err
        with open(files / "more.csv", newline="", encoding="utf-8") as file:
            rows = [row[1] for row in csv.reader(file)]
        found[option] = rows
    assert found[()] == ["=note", "=1+2", "-1.5", "@a\rb"]
    assert found[("--escape-formulas",)] == ["'=note", "'=1+2", "-1.5", "'@a\rb"]


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_files_that_are_replaced_keep_their_permissions(mode, files, model, run):
    (files / "new.txt").write_text("house\nhaus\n")
    rows = ("predict", "m.krein", "new.txt")
    before = os.umask(0o022)
    try:
        for name, command in {
            "m2.krein": (*WORDS, "-o", "m2.krein", "--force"),
            "out.csv": (*rows, "-o", "out.csv"),
            "out.csv.gz": (*rows, "-o", "out.csv.gz"),
            "report.txt": (*rows, "-o", "out.csv", "--kraken-report", "report.txt"),
        }.items():
            (files / name).touch()
            os.chmod(files / name, mode)
            code, _, err = run(*command)
            assert code == 0, err
            assert (files / name).stat().st_size > 0
            assert stat.S_IMODE((files / name).stat().st_mode) == mode, name
        code, _, err = run(*rows, "-o", "another.csv")
        assert stat.S_IMODE((files / "another.csv").stat().st_mode) == 0o644
    finally:
        os.umask(before)


def test_a_dash_is_standard_output(files, model, run):
    (files / "new.txt").write_text("house\nhaus\n")
    _, expected, _ = run("predict", "m.krein", "new.txt")
    code, out, _ = run("predict", "m.krein", "new.txt", "-o", "-")
    assert (code, out) == (0, expected)
    for command in (WORDS, ("explain", "m.krein", "new.txt")):
        code, _, err = run(*command, "-o", "-")
        assert code == 2
        assert "only rows can be written to standard output" in err
    code, _, err = run("predict", "m.krein", "new.txt", "--evidence", "100000")
    assert code == 2  # three columns each
    assert "100000 is not in the range" in err
    assert not (files / "-").exists()


def test_rows_on_standard_output_are_utf_8_in_any_locale(files, environment):
    (files / "w.csv").write_text("w,label\n" + "haus,dé\nmaus,dé\nhouse,én\nmouse,én\n" * 3)
    names = ("--objects", "w", "--labels", "label")
    env = environment | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for command in (
        ("fit", "w.csv", *names, "-o", "w.krein"),
        ("predict", "w.krein", "w.csv", *names[:2]),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "krein", *command], env=env, cwd=files, capture_output=True
        )
        assert done.returncode == 0, done.stderr
    found = list(csv.DictReader(done.stdout.decode("utf-8").splitlines()))
    assert [row["label"] for row in found] == ["dé", "dé", "én", "én"] * 3


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_nothing_depends_on_standard_error(files, model, shell):
    (files / "new.txt").write_text("house\nhaus\n")
    for command, code in {
        "krein predict m.krein new.txt -o out.csv": 0,
        "krein fit words.csv --objects word --labels language -o again.krein": 0,
        "krein predict none.krein new.txt -o none.csv": 1,
    }.items():
        assert shell(f"{command} 2>&-", files).returncode == code
    assert (files / "out.csv").read_text().count("\n") == 3
    assert library.load(files / "again.krein").predict(["house"]) == ["en"]
