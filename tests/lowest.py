"""Print the lowest supported version of every dependency, as constraints for pip.

`make test-lowest` installs these; `pyproject.toml` is the only place that states them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOOLS = {"docs", "dev"}
"""Extras that build and test krein; users do not depend on their lowest versions."""


def lowest(pyproject: str) -> list[str]:
    """Return `name==version` for each dependency of the package and of its extras.

    A condition such as `python_version < '3.14'` is kept.
    """
    project = tomllib.loads(pyproject)["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for extra in sorted(set(extras) - TOOLS):
        wanted += extras[extra]
    pins = set()
    for requirement in wanted:
        if requirement.startswith("krein["):
            continue
        found = re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)(; .+)?", requirement)
        if found is None:
            raise ValueError(f"{requirement!r} does not state a lowest version as name>=version")
        pins.add(f"{found[1]}=={found[2]}{found[3] or ''}")
    return sorted(pins)


if __name__ == "__main__":
    root = Path(__file__).parents[1]
    print(*lowest((root / "pyproject.toml").read_text("utf-8")), sep="\n")
