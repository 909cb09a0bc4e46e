"""The command `krein`: files in, probabilities and a report out. One file per command."""

from .group import krein


def main() -> None:
    """Run the command."""
    krein(prog_name="krein")


__all__ = ["krein", "main"]
