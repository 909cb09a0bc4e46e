"""Write the table of the README, from `docs/results`; a part of `make keep-results`."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
START, END = "<!-- table: docs/readme_table.py -->\n", "<!-- end -->"

UNTOUCHED = {
    "splice junctions": "3,186 splice junctions, Smith-Waterman",
    "promoters": "106 promoters, Smith-Waterman",
    "satellite": "6,435 satellite patches, Euclidean distance",
    "spoken digits": "3,000 spoken digits, DTW",
}
TUNED = {
    "digits": "1,797 digits, tangent distance",
    "peptides": "1,000 peptides, Smith-Waterman",
    "uwave": "896 gestures, DTW",
    "Swiss-Prot, 2,500": "2,500 proteins, Smith-Waterman",
    "MNIST, 2,000": "2,000 MNIST digits, tangent distance",
    "sonatas": "262 sonata movements, compression",
    "aural sonar": "100 sonar echoes, human ratings",
}
WITHOUT_FEATURES = ("satellite", "aural sonar")
SIMPLE = ("features alone", "logistic regression, same columns")
NEIGHBOURS = ("1-NN, all pairs", "5-NN, all pairs")


class Figures(NamedTuple):
    """Accuracy and its standard error in %, log-loss, comparisons per prediction, the target."""

    accuracy: float
    error: float
    loss: float
    comparisons: int
    target: str

    def __str__(self) -> str:
        accuracy, loss = f"{self.accuracy:.1f} ± {self.error:.1f} %", f"/ {self.loss:.3f}"
        space = "\N{NO-BREAK SPACE}"  # a narrow column breaks before the log-loss only
        return f"{accuracy.replace(' ', space)} {loss.replace(' ', space)}"


def better(methods: dict[str, Figures], names: tuple[str, ...]) -> Figures:
    """Return the better accuracy and the better log-loss of some methods."""
    given = [methods[name] for name in names if name in methods]
    return max(given)._replace(loss=min(one.loss for one in given))


def figures(name: str) -> dict[str, dict[str, Figures]]:
    """Return the figures of a benchmark by data set and method."""
    path = ROOT / "docs" / "results" / f"{name}.json"
    found: dict[str, dict[str, Figures]] = {}
    for row in json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []:
        told = re.match(r"± ([\d.]+), log-loss ([\d.]+), (\d+) comparisons", row["detail"])
        data, _, method = row["name"].partition(": ")
        if told and not math.isnan(row["value"]):
            one = Figures(row["value"], float(told[1]), float(told[2]), int(told[3]), row["target"])
            found.setdefault(data, {})[method] = one
    return found


def table() -> str:
    """Return the table, with the sets first that no choice was made with, and what pooling adds."""
    rows = [
        "| data set; accuracy / log-loss | krein | its comparisons | features or landmarks alone "
        "| nearest neighbours | their comparisons |",
        "|---|---|---:|---|---|---:|",
    ]
    saved = []
    for heading, titles, name in (
        ("not used for any choice, run once", UNTOUCHED, "untouched"),
        ("used to choose krein's defaults", TUNED, "looks"),
    ):
        found = figures(name)
        rows += [f"| *{heading}* | | | | | |"] if found else []
        for data, title in titles.items():
            if data not in found:
                continue
            methods = found[data]
            krein, near = methods["KreinClassifier"], better(methods, NEIGHBOURS)
            simple: Figures | str = "not yet measured"
            if "features alone" in methods or data in WITHOUT_FEATURES:
                simple = better(methods, SIMPLE)
                saved.append(1 - krein.loss / simple.loss)
            if krein.target.startswith("published"):
                title += f" ({krein.target})"
            cells = (title, krein, krein.comparisons, simple, near, f"{near.comparisons:,}")
            rows.append("| " + " | ".join(map(str, cells)) + " |")
    if not any("not yet measured" in row for row in rows):
        share = f"{100 * median(saved):.0f} % (median of {len(saved)} sets)"
        alone = "Compared with *features or landmarks alone*"
        rows += ["", f"{alone}, pooling lowers the log-loss by {share}."]
    return "\n".join([*rows, ""])


def main() -> None:
    """Replace the table in the README."""
    path = ROOT / "README.md"
    text = path.read_text("utf-8")
    before, _, rest = text.partition(START)
    path.write_text(f"{before}{START}{table()}{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
