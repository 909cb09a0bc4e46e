"""`krein fit` and `krein predict`."""

import csv
import gzip
import io
import json

import numpy as np
import pytest

import krein as library
from krein.cli import predictor as predict_module
from krein.io import open_source

PATTERN = ("--label-pattern", r"family=(\w+)")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def model(fit):
    return fit("families.fasta", *PATTERN, "-o", "model.krein")


def test_fit_says_what_it_did(files, model):
    assert "70 objects: sequences in FASTA format" in model
    assert "3 classes: " in model
    assert "smith-waterman, because the objects look like protein sequences" in model
    assert "% of 4,900" in model
    assert "\x1b" not in model


def test_rows_match_the_library(files, model, run):
    code, out, err = run("predict", "model.krein", "new.fasta", "--top", "3")
    assert (code, err) == (0, "")
    rows = table(out)
    clf = library.load("model.krein")
    chunk = open_source("new.fasta", label_pattern=PATTERN[1]).read()
    P = clf.predict_proba(chunk.objects)
    assert [r["name"] for r in rows] == chunk.names
    assert [r["label"] for r in rows] == clf.predict(chunk.objects).tolist()
    np.testing.assert_allclose([float(r["probability"]) for r in rows], P.max(axis=1), atol=1e-6)
    ranked = clf.rank_labels(chunk.objects)
    assert [[r["label"], r["runner_up"], r["label_3"]] for r in rows] == ranked.tolist()
    assert "label_2" not in rows[0]  # it is the runner-up
    sums = [
        sum(float(r[f"{k}probability{n}"]) for k, n in (("", ""), ("runner_up_", ""), ("", "_3")))
        for r in rows
    ]
    np.testing.assert_allclose(sums, 1, atol=3e-6)
    assert np.mean([r["label"] == c for r, c in zip(rows, chunk.labels, strict=True)]) > 0.9


def test_rows_do_not_depend_on_chunks(files, model, run, monkeypatch):
    _, whole, _ = run("predict", "model.krein", "new.fasta")
    monkeypatch.setattr(predict_module, "AT_A_TIME", 3)
    _, parts, _ = run("predict", "model.krein", "new.fasta")
    assert parts == whole
    _, piped, _ = run("predict", "model.krein", input=(files / "new.fasta").read_bytes())
    assert piped == whole
    run("predict", "model.krein", "new.fasta", "-o", "out.csv.gz")
    assert gzip.decompress((files / "out.csv.gz").read_bytes()).decode() == whole


def test_json_lines_match_csv(files, model, run):
    _, out, _ = run("predict", "model.krein", "new.fasta", "--ambiguous-below", "0.9")
    code, _, err = run(
        "predict", "model.krein", "new.fasta", "--ambiguous-below", "0.9", "-o", "out.jsonl"
    )
    assert code == 0
    assert "of 20 objects" in err
    records = [json.loads(line) for line in (files / "out.jsonl").read_text().splitlines()]
    for record, row in zip(records, table(out), strict=True):
        assert list(record) == list(row)
        assert row["status"] == record["status"]
        assert (record["status"] == "ambiguous") == (record["probability"] < 0.9)
        assert float(row["probability"]) == pytest.approx(record["probability"], abs=1e-6)


@pytest.mark.parametrize("coverage", [0.25, 0.5, 1.0])
def test_coverage_accepts_the_requested_share(files, model, run, coverage, monkeypatch):
    monkeypatch.setattr(predict_module, "AT_A_TIME", 7)
    new = (files / "new.fasta").read_bytes()
    code, out, _ = run("predict", "model.krein", "-", "--coverage", coverage, input=new)
    assert code == 0
    rows = table(out)
    accepted = [float(r["probability"]) for r in rows if r["status"] == "known"]
    rejected = [float(r["probability"]) for r in rows if r["status"] == "ambiguous"]
    assert len(rows) == 20
    assert len(accepted) >= coverage * 20  # ties are accepted together
    assert not rejected or max(rejected) <= min(accepted)
    smallest = min(accepted)
    assert sum(p > smallest for p in accepted) < coverage * 20


