"""Properties of the package as a whole."""

import subprocess
import sys
from functools import cache

STEPS = (
    "import krein",
    "import krein.core.gaussian",
    "import krein.measures, krein.compare",
    "import krein.datasets",
    "from krein import IKFD; IKFD('elm')",
)


@cache
def all_imported():
    """What each step has imported, and those before it: one interpreter for all."""
    code = "import sys\n" + "".join(f"{step}\nprint(*sys.modules)\n" for step in STEPS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [{name.partition(".")[0] for name in line.split()} for line in done.stdout.splitlines()]


def imported_by(statement):
    return all_imported()[STEPS.index(statement)]


def test_importing_krein_stays_light():
    heavy = {"numba", "matplotlib", "click", "rich", "sklearn", "scipy", "pandas", "rapidfuzz"}
    assert not imported_by("import krein") & heavy


def test_importing_measures_and_comparisons_stays_light():
    heavy = {"numba", "rich", "click", "matplotlib", "pyopal", "rapidfuzz", "joblib"}
    assert not imported_by("import krein.measures, krein.compare") & heavy


def test_an_estimator_imports_no_optional_dependency():
    optional = {
        "dask",
        "distributed",
        "numba",
        "matplotlib",
        "click",
        "rapidfuzz",
        "pyopal",
        "jinja2",
        "dnaio",
    }
    assert not imported_by("from krein import IKFD; IKFD('elm')") & optional


def test_datasets_import_no_optional_dependency():
    optional = {"mlxtend", "modlamp", "scoring_matrices", "pyopal", "matplotlib"}
    assert not imported_by("import krein.datasets") & optional


def test_core_does_not_import_scikit_learn():
    assert "sklearn" not in imported_by("import krein.core.gaussian")


def test_public_parts_are_available_after_one_import():
    """Each in a fresh copy of krein, which is cheaper than a fresh interpreter."""
    names = (
        "reject.RejectingClassifier",
        "measures.available()",
        "landmarks.MEB",
        "compare.open_pairs",
        "datasets.make_checkerboard",
        "IKFD",
        "load",
    )
    code = f"""
import sys
for name in {names}:
    import krein
    eval(f"krein.{{name}}")
    for module in [m for m in sys.modules if m.partition(".")[0] == "krein"]:
        del sys.modules[module]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
