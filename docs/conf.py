"""Configuration of the site (`make docs`). Neither the build nor the pages fetch anything."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import krein  # noqa: E402 - the source next to these pages, not an installed copy

project = "krein"
author = "the krein developers"
copyright = "the krein developers, BSD 3-Clause"
version = release = krein.__version__

extensions = [
    "benchmarks_page",
    "drawings",
    "gallery_pictures",
    "mathml",
    "measures_table",
    "myst_parser",
    "notebooks",
    "numpydoc",
    "offline",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "auto_examples/**/*.ipynb",
    "auto_examples/**/*.py",
    "scale.md",  # included by generated/scale, which exists even without it
    "promises.md",  # included by generated/promises
]
templates_path = ["_templates"]
nitpicky = True
# single backticks in docstrings mark code; only names that begin with krein. must resolve
default_role = "py:obj"
nitpick_ignore_regex = [(r"py:.*", r"(?!krein\.[\w.]+$).*")]
suppress_warnings = ["config.cache"]  # the gallery's options contain classes

# -- text ------------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
smartquotes = False

# -- reference -------------------------------------------------------------------------------
# listed explicitly, because autosummary's own search misses pages added since the last build
autosummary_generate = [str(path) for path in sorted((HERE / "reference").glob("*.md"))]
LISTED, module = set(), ""
for path in map(Path, autosummary_generate):
    for line in path.read_text("utf-8").splitlines():
        if "currentmodule::" in line:
            module = line.split()[-1]
        elif line.startswith("   "):
            LISTED.add(f"{module}.{line.strip()}.rst")
for page in (HERE / "reference" / "generated").glob("*.rst"):
    if page.name not in LISTED:  # of a name that was moved or removed since the last build
        page.unlink()
autosummary_imported_members = False
autodoc_typehints = "none"  # the docstrings describe the parameters in words
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"  # "fit()" is short enough for the sidebar

# -- gallery ---------------------------------------------------------------------------------
warnings.filterwarnings("error", category=DeprecationWarning, module="krein")
GALLERY, PAGES = HERE.parent / "examples" / "gallery", HERE / "auto_examples"
for page in PAGES.rglob("plot_*.rst"):  # of a script that was renamed since the last build
    if not (GALLERY / page.relative_to(PAGES)).with_suffix(".py").exists():
        page.unlink()
sphinx_gallery_conf = {
    "examples_dirs": str(GALLERY),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "subsection_order": ExplicitOrder(["../examples/gallery/theory"]),
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,  # a page should not change because a machine was busy
    "write_computation_times": False,  # and no page should list times
    "show_memory": False,
    "matplotlib_animations": False,
    "reference_url": {},
    "plot_gallery": "True",
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (480, 336),
    "parallel": False,
}

# -- pages -----------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "krein"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["krein.css"]
html_show_sourcelink = False
html_copy_source = False
html_favicon = "_static/mark.svg"
html_theme_options = {
    "logo": {"text": "krein", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button-field"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "theory": [], "changelog": []}


def skip_inherited(app, what, name, obj, skip, options):
    """Skip members that scikit-learn documents: parameters, metadata routing, output."""
    return skip or (getattr(obj, "__module__", None) or "").startswith("sklearn.")


def plain_marks(app, what, name, obj, options, lines):
    """Escape |λ| and landmarks_ in docstrings, outside code, so they are not read as markup."""
    in_code = False
    for i, line in enumerate(lines):
        in_code = line.strip().startswith(">>>") or (in_code and bool(line.strip()))
        if in_code or line.strip().startswith(".. "):
            continue
        parts = re.split(r"(`[^`]*`)", line)
        parts[::2] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", p.replace("|", r"\|")) for p in parts[::2]]
        lines[i] = "".join(parts)


def shown_commands(app, context, lines):
    """Show the examples in a command's help as code, which keeps their backslashes."""
    shown = []
    for line in lines:
        example = line.startswith("| ")
        if example and not (shown and shown[-1].startswith("   ")):
            shown += [".. code-block:: sh", ""]
        shown.append(f"   {line[2:].strip()}" if example else line)
    lines[:] = shown


def plain_backslashes(app, context, lines):
    """Escape backslashes in the help of options."""
    lines[:] = [line.replace("\\", "\\\\") for line in lines]


def only_named_arguments(app, ctx, lines):
    """Leave out the argument without a name, which only catches further files for an error."""
    while ".. option:: " in lines:
        start = lines.index(".. option:: ")
        stop = next((i for i in range(start + 1, len(lines)) if lines[i][:2] == ".."), len(lines))
        del lines[start:stop]


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", plain_marks, priority=900)  # after numpydoc
    app.connect("sphinx-click-process-description", shown_commands)
    app.connect("sphinx-click-process-options", plain_backslashes)
    app.connect("sphinx-click-process-arguments", only_named_arguments)
    app.connect("autodoc-skip-member", skip_inherited)