def test_a_bad_object_names_file_line_and_name_and_leaves_no_file(files, model, run):
    with open("new.fasta", "a") as file:
        file.write(">bad1\nMKV1LA\n")
    (files / "kept.csv").write_text("old")
    for out in ("out.csv", "kept.csv"):
        code, _, err = run(
            "predict", "model.krein", "new.fasta", "-o", out, "--unknown-letters", "fail"
        )
        assert code == 1
        assert err.startswith("krein: error: new.fasta, line 41, sequence 'bad1': contains '1' at ")
        assert err.count("\n") == 1
    assert (files / "kept.csv").read_text() == "old"
    assert not (files / "out.csv").exists()
    assert not list(files.glob("*.part"))


def test_a_matrix_of_distances(files, run):
    code, out, err = run(
        "fit", "distances.csv", "--distance", "--labels", "labels.csv", "-o", "m.krein",
        "--landmarks", "all", "--model", "ikfd",
    )  # fmt: skip
    assert code == 0, err
    assert "40 objects: rows of 40 values, a matrix" in out
    rows = (files / "distances.csv").read_text().splitlines()
    (files / "new.csv").write_text("\n".join([rows[3], rows[30], rows[31]]))
    code, out, err = run("predict", "m.krein", "new.csv")
    assert code == 0, err
    assert [r["label"] for r in table(out)] == ["left", "right", "right"]
    (files / "new.csv").write_text("1,2,3\n4,5,6\n")
    code, _, err = run("predict", "m.krein", "new.csv")
    assert code == 1
    assert "new.csv: the values of new objects" in err


def test_a_table_of_numbers_with_a_measure_is_one_of_vectors(files, run):
    code, out, err = run("fit", "distances.csv", "--measure", "rbf", "--labels", "labels.csv",
                         "-o", "m.krein", "--measure-param", "gamma=0.1")  # fmt: skip
    assert code == 0, err
    assert "vectors of 40 numbers" in out
    assert library.load("m.krein").measure_params == {"gamma": 0.1}
    code, out, err = run("predict", "m.krein", "distances.csv")
    assert code == 0, err
    assert len(table(out)) == 40


FIT_WORDS = ("fit", "words.csv", "--labels", "language", "-o", "m.krein", "--model", "ikfd")


@pytest.mark.parametrize(("text", "value"), [("False", False), ("true", True), ("TRUE", True)])
def test_parameters_of_a_measure_are_read_by_their_annotation(files, run, text, value):
    code, _, err = run(*FIT_WORDS, "--measure-param", f"normalize={text}")
    assert code == 0, err
    assert library.load("m.krein").measure_.normalize is value


@pytest.mark.parametrize(
    ("measure", "given", "message"),
    [
        ("levenshtein", f"normalize={text}", "normalize must be true or false; got ")
        for text in ("yes", "no", "0", "1", "1e400", "null", "")
    ]
    + [
        ("jaro-winkler", f"prefix_weight={text}", "prefix_weight must be a number; got ")
        for text in ("1e400", "-Infinity", "nan", "true", "[1]", "x")
    ]
    + [
        ("smith-waterman", "gap_open=2.5", "gap costs must be whole numbers"),
        ("smith-waterman", "both_strands=ja", "both_strands must be true or false; got 'ja'"),
    ],
)
def test_other_parameters_of_a_measure_are_refused(files, run, measure, given, message):
    code, _, err = run(*FIT_WORDS, "--measure", measure, "--measure-param", given)
    assert code == 2
    assert f"--measure-param {given}: {message}" in err
    assert not (files / "m.krein").exists()


@pytest.mark.parametrize("chosen", ["ikfd", "ikqd", "pcvm"])
def test_every_model_fits_and_a_seed_repeats_it(files, run, chosen):
    options = ["--objects", "word", "--labels", "language", "--model", chosen]
    for name in ("a.krein", "b.krein"):
        code, out, err = run("fit", "words.csv", *options, "--seed", "3", "-o", name)
        assert code == 0, err
    assert "levenshtein, because the objects are strings" in out
    a, b = (run("predict", name, "words.csv")[1] for name in ("a.krein", "b.krein"))
    assert a == b


