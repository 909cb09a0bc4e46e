"""The group of commands. Each is imported when it is called, and an error is one line.

Exit codes: 0 for success, 1 for an error in the data, 2 for an error in how the command was called,
129, 130 and 143 after SIGHUP, Ctrl-C and SIGTERM, 141 if the reader of the output has closed it.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from ..version import __version__
from ..wording import options_for_parameters
from .messages import message_of, one_line
from .options import OPTIONS_FOR_PARAMETERS

_COMMANDS = {
    "inspect": "Describe a file: objects, classes, how indefinite; with advice.",
    "fit": "Fit a model to labelled objects.",
    "predict": "Label new objects, with probabilities.",
    "explain": "Explain why objects got their labels, on a page.",
    "serve": "Serve predictions over HTTP, with a page to try it.",
    "evaluate": "Cross-validate models, and write a report.",
    "landmarks": "Choose landmarks and list them.",
    "demo": "Evaluate digits under tangent distance, with a report.",
}

_debug = False
_stopped: int | None = None
_typed: list[str] = []


def command_line() -> str:
    """Return the command as the user typed it."""
    return shlex.join(["krein", *_typed])


def krein_command(name: str) -> Any:
    """Return a decorator that turns a function into a command, with the option `--debug`."""

    def decorate(function: Any) -> click.Command:
        help = "Show the traceback of an error."
        debug = click.option(
            "--debug", is_flag=True, expose_value=False, callback=_set_debug, help=help
        )
        made: click.Command = click.command(
            name, short_help=_COMMANDS[name], context_settings={"show_default": True}
        )(function)
        return debug(made)

    return decorate


def _set_debug(context: click.Context, option: click.Parameter, value: bool) -> None:
    global _debug
    _debug = _debug or value


class Group(click.Group):
    """Commands by name, and the handling of their errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they are usually run."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f".commands.{cmd_name}", __package__)
        found: click.Command = module.command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Call a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would treat it as a failure
            sys.exit(_let_go_of_output())

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and exit with its code."""
        global _debug, _stopped, _typed
        _debug, _stopped = False, None
        given = args[0] if args else extra.get("args")
        _typed = list(sys.argv[1:] if given is None else given)
        extra["standalone_mode"] = False
        spelling = dict(OPTIONS_FOR_PARAMETERS)
        if {"predict", "explain", "serve"} & set(_typed[:2]):  # the measure is part of the model
            spelling["measure_params"] = "krein fit --measure-param"
        _open_stderr()
        with options_for_parameters(spelling), _watched_signals(), warnings.catch_warnings():
            warnings.showwarning = _warn
            sys.exit(self._run(*args, **extra))

    def _run(self, *args: Any, **extra: Any) -> int:
        if sys.stdout is None:
            _say("error: standard output is closed")
            return 1
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
        except click.ClickException as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # older versions of click have none
                click.echo(error.format_message())
                return 0
            _say(f"error: {error.format_message()}")
            context = getattr(error, "ctx", None)
            if context is not None:
                click.echo(f"{context.command_path} --help shows all options", err=True)
            return error.exit_code
        except BrokenPipeError:
            return _let_go_of_output()
        except MemoryError:
            return self._failed(ValueError("not enough memory"))
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> int:
        if _stopped is not None:  # the interrupted code may have failed in its own way
            return _stopped
        if _debug:
            raise error
        _say(f"error: {message_of(error)}")
        return 1


def _open_stderr() -> None:
    """Discard messages if standard error is closed; no file that is opened gets its number."""
    if sys.stderr is None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != 2:
            os.dup2(nowhere, 2)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _say(text: str) -> None:
    click.echo(f"krein: {one_line(text)}", err=True)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")


@contextmanager
def _watched_signals() -> Iterator[None]:
    """Exit on Ctrl-C, SIGTERM and SIGHUP through an exception, so half-written files are removed.

    SIGHUP stays ignored if it is, as by `nohup`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watched = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(getattr(signal, "SIGHUP", signal.SIGTERM)) != signal.SIG_IGN:
        watched.append(getattr(signal, "SIGHUP", signal.SIGTERM))  # Windows has none
    before = {n: signal.signal(n, _terminate) for n in watched}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number: int, frame: FrameType | None) -> None:
    global _stopped
    _say("stopped")
    _stopped = 128 + number
    raise SystemExit(_stopped)


def _let_go_of_output() -> int:
    """Discard what Python still writes at exit; return the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + getattr(signal, "SIGPIPE", 13)  # Windows has no such signal


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="krein", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, callback=_set_debug, hidden=True)
def krein() -> None:
    """Classify objects by any similarity or distance, with probabilities.

    krein takes sequences, strings, time series, vectors, or a matrix of similarities or distances.
    It compares objects with a few landmarks, and gives labels, probabilities and a report.

    \b
      krein demo
      krein inspect families.fasta --label-pattern 'family=(\\S+)'
      krein evaluate families.fasta --label-pattern 'family=(\\S+)' --report report.html
      krein fit families.fasta --label-pattern 'family=(\\S+)' -o model.krein
      krein predict model.krein new.fasta -o labels.csv
      krein explain model.krein new.fasta -o why.html
    """
