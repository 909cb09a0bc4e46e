"""T-cell receptors from files: AIRR rearrangements, tcrdist3, VDJdb and 10x."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from krein import load
from krein.cli import krein as krein_command
from krein.io import DataError, open_source
from krein.measures import get_measure

ALPHA, BETA = ("TRAV12-2*01", "CAVNFGGGKLIF"), ("TRBV6-5*01", "CASSYSFTEAFF")
OTHER_ALPHA, OTHER_BETA = ("TRAV24*01", "CAFTSNTGKLIF"), ("TRBV5-1*01", "CASRGDTFYEQYF")
BOTH = " ".join((*ALPHA, *BETA))
OTHER = " ".join((*OTHER_ALPHA, *OTHER_BETA))


@pytest.fixture
def write(tmp_path):
    def written(*rows, name="cells.tsv"):
        path = tmp_path / name
        sign = "," if name.endswith(".csv") else "\t"
        path.write_text("".join(sign.join(map(str, row)) + "\n" for row in rows))
        return path

    return written


def test_airr_rows_of_a_cell_are_one_receptor(write):
    path = write(
        ("sequence_id", "cell_id", "locus", "productive", "v_call", "junction_aa", "epitope"),
        ("s1", "c1", "TRB", "T", *BETA, "GIL"),
        ("s2", "c1", "TRA", "T", *ALPHA, "GIL"),
        ("s3", "c2", "TRA", "T", *OTHER_ALPHA, "NLV"),
        ("s4", "c2", "TRB", "T", *OTHER_BETA, "NLV"),
        ("s5", "c3", "TRB", "F", "TRBV9*01", "CASS*F", "NLV"),
    )
    source = open_source(path, labels="epitope")
    chunk = source.read()
    assert source.kind == "receptors"
    assert "chains joined by 'cell_id'" in source.understood
    assert (chunk.names, chunk.labels) == (["c1", "c2"], ["GIL", "NLV"])
    assert list(chunk.lines) == [2, 4]
    measure = get_measure("tcrdist")
    assert measure.check(chunk.objects) == [BOTH, OTHER]


def test_bulk_airr_rows_are_single_chains(write):
    path = write(
        ("sequence_id", "cell_id", "v_call", "junction_aa", "epitope"),
        ("s1", "", "TRBV6-5*01,TRBV6-6*01", "CASSYSFTEAFF", "GIL"),
        ("s2", "", "Homsap TRBV5-1*01 F", "CASRGDTFYEQYF", "NLV"),
    )
    chunk = open_source(path).read()
    assert chunk.objects == ["TRBV6-5*01 CASSYSFTEAFF", "TRBV5-1*01 CASRGDTFYEQYF"]


def test_10x_contigs_are_joined_and_the_strongest_chain_counts(write):
    weak = ("TRAV1-2*01", "CAVRDSNYQLIW")
    path = write(
        ("barcode", "contig_id", "chain", "v_gene", "cdr3", "productive", "reads", "umis"),
        ("AAA-1", "k1", "TRA", *weak, "True", 900, 2),
        ("AAA-1", "k2", "TRA", *ALPHA, "True", 500, 7),
        ("AAA-1", "k3", "TRB", *BETA, "True", 700, 5),
        ("AAA-1", "k4", "TRB", "None", "None", "False", 999, 99),
        ("CCC-1", "k5", "TRB", *OTHER_BETA, "True", 10, 1),
        name="filtered_contig_annotations.csv",
    )
    chunk = open_source(path).read()
    assert chunk.names == ["AAA-1", "CCC-1"]
    assert chunk.objects[0].split() in ([*ALPHA, *BETA], [*BETA, *ALPHA])
    assert chunk.objects[1] == " ".join(OTHER_BETA)


def test_vdjdb_tables_are_read_by_complex_and_with_both_chains_in_a_row(write):
    path = write(
        ("complex.id", "Gene", "CDR3", "V", "J", "Species", "Epitope"),
        (1, "TRA", ALPHA[1], ALPHA[0], "TRAJ1*01", "HomoSapiens", "GIL"),
        (1, "TRB", BETA[1], BETA[0], "TRBJ1*01", "HomoSapiens", "GIL"),
        (0, "TRB", OTHER_BETA[1], OTHER_BETA[0], "TRBJ1*01", "HomoSapiens", "NLV"),
        (0, "TRB", BETA[1], BETA[0], "TRBJ1*01", "HomoSapiens", "NLV"),
    )
    chunk = open_source(path, labels="Epitope").read()
    assert chunk.objects == [BOTH, " ".join(OTHER_BETA), " ".join(BETA)]
    assert chunk.labels == ["GIL", "NLV", "NLV"]
    full = write(
        ("cdr3.alpha", "v.alpha", "cdr3.beta", "v.beta", "antigen.epitope"),
        (ALPHA[1], ALPHA[0], BETA[1], BETA[0], "GIL"),
        ("", "", OTHER_BETA[1], OTHER_BETA[0], "NLV"),
        name="full.txt.tsv",
    )
    chunk = open_source(full, labels="antigen.epitope").read()
    assert chunk.objects == [BOTH, " ".join(OTHER_BETA)]
    assert chunk.labels == ["GIL", "NLV"]


def test_tcrdist3_tables_are_read(write):
    path = write(
        ("subject", "epitope", "v_a_gene", "cdr3_a_aa", "v_b_gene", "cdr3_b_aa", "count"),
        ("x", "GIL", *ALPHA, *BETA, 1),
        ("x", "NLV", *OTHER_ALPHA, *OTHER_BETA, 2),
        name="cells.csv",
    )
    chunk = open_source(path, labels="epitope").read()
    assert (chunk.objects, chunk.names) == ([BOTH, OTHER], ["0", "1"])


def copies(path):
    """Write a table of text also as JSON lines and as Parquet; return the paths of all three."""
    pytest.importorskip("pyarrow")
    table = pd.read_csv(path, sep="\t")
    lines, parquet = path.with_suffix(".jsonl"), path.with_suffix(".parquet")
    table.to_json(lines, orient="records", lines=True)
    table.astype({"v_call": "category"} if "v_call" in table else {}).to_parquet(parquet)
    return path, lines, parquet


CELLS = [
    ("cell_id", "locus", "productive", "v_call", "junction_aa", "umi_count", "epitope", "note"),
    ("c1", "TRB", True, *BETA, 3, "GIL", 0.5),
    ("c1", "TRA", True, *OTHER_ALPHA, 1, "GIL", ""),
    ("c1", "TRA", True, *ALPHA, 2, "GIL", ""),
    ("c2", "TRA", True, *OTHER_ALPHA, 1, "NLV", ""),
    ("c2", "TRB", True, *OTHER_BETA, 1, "NLV", ""),
    ("c2", "TRB", False, "", "", 99, "NLV", ""),
    ("", "TRB", True, *BETA, 1, "NLV", ""),
]
ROWS = [
    ("complex.id", "v_a_gene", "cdr3_a_aa", "v_b_gene", "cdr3_b_aa", "epitope"),
    (0, "", "", *BETA, "GIL"),
    (0, *ALPHA, *BETA, "GIL"),
    (1, *OTHER_ALPHA, *OTHER_BETA, "NLV"),
]


@pytest.mark.parametrize("rows", [CELLS, ROWS], ids=["chains", "pairs"])
def test_json_lines_and_parquet_are_read_like_tables(write, rows):
    table, *others = copies(write(*rows))
    wanted = open_source(table, labels="epitope").read()
    assert len(set(wanted.objects)) == 3
    for path in others:
        source = open_source(path, labels="epitope")
        found = source.read()
        assert source.kind == "receptors"
        assert (found.objects, found.names) == (wanted.objects, wanted.names)
        assert found.labels == wanted.labels
        [*parts] = open_source(path, labels="epitope").chunks(1)
        assert [part.objects[0] for part in parts] == wanted.objects


def test_a_record_may_lack_a_chain_but_not_add_one(tmp_path):
    alpha = dict(zip(("v_a_gene", "cdr3_a_aa"), ALPHA, strict=True))
    beta = dict(zip(("v_b_gene", "cdr3_b_aa"), BETA, strict=True))
    path = tmp_path / "cells.jsonl"

    def written(*records):
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        return open_source(path)

    assert written(alpha | beta, beta).read().objects == [BOTH, " ".join(BETA)]
    source = written(beta, alpha | beta, {"v_b_gene": "TRBV9"}, beta)
    with pytest.raises(DataError, match="line 2: has the field 'v_a_gene', which the first record"):
        source.read()
    source = source.changed(lenient=True)
    assert list(source.read().unreadable) == [1, 2]
    path.write_text(json.dumps(beta) + "\nnot JSON\n" + json.dumps(beta) + "\n")
    source = open_source(path)
    source = source.changed(lenient=True)
    chunk = source.read()
    assert "line 2: is not JSON" in chunk.unreadable[1]
    assert chunk.objects[2] == " ".join(BETA)


def test_an_error_names_the_row_of_a_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "cells.parquet"
    table = pd.DataFrame({"v_call": [BETA[0], "TRBV9"], "junction_aa": [BETA[1], None]})
    table.to_parquet(path)
    with pytest.raises(DataError, match="row 1, receptor '1': the column 'junction_aa' is empty"):
        open_source(path).read()


def test_row_names_without_a_heading_do_not_shift_the_columns(tmp_path):
    path = tmp_path / "from_r.tsv"
    path.write_text("v_call\tjunction_aa\n1\t" + "\t".join(BETA) + "\n")
    assert open_source(path).read().objects == [" ".join(BETA)]


def test_a_column_that_the_user_chooses_contains_the_objects(write):
    path = write(("v_b_gene", "cdr3_b_aa"), BETA, OTHER_BETA)
    source = open_source(path, objects="cdr3_b_aa")
    assert source.kind == "strings"
    assert source.read().objects == [BETA[1], OTHER_BETA[1]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("c1", *ALPHA, "x"), ("c2", *BETA, "x"), ("c1", *BETA, "x")],
            "line 4: the rows of the cell 'c1' are not consecutive; sort the table by 'cell_id'",
        ),
        (
            [("c1", *ALPHA, "x"), ("c1", *BETA, "y")],
            "line 3: the cell 'c1' has two labels, 'x' and 'y'",
        ),
        ([("c1", ALPHA[0], "", "x")], "line 2, receptor 'c1': the column 'junction_aa' is empty"),
        ([("c1", "", "", "x")], "line 2: has no V gene and CDR3"),
        ([("c1", *ALPHA)], "line 2: has 3 fields, but the first row has 4"),
    ],
)
def test_an_error_names_the_row(write, rows, message):
    path = write(("cell_id", "v_call", "junction_aa", "label"), *rows)
    with pytest.raises(DataError, match=message):
        open_source(path).read()


def test_rows_that_cannot_be_read_are_passed_on_if_asked(write):
    path = write(
        ("cell_id", "v_call", "junction_aa"), ("c1", *BETA), ("c2", "TRBV9", ""), ("c3", *BETA)
    )
    source = open_source(path)
    source = source.changed(lenient=True)
    chunk = source.read()
    assert list(chunk.unreadable) == [1]
    assert chunk.names == ["c1", "c2", "c3"]


def test_the_command_fits_and_predicts_receptors(write, tmp_path):
    def run(*args):
        found = CliRunner().invoke(krein_command, [str(arg) for arg in args])
        return found.exit_code, found.stdout, found.stderr

    rng, rows = np.random.default_rng(0), []
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    for i in range(80):
        label = "xy"[i % 2]
        cdr3 = list({"x": "CASSIRSSYEQYF", "y": "CASSLAPGATNEKLFF"}[label])
        cdr3[int(rng.integers(4, 8))] = str(rng.choice(letters))
        rows.append((f"c{i}", "TRA", *ALPHA, label))
        rows.append((f"c{i}", "TRB", "TRBV19", "".join(cdr3), label))
    heading = ("cell_id", "locus", "v_call", "junction_aa", "epitope")
    data, model = write(heading, *rows), tmp_path / "m.krein"
    code, out, err = run("fit", data, "--measure", "tcrdist", "--labels", "epitope", "-o", model)
    assert code == 0, err
    assert "80 objects: receptors in the columns 'v_call', 'junction_aa'" in out
    assert load(model).measure_.chains == "alpha-beta"
    new = write(heading, *rows[:8], ("odd", "TRB", "TRBV99", "CASSF", "x"), name="new.tsv")
    code, out, err = run("predict", model, new, "--fdr", "0.1", "--evidence", "1")
    assert code == 0, err
    lines = [line.split(",") for line in out.splitlines()]
    assert [(line[0], line[1]) for line in lines[1:5]] == [
        ("c0", "x"), ("c1", "y"), ("c2", "x"), ("c3", "y"),
    ]  # fmt: skip
    assert lines[5][0] == "odd"
    assert "unreadable" in lines[5]
    assert "'TRBV99'" in out


def test_the_command_answers_alike_for_all_formats(write, tmp_path):
    def run(*args):
        done = CliRunner().invoke(krein_command, [str(arg) for arg in args])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    rng, rows = np.random.default_rng(0), []
    for i in range(60):
        cdr3 = list({0: "CASSIRSSYEQYF", 1: "CASSLAPGATNEKLFF"}[i % 2])
        cdr3[int(rng.integers(4, 8))] = str(rng.choice(list("ACDEFGHIKL")))
        rows.append((f"c{i}", *ALPHA, "TRBV19*01", "".join(cdr3), "xy"[i % 2]))
    heading = ("id", "v_a_gene", "cdr3_a_aa", "v_b_gene", "cdr3_b_aa", "epitope")
    answers, scores = [], []
    for path in copies(write(heading, *rows)):
        model = path.with_suffix(path.suffix + ".krein")
        fit = run("fit", path, "--measure", "tcrdist", "--labels", "epitope", "-o", model)
        assert "60 objects: receptors in the columns 'v_a_gene'" in fit
        answers.append(run("predict", model, path, "--fdr", "0.1", "--evidence", "1"))
        how = ("--labels", "epitope", "--compare", "krein", "--folds", "3", "--groups", "cdr3:0.99")
        line = next(line for line in run("evaluate", path, *how).splitlines() if " krein " in line)
        scores.append(line.split()[:-1])  # without the time
    assert len(answers[0].splitlines()) == 61
    assert answers[1:] == answers[:1] * 2
    assert scores[1:] == scores[:1] * 2
    refused = CliRunner().invoke(
        krein_command, ["predict", str(model), str(path), "--table-out", str(tmp_path / "t.tsv")]
    )
    assert "--table-out needs NEW to be a CSV or TSV file with a header" in refused.stderr


@pytest.fixture
def cells(write):
    """80 cells with two chains, as rows; and the heading."""
    rng, rows = np.random.default_rng(0), []
    for i in range(80):
        cdr3 = list({0: "CASSIRSSYEQYF", 1: "CASSLAPGATNEKLFF"}[i % 2])
        cdr3[int(rng.integers(4, 8))] = str(rng.choice(list("ACDEFGHIKL")))
        rows.append((f"c{i}", *ALPHA, "xy"[i % 2]))
        rows.append((f"c{i}", "TRBV19*01", "".join(cdr3), "xy"[i % 2]))
    return ("cell_id", "v_call", "junction_aa", "epitope"), rows


UNUSABLE = [
    ("one", *BETA, "x"),  # one chain
    ("gone", *ALPHA, "x"),
    ("gone", "TRBV99*01", BETA[1], "x"),  # no such gene
    ("stop", *ALPHA, "y"),
    ("stop", BETA[0], "CASS*SFTEAFF", "y"),
    ("empty", *ALPHA, "y"),
    ("empty", BETA[0], "", "y"),  # cannot be read at all
    ("two", *ALPHA, "x"),
    ("two", *BETA, "y"),  # two labels
]


@pytest.mark.parametrize("in_memory", [20_000, 50], ids=["memory", "chunks"])
def test_unusable_receptors_are_left_out_if_asked(write, cells, tmp_path, monkeypatch, in_memory):
    import krein.data.dataset

    monkeypatch.setattr(krein.data.dataset, "IN_MEMORY_OBJECTS", in_memory)
    heading, rows = cells

    def fit(path, *more):
        model = path.with_suffix(".krein")
        words = ["fit", path, "--labels", "epitope", "--model", "ikfd", "-o", model, *more]
        return model, CliRunner().invoke(krein_command, [str(word) for word in words])

    model, done = fit(write(heading, *rows, name="clean.tsv"))
    assert done.exit_code == 0, done.stderr
    middle = [*rows[:40], *UNUSABLE, *rows[40:]]
    dirty = write(heading, *middle, name="dirty.tsv")
    _, refused = fit(dirty)
    assert refused.exit_code == 1
    assert "; --skip-unreadable leaves such objects out" in refused.stderr
    other, done = fit(dirty, "--skip-unreadable")
    assert done.exit_code == 0, done.stderr
    assert "5 objects that cannot be read or compared" in done.stderr
    assert "line 42, receptor 'one': has no alpha chain" in done.stderr
    new = open_source(write(heading, *rows[:20], name="new.tsv")).read().objects
    assert (load(other).predict_proba(new) == load(model).predict_proba(new)).all()


def test_evaluate_leaves_unusable_receptors_out_too(write, cells):
    heading, rows = cells
    how = ["--labels", "epitope", "--compare", "ikfd", "--folds", "3", "--json"]

    def evaluate(*words):
        done = CliRunner().invoke(krein_command, ["evaluate", *map(str, words), *how])
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        return found["objects"], found["models"]["ikfd"]["log_loss"]

    clean = write(heading, *rows, name="clean.tsv")
    dirty = write(heading, *UNUSABLE, *rows, name="dirty.tsv")
    grouped = ("--groups", "cell_id")  # read from the file a second time
    assert evaluate(dirty, "--skip-unreadable", *grouped) == evaluate(clean, *grouped)
    assert evaluate(clean, "--test", dirty, "--skip-unreadable") == evaluate(clean, "--test", clean)


@pytest.mark.parametrize("by_name", [True, False])
def test_labels_in_a_file_stay_with_their_receptors(write, tmp_path, by_name):
    path = write(
        ("id", "v_b_gene", "cdr3_b_aa"),
        ("a", *BETA), ("b", "TRBV9", ""), ("c", *OTHER_BETA), ("d", *BETA),
    )  # fmt: skip
    labels = tmp_path / ("labels.csv" if by_name else "labels.txt")
    labels.write_text("id,label\na,x\nb,y\nc,z\nd,x\n" if by_name else "x\ny\nz\nx\n")
    source = open_source(path, labels=str(labels))
    source = source.changed(leave_out=lambda chunk: chunk.unreadable)
    for size in (1, 3, 10):
        parts = list(source.chunks(size))
        assert [name for part in parts for name in part.names] == ["a", "c", "d"]
        assert [label for part in parts for label in part.labels] == ["x", "z", "x"]
        assert (source.n_dropped, source.n_unlabelled) == (1, 0)


def test_a_file_without_a_usable_receptor_is_refused(write):
    path = write(("v_a_gene", "cdr3_a_aa", "label"), ("TRAV99", "CAF", "x"), ("TRAV99", "CA", "y"))
    words = ["fit", str(path), "--skip-unreadable", "-o", str(path.with_suffix(".krein"))]
    done = CliRunner().invoke(krein_command, words)
    assert done.exit_code == 1
    assert "none of its 2 objects can be compared" in done.stderr


def test_a_table_is_written_with_the_answers_in_new_columns(write, tmp_path):
    def run(*args):
        return CliRunner().invoke(krein_command, [str(arg) for arg in args])

    rng, rows = np.random.default_rng(0), []
    for i in range(40):
        cdr3 = list({0: "CASSIRSSYEQYF", 1: "CASSLAPGATNEKLFF"}[i % 2])
        cdr3[int(rng.integers(4, 8))] = str(rng.choice(list("ACDEFGHIKL")))
        rows.append((f"c{i}", "TRA", "T", *ALPHA, "xy"[i % 2]))
        rows.append((f"c{i}", "TRB", "T", "TRBV19", "".join(cdr3), "xy"[i % 2]))
    heading = ("cell_id", "locus", "productive", "v_call", "junction_aa", "epitope")
    model = tmp_path / "m.krein"
    done = run("fit", write(heading, *rows), "--labels", "epitope", "-o", model)
    assert done.exit_code == 0, done.stderr
    odd = ("odd", "TRB", "T", "TRBV99", "CASSF", "")
    broken = ("none", "TRB", "F", "TRBV9", "CAS*F", "")
    alone = ("", "TRB", "T", *rows[1][3:])
    new = write(heading, *rows[:4], broken, odd, alone, alone, name="new.tsv")
    out, table = tmp_path / "rows.tsv", tmp_path / "table.tsv"
    done = run("predict", model, new, "-o", out, "--table-out", table, "--fdr", "0.2")
    assert done.exit_code == 0, done.stderr
    answers = [line.split("\t") for line in out.read_text().splitlines()]
    completed = [line.split("\t") for line in table.read_text().splitlines()]
    given = [line.split("\t") for line in new.read_text().splitlines()]
    assert [row[: len(heading)] for row in completed] == given  # the table itself is unchanged
    assert completed[0][len(heading) :] == [f"krein_{name}" for name in answers[0][1:]]
    added = [row[len(heading) :] for row in completed[1:]]
    c0, c1, unreadable, first, second = (row[1:] for row in answers[1:])
    nothing = [""] * len(c0)
    assert added == [c0, c0, c1, c1, nothing, unreadable, first, second]
    assert (c0[0], c1[0]) == ("x", "y")


@pytest.mark.parametrize("name", ["new.txt", "new.fasta"])
def test_only_tables_are_written_with_answers(name, tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("word,label\n" + "house,en\nmouse,en\nhaus,de\nmaus,de\n" * 5)
    new = tmp_path / name
    new.write_text("house\nhaus\n" if name == "new.txt" else ">a\nHAUS\n")
    model = tmp_path / "m.krein"
    run = CliRunner().invoke
    fitted = run(krein_command, ["fit", str(words), "-o", str(model), "--measure", "levenshtein"])
    assert fitted.exit_code == 0, fitted.stderr
    done = run(
        krein_command, ["predict", str(model), str(new), "--table-out", str(tmp_path / "t.csv")]
    )
    assert done.exit_code == 2
    assert "--table-out needs NEW to be a CSV or TSV file with a header" in done.stderr
    assert not (tmp_path / "t.csv").exists()