def test_a_model_is_not_written_over_without_force(files, model, run):
    code, _, err = run("fit", "words.csv", "--labels", "language", "-o", "model.krein")
    assert (code, err) == (1, "krein: error: model.krein: already exists; --force replaces it\n")
    code, _, _ = run("fit", "words.csv", "--labels", "language", "-o", "model.krein", "--force")
    assert code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fit", "none.fasta", "-o", "m"], "none.fasta: there is no such file"),
        (["fit", "families.fasta", "-o", "m"], "families.fasta: there are no labels; use"),
        (["fit", "families.fasta", "-o", "no/m"], "no/m: there is no folder no"),
        (["predict", "none.krein", "new.fasta"], "none.krein: there is no such model"),
        (["predict", "new.fasta", "new.fasta"], "new.fasta is not a krein model, or is damaged"),
        (
            ["fit", "words.csv", "--labels", "tongue", "-o", "m"],
            "the columns are 'word', 'language'",
        ),
        (["fit", "words.csv", "--labels", "language", "--distance", "-o", "m"], "words.csv: "),
        (["inspect", "empty.csv"], "empty.csv: is empty"),
        (
            ["fit", "families.fasta", "--label-pattern", "(>)", "-o", "m"],
            "families.fasta, line 1, sequence ",
        ),
    ],
)
def test_data_errors_are_one_line_and_exit_with_1(files, run, args, message):
    (files / "empty.csv").write_text("")
    code, _, err = run(*args)
    assert code == 1
    assert message in err
    assert err.startswith("krein: error: ")
    assert err.count("\n") == 1
    assert not (files / "m").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fit"], "Missing argument 'DATA'"),
        (["fit", "words.csv"], "Missing option '-o'"),
        (["nothing"], "No such command 'nothing'"),
        (["fit", "words.csv", "--labels", "language", "--measure", "levenstein", "-o", "m"],
         "unknown measure 'levenstein': did you mean 'levenshtein'? krein fit --help lists all"),
        (["fit", "families.fasta", "--measure", "levenstein", "-o", "m"],  # and no labels
         "unknown measure 'levenstein'"),
        (["fit", "words.csv", "--labels", "language", "--measure-param", "x=1", "-o", "m"],
         "has no parameter 'x'; its parameters: normalize"),
        (["fit", "words.csv", "--labels", "language", "--landmarks", "kmeans", "-o", "m"],
         "--landmarks is for the other models"),
        (["fit", "words.csv", "--landmarks", "meb", "--n-landmarks", "3", "-o", "m"],
         "--n-landmarks 3 was given, but MEB finds its own number"),
        (["fit", "words.csv", "--measure-param", "x", "--labels", "language", "-o", "m"],
         "is not KEY=VALUE"),
        (["fit", "families.fasta", "-o", "m", "--no-calibrate"], "always calibrated"),
        (["predict", "m", "--coverage", "2"], "Invalid value for '--coverage'"),
        (["predict", "m", "--coverage", "0.5", "--ambiguous-below", "0.5"], "not both"),
    ],
)  # fmt: skip
def test_usage_errors_exit_with_2(files, run, args, message):
    code, _, err = run(*args)
    assert code == 2
    assert message in err
    assert err.startswith("krein: error: ")


def test_auto_is_always_calibrated(files, run):
    code, out, err = run("fit", "families.fasta", *PATTERN, "--calibrate", "-o", "m")
    assert code == 0, err
    assert "krein, calibrated" in out


def test_debug_shows_where(files, run):
    from krein.io import DataError

    with pytest.raises(DataError):
        run("fit", "families.fasta", "-o", "m", "--debug", catch=False)


