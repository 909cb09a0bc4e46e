"""`krein predict` on reads of an amplicon: copies, sizes in names, proteins among DNA."""

import csv
import io

import numpy as np
import pytest
from click.testing import CliRunner

from krein.cli import krein
from krein.cli.predictor import KeptAnswers, Predictor

from .conftest import family, write_fasta


@pytest.fixture(scope="module")
def genes(tmp_path_factory):
    """A model of three genes, and the new sequences of each."""
    folder = tmp_path_factory.mktemp("genes")
    rng = np.random.default_rng(3)
    rows = {}
    for c in ("rpoB", "recA", "gyrB"):
        ancestor = "".join(rng.choice(list("ACGT"), 120))
        rows[c] = [(f"{c}{i}", c, s) for i, s in enumerate(family(rng, ancestor, 50, "ACGT"))]
    write_fasta(folder / "known.fasta", [row for each in rows.values() for row in each[:40]])
    args = ["fit", folder / "known.fasta", "--label-pattern", r"family=(\S+)"]
    args += ["-o", folder / "m.krein"]
    result = CliRunner().invoke(krein, [str(one) for one in args])
    assert result.exit_code == 0, result.output
    return folder / "m.krein", [row for each in rows.values() for row in each[40:]]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_copies_are_compared_once(genes, run, tmp_path, monkeypatch):
    model, new = genes
    copies = [(f"{k}_{name}", c, s) for k in range(100) for name, c, s in new]
    write_fasta(tmp_path / "copies.fasta", copies)  # in two chunks
    write_fasta(tmp_path / "new.fasta", new)
    compared = []
    predict = Predictor._predict

    def counted(self, objects, until):
        compared.extend(objects)
        return predict(self, objects, until)

    monkeypatch.setattr(Predictor, "_predict", counted)
    once = table(run("predict", model, tmp_path / "new.fasta")[1])
    assert len(compared) == len(new)
    compared.clear()
    rows = table(run("predict", model, tmp_path / "copies.fasta")[1])
    assert len(rows) == 100 * len(new)
    assert len(compared) == len({s for _, _, s in new})
    for k, row in enumerate(rows):
        assert row == once[k % len(new)] | {"name": copies[k][0]}


def test_answers_kept_for_copies_take_a_bounded_amount_of_memory(genes, run, tmp_path, monkeypatch):
    """The sequences themselves count, and forgetting an answer does not change the next one."""
    model, new = genes
    write_fasta(tmp_path / "new.fasta", new + new)
    usual = run("predict", model, tmp_path / "new.fasta")[1]
    limit, kept = 1_000, []
    monkeypatch.setattr("krein.cli.predictor.ANSWER_BYTES", limit)
    add = KeptAnswers.add

    def watched(self, answers):
        add(self, answers)
        kept.append(len(self))
        total = sum(len(one) + self.itemsize for one in self._answers)
        assert total == self.bytes <= limit

    monkeypatch.setattr(KeptAnswers, "add", watched)
    assert run("predict", model, tmp_path / "new.fasta")[1] == usual
    assert 0 < kept[-1] < len(new)


def test_each_unreadable_copy_names_its_own_line(genes, run, tmp_path):
    model, new = genes
    odd = [("a", "-", "-.-"), ("b", "-", new[0][2]), ("c", "-", "-.-")]
    write_fasta(tmp_path / "odd.fasta", odd)
    rows = table(run("predict", model, tmp_path / "odd.fasta")[1])
    assert [row["status"] == "unreadable" for row in rows] == [True, False, True]
    assert ["line 1" in rows[0]["reason"], "line 5" in rows[2]["reason"]] == [True, True]


def test_names_state_how_many_reads_there_are(genes, run, tmp_path):
    model, new = genes
    sized = [(f"{name};size={k + 1}", c, s) for k, (name, c, s) in enumerate(new)]
    write_fasta(tmp_path / "sized.fasta", sized)
    total = len(new) * (len(new) + 1) // 2
    report, output = tmp_path / "k.txt", tmp_path / "o.csv"
    for options, n in (((), len(new)), (("--sizein",), total)):
        given = (tmp_path / "sized.fasta", "-o", output, "--kraken-report", report, *options)
        code, _, err = run("predict", model, *given)
        assert code == 0, err
        assert f" of {n:,} objects" in err
        lines = [line.split("\t") for line in report.read_text().splitlines()]
        assert sum(int(line[2]) for line in lines) == n


def test_proteins_are_not_compared_as_dna(genes, run, tmp_path):
    model, new = genes
    rng = np.random.default_rng(0)
    protein = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 100))
    rows = [("protein", "-", protein), new[0], ("codes", "-", new[1][2][:-6] + "RYKMSW")]
    write_fasta(tmp_path / "mixed.fasta", rows)
    code, out, err = run("predict", model, tmp_path / "mixed.fasta")
    assert code == 0
    first, *others = table(out)
    assert (first["status"], first["label"]) == ("novel", "")
    assert first["reason"] == "of another kind: letters of proteins"
    assert "letters of proteins" in err
    assert {row["status"] for row in others} == {"known"}


def test_a_model_after_the_data_is_recognised(genes, run, tmp_path):
    model, new = genes
    write_fasta(tmp_path / "new.fasta", new)
    code, _, err = run("predict", tmp_path / "new.fasta", model)
    assert (code, "MODEL comes before NEW" in err) == (2, True)


def test_several_files_are_read_as_one(genes, run, tmp_path):
    model, new = genes
    write_fasta(tmp_path / "a.fasta", new[:3])
    code, _, err = run("predict", model, tmp_path / "a.fasta", "b.fasta", "c.fasta")
    assert code == 2
    assert f"cat {tmp_path / 'a.fasta'} b.fasta c.fasta | krein predict {model} -" in err


def test_names_that_occur_again_are_mentioned(genes, run, tmp_path):
    model, new = genes
    write_fasta(tmp_path / "new.fasta", [*new, new[0], new[0]])
    code, out, err = run("predict", model, tmp_path / "new.fasta")
    assert code == 0
    assert f"2 rows have the same name as an earlier one, such as '{new[0][0]}'" in err
    assert len(table(out)) == len(new) + 2
