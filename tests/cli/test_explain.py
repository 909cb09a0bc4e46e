"""`krein explain`: a page that explains the predictions for new objects."""

import numpy as np
import pytest
from click.testing import CliRunner

from krein.cli import krein

from .conftest import family, write_fasta


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    rows = []
    for c in ("globin", "kinase"):
        ancestor = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 60))
        rows += [(f"{c}{i}", c, s) for i, s in enumerate(family(rng, ancestor, 40))]
    write_fasta(folder / "known.fasta", rows[:35] + rows[40:75])
    write_fasta(folder / "new.fasta", rows[35:40] + rows[75:])
    args = ["fit", str(folder / "known.fasta"), "--label-pattern", r"family=(\S+)"]
    for model, more in (("krein", []), ("ikfd", ["--no-calibrate"])):
        result = CliRunner().invoke(
            krein, [*args, "--model", model, *more, "-o", str(folder / f"{model}.krein")]
        )
        assert result.exit_code == 0, result.output
    return folder


def test_a_page_with_alignments(world, run, tmp_path):
    target = tmp_path / "why.html"
    code, out, err = run(
        "explain", world / "krein.krein", world / "new.fasta", "-o", target, "--nearest", "2"
    )
    assert (code, err) == (0, "")
    assert "10 objects" in out
    text = target.read_text("utf-8")
    assert text.count('<section id="o') == 10
    assert text.count('<details class="near"') == 20
    assert "globin35" in text
    assert "Identity" in text
    assert text.count("The object's own features</h3>") == 10
    assert '<mark class="for s4">' in text
    assert "krein explain" in text


def test_the_limit_says_how_many_are_left_out(world, run, tmp_path):
    target = tmp_path / "why.html"
    code, out, _ = run(
        "explain", world / "krein.krein", world / "new.fasta", "-o", target, "--max", "3"
    )
    assert code == 0
    assert "3 objects, the first of 10" in out
    assert "7 more objects are not on this page" in target.read_text("utf-8")


def test_unreadable_objects_have_their_reason(world, run, tmp_path):
    target, new = tmp_path / "why.html", tmp_path / "new.fasta"
    new.write_text((world / "new.fasta").read_text() + ">digits\nMK1\n")
    code, _, _ = run("explain", world / "krein.krein", new, "-o", target)
    assert code == 0
    text = target.read_text("utf-8")
    assert "contains &#39;1&#39; at position 3" in text
    new.write_text(">digits\nMK1\n")
    before = target.read_bytes()
    code, _, err = run("explain", world / "krein.krein", new, "-o", target)
    assert code == 1
    assert "contains '1' at position 3" in err
    assert target.read_bytes() == before


def test_a_model_without_evidence_is_refused(world, run, tmp_path):
    code, _, err = run(
        "explain", world / "ikfd.krein", world / "new.fasta", "-o", tmp_path / "why.html"
    )
    assert code == 1
    assert "evidence needs a model with held-out scores" in err
    assert not (tmp_path / "why.html").exists()


def test_the_model_is_not_written_over(world, run):
    model = world / "krein.krein"
    code, _, err = run("explain", model, world / "new.fasta", "-o", model)
    assert code == 2
    assert "is an input and would be overwritten" in err
