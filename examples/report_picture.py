"""Take the screenshot of the report in the guide: three models on digits under tangent distance.

The script evaluates the models on scikit-learn's digits, writes the report, opens it in Chromium,
moves the pointer to a misclassified object, and takes the screenshot.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from krein import PCVM, KreinClassifier
from krein.evaluation import evaluate
from krein.report import write_report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/images/report.png"))
    parser.add_argument("--objects", type=int, default=1797)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("the screenshot needs Chromium, which is not installed (Debian package: chromium)")

    digits = load_digits()
    images, labels = digits.images[: options.objects], digits.target[: options.objects]
    found = evaluate(
        images,
        labels,
        {
            "KreinClassifier": KreinClassifier("elm", random_state=0),
            "PCVM": PCVM("elm", random_state=0),
            "nearest neighbours": "knn",
        },
        measure="tangent",
        folds=5,
        names=[f"digit {i}" for i in range(len(labels))],
    )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        write_report(
            found,
            report,
            title="Handwritten digits by tangent distance",
            command="python examples/report_picture.py",
        )
        options.output.parent.mkdir(parents=True, exist_ok=True)
        wrong = np.flatnonzero(~found.best.right[found.map.objects])
        taken = picture(chromium, report, int(wrong[-1]) if len(wrong) else 0)
        # 256 colours are enough for a page, at less than half the size
        Image.open(io.BytesIO(taken)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            options.output, format="PNG", optimize=True
        )
    print(f"written to {options.output}")


def picture(chromium: str, report: Path, point: int) -> bytes:
    """Return a screenshot down to the end of the map, with the pointer on an object."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1180, "height": 1000}, color_scheme="light")
        page.goto(report.as_uri())
        end = page.locator("#map-section .keys").bounding_box()
        assert end is not None
        # tall enough that nothing scrolls and the model bar stays in place
        page.set_viewport_size({"width": 1180, "height": round(end["y"] + end["height"] + 14)})
        box = page.locator("#points circle").nth(point).bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        taken = page.screenshot()
        browser.close()
    return taken


if __name__ == "__main__":
    main()