def test_nucleotides_get_their_own_matrix(files, run):
    rng = np.random.default_rng(1)
    lines = []
    for c in ("a", "b"):
        ancestor = rng.choice(list("ACGT"), 40)
        for i in range(12):
            changed = ancestor.copy()
            changed[rng.integers(0, 40, 5)] = "A"
            lines.append(f">{c}{i} family={c}\n{''.join(changed)}\n")
    (files / "dna.fasta").write_text("".join(lines))
    code, out, err = run("fit", "dna.fasta", *PATTERN, "-o", "m.krein")
    assert code == 0, err
    assert "smith-waterman (matrix=NUC.4.4), because the sequences are nucleotides" in out


def test_both_strands_of_dna_are_the_same_object(files, run):
    rng = np.random.default_rng(1)
    names, sequences = [], []
    for c in ("a", "b"):
        ancestor = rng.choice(list("ACGT"), 40)
        for i in range(12):
            changed = ancestor.copy()
            changed[rng.integers(0, 40, 5)] = "A"
            names.append(f"{c}{i} family={c}")
            sequences.append("".join(changed))

    def write(path, texts):
        (files / path).write_text(
            "".join(f">{n}\n{s}\n" for n, s in zip(names, texts, strict=True))
        )

    write("dna.fasta", sequences)
    write("other.fasta", [s.translate(str.maketrans("ACGT", "TGCA"))[::-1] for s in sequences])
    code, out, err = run("fit", "dna.fasta", *PATTERN, "--both-strands", "-o", "both.krein")
    assert code == 0, err
    assert "smith-waterman (matrix=NUC.4.4, both_strands=True)" in out
    assert run("fit", "dna.fasta", *PATTERN, "-o", "one.krein")[0] == 0
    forward, reverse = (run("predict", "both.krein", f)[1] for f in ("dna.fasta", "other.fasta"))
    assert forward == reverse
    assert (
        run("predict", "one.krein", "other.fasta")[1] != run("predict", "one.krein", "dna.fasta")[1]
    )
    for measure, message in (
        ("smith-waterman", "needs DNA or RNA"),
        ("levenshtein", "both_strands"),
    ):
        code, _, err = run(
            "fit",
            "families.fasta",
            *PATTERN,
            "--measure",
            measure,
            "--both-strands",
            "-o",
            "x.krein",
        )
        assert code != 0
        assert message in err


def test_long_texts_are_compared_by_compression(files, run):
    with open("texts.csv", "w") as file:
        file.write("text,class\n")
        for i in range(8):
            file.write(
                f"{('to be or not to be ' if i % 2 else 'sein oder nicht sein ') * 99}{i},{i % 2}\n"
            )
    code, out, err = run("fit", "texts.csv", "-o", "m.krein")
    assert code == 0, err
    assert "compression, because the objects are long texts" in out


def test_an_answer_is_the_deepest_rank_that_is_probable_enough(files, run):
    text = (files / "words.csv").read_text().replace(",en", ",west;en").replace(",de", ",west;de")
    (files / "paths.csv").write_text(text)
    assert run("fit", "paths.csv", "--labels", "language", "-o", "m.krein")[0] == 0
    (files / "new.txt").write_text("house\nzzzz\n")
    for least in ("0.9", "0.999"):
        code, out, err = run("predict", "m.krein", "new.txt", "--ambiguous-below", least)
        assert code == 0, err
        for told in csv.DictReader(io.StringIO(out)):
            sure = [float(told[f"rank_{k}_probability"]) >= float(least) for k in (1, 2)]
            assert told["rank_label"].count(";") == max(sum(sure) - 1, 0)
            assert told["rank"] == (f"rank_{sum(sure)}" if sum(sure) else "")
            assert (told["status"] == "known") == sure[0]
    assert run("predict", "m.krein", "new.txt", "--ambiguous-below", "0.4")[0] == 1
    code, _, err = run("predict", "m.krein", "new.txt", "--label-ranks", "/")
    assert (code, "no label of the model contains '/'" in err) == (1, True)
    names = ("--rank-names", "region,language")
    assert "language_probability" in run("predict", "m.krein", "new.txt", *names)[1]
    code, _, err = run("predict", "m.krein", "new.txt", "--rank-names", "region")
    assert (code, "1 names for 2 ranks" in err) == (1, True)
