"""The command as a shell sees it: help, pipes, signals."""

import gzip
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import click
import numpy as np
import pytest

from krein.cli.group import _COMMANDS, Group, krein

from .conftest import SOURCE


def modules_after(line):
    code = (
        f"import sys; sys.argv = {['krein', *line.split()]!r}\n"
        "from krein.cli import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE)},
    )
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("line", ["--help", "--version"])
def test_help_imports_nothing_heavy(line):
    heavy = {"sklearn", "scipy", "numpy", "numba", "matplotlib", "pandas", "rich", "pyarrow"}
    assert not modules_after(line) & heavy


def test_each_file_among_the_commands_is_one():
    files = SOURCE.glob("krein/cli/commands/*.py")
    assert {file.stem for file in files} == {"__init__", *_COMMANDS}


def test_help_of_a_command_imports_no_estimator():
    assert not modules_after("fit --help") & {"sklearn", "numba", "matplotlib", "pyarrow"}


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "inspect"])
def test_the_help_shows_how_to_choose_a_range_of_columns(command, run, files):
    code, out, _ = run(command, "--help")
    assert code == 0
    example = re.search(r"a range of numbers such as (\S+)\.", " ".join(out.split()))
    assert example[1] == "3-10"


def test_without_a_command_there_is_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "krein demo" in out


def examples(name):
    command = krein.get_command(None, name)
    return re.findall(r"^ {2,}((?:zcat .*\| )?krein .+)$", command.help, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(_COMMANDS) - {"demo", "serve"}))  # tested separately
def test_the_examples_of_help_work(name, run, fit, shell, files):
    if name in ("predict", "inspect", "explain"):
        fit("families.fasta", "--label-pattern", r"family=(\w+)", "-o", "model.krein")
        (files / "new.fasta.gz").write_bytes(gzip.compress((files / "new.fasta").read_bytes()))
    for line in examples(name):
        line = line.replace(" --cluster local", "")  # tests/data/test_commands.py starts one
        if name == "evaluate" and "--folds" not in line and "--test" not in line:
            line += " --folds 3"  # ten folds take three times as long
        if name == "predict" and "--queries" in line:
            how = ["--hits", "--labels", "taxonomy.tsv", "-o", "model.krein", "--force"]
            assert run("fit", "refs-vs-refs.tsv", *how)[0] == 0
        if "|" in line:
            done = shell(line, files)
            code, err = done.returncode, done.stderr
        else:
            code, _, err = run(*shlex.split(line.partition(" > ")[0])[1:])
        assert code == 0, (line, err)
        if name == "fit":
            (files / "model.krein").unlink()


def test_every_command_has_an_example():
    for name in _COMMANDS:
        assert examples(name), name


def test_a_closed_pipe_is_not_an_error(fit, shell, files):
    fit("words.csv", "--labels", "language", "-o", "m.krein")
    (files / "many.txt").write_text("house\n" * 50_000)
    done = shell("krein predict m.krein many.txt | head -2; echo ${PIPESTATUS[0]}", files)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("name,label")
    assert lines[-1] == "141"


def slow_strings(folder):
    """Write strings whose fit takes some seconds; return its arguments."""
    rng = np.random.default_rng(0)
    with open(folder / "slow.csv", "w") as file:
        file.write("text,class\n")
        for i in range(600):
            text = "".join(rng.choice(list("abcd"), 80))
            file.write(f"{text},{'xy'[i % 2]}\n")
    return ["fit", "slow.csv", "--model", "ikfd", "--measure", "damerau", "--jobs", "1",
            "--landmarks", "kmeans", "--n-landmarks", "40", "--cache", "cache",
            "-o", "model.krein"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_an_interrupted_fit_resumes_where_it_stopped(tmp_path, environment, number, code):
    command = [sys.executable, "-m", "krein", *slow_strings(tmp_path)]
    first = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    blocks = tmp_path / "cache" / "blocks"
    deadline = time.monotonic() + 60
    while len(list(blocks.glob("*.npy"))) < 2 and time.monotonic() < deadline:
        assert first.poll() is None, first.stderr.read()
        time.sleep(0.01)
    first.send_signal(number)
    _, err = first.communicate(timeout=60)
    assert first.returncode == code
    assert err == ("" if number == signal.SIGKILL else "krein: stopped\n")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("model")]
    if number == signal.SIGINT:
        return  # the cache is the same as for the other signals
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    reused, total = re.search(r"reused ([\d,]+) of ([\d,]+) comparisons", done.stdout).groups()
    assert 0 < int(reused.replace(",", "")) < int(total.replace(",", ""))
    assert (tmp_path / "model.krein").exists()
    assert not list(blocks.glob(".writing-*"))


def test_an_error_caused_by_a_signal_is_reported_as_stopped(monkeypatch, capsys):
    """A library may turn the exit caused by a signal into an error of its own."""

    @click.command()
    def wrapped():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except SystemExit as stopped:
            raise RuntimeError("generator didn't stop") from stopped

    monkeypatch.setattr(Group, "get_command", lambda self, ctx, name: wrapped)
    with pytest.raises(SystemExit) as ended:
        krein.main(["fit"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "krein: stopped\n"
