"""`krein predict`: status and novelty, sets, evidence, and sequences sorted into two files."""

import csv
import gzip
import io
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from krein import KreinClassifier, load
from krein.cli import krein
from krein.cli.counts import Counts
from krein.cli.status import BY_CHANCE
from krein.io import open_source
from krein.measures.sequences import SmithWaterman

from .conftest import family, write_fasta


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """120 training sequences from two families; 40 new ones from the same, 20 from another."""
    folder = tmp_path_factory.mktemp("novelty")
    rng = np.random.default_rng(0)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    rows = {}
    for c in ("globin", "kinase", "other"):
        ancestor = "".join(rng.choice(letters, 80))
        rows[c] = [(f"{c}{i}", c, s) for i, s in enumerate(family(rng, ancestor, 80))]
    write_fasta(folder / "known.fasta", rows["globin"][:60] + rows["kinase"][:60])
    new = rows["globin"][60:] + rows["kinase"][60:] + rows["other"][:20]
    write_fasta(folder / "new.fasta", new)
    return folder


@pytest.fixture(scope="module")
def fitted(world):
    data, target = str(world / "known.fasta"), str(world / "m.krein")
    args = ["fit", data, "--label-pattern", r"family=(\S+)", "-o", target]
    result = CliRunner().invoke(krein, args)
    assert result.exit_code == 0, result.output
    return world / "m.krein"


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def predict(world, fitted, run, *options):
    return run("predict", str(fitted), str(world / "new.fasta"), *options)


def test_another_family_is_novel_by_default(world, fitted, run):
    code, out, err = predict(world, fitted, run)
    assert (code, err) == (0, "")
    rows = table(out)
    foreign = [row for row in rows if row["name"].startswith("other")]
    own = [row for row in rows if not row["name"].startswith("other")]
    assert {row["status"] for row in foreign} == {"novel"}
    assert sum(row["status"] == "novel" for row in own) <= 2
    model = load(fitted)
    p = model.novelty(open_source(world / "new.fasta").read().objects)
    np.testing.assert_allclose([float(row["novelty"]) for row in rows], p, atol=1e-6)


def test_the_limit_can_be_moved(world, fitted, run):
    none = table(predict(world, fitted, run, "--novel-below", "0")[1])
    assert "novel" not in {row["status"] for row in none}
    some = table(predict(world, fitted, run, "--novel-below", "0.5")[1])
    assert sum(row["status"] == "novel" for row in some) > 30


def test_a_limit_out_of_reach_is_named(world, fitted, run):
    code, _, err = predict(world, fitted, run, "--novel-below", "0.001")
    assert code == 0
    assert "it takes 999 held-out objects, and there are 120" in err


def test_sets_and_evidence_match_the_library(world, fitted, run):
    code, out, _ = predict(world, fitted, run, "--sets", "0.9", "--evidence", "2")
    assert code == 0
    rows = table(out)
    model = load(fitted)
    objects = open_source(world / "new.fasta").read().objects
    sets = model.predict_set(objects, 0.9)
    reasons = model.explain(objects, n=2)
    for row, inside, why in zip(rows, sets, reasons, strict=True):
        assert row["set"] == "|".join(model.classes_[inside])
        for k, near in enumerate(why.nearest, start=1):
            assert row[f"nearest_{k}"] == near.name
            assert row[f"nearest_label_{k}"] == near.label
            assert near.name.startswith(near.label)
            assert float(row[f"nearest_value_{k}"]) == pytest.approx(near.value, abs=1e-6)


def test_sequences_are_sorted_into_two_files(world, fitted, run, tmp_path):
    yes, no = tmp_path / "yes.fasta", tmp_path / "no.fasta"
    code, out, _ = predict(
        world, fitted, run, "--classified-out", str(yes), "--unclassified-out", str(no)
    )
    assert code == 0
    rows = {row["name"]: row for row in table(out)}
    whole = open_source(world / "new.fasta").read()
    sequences = dict(zip(whole.names, whole.objects, strict=True))
    found = {}
    for path, classified in ((yes, True), (no, False)):
        part = open_source(path).read()
        for name, sequence in zip(part.names, part.objects, strict=True):
            assert sequence == sequences[name]
            assert (rows[name]["status"] == "known") == classified
            found[name] = classified
    assert found.keys() == sequences.keys()
    assert ">globin" in yes.read_text()
    assert "label=globin" in yes.read_text()


WORDS = {"en": ["house", "mouse", "louse", "mouth"], "de": ["haus", "maus", "laus", "mund"]}


@pytest.fixture
def words(tmp_path, run):
    """A model of words and a table of new ones: one record spans two lines, one is unreadable."""
    known = "".join(f"{w}{e},{c}\n" for c, ws in WORDS.items() for w in ws for e in "abcdefghijklm")
    (tmp_path / "known.csv").write_text("word,language\n" + known)
    model = tmp_path / "words.krein"
    options = ("--objects", "word", "--labels", "language", "--measure", "levenshtein")
    assert run("fit", tmp_path / "known.csv", *options, "-o", model)[0] == 0
    new = tmp_path / "new.csv"
    new.write_bytes(
        b'id,word,note\r\n1,house,"two\nlines"\r\n2,zzzzzzzzzzzzzzzzzzzzzz,\r\n3,,empty\r\n4,maus,'
    )
    return model, new


def test_lines_of_a_table_are_copied_unchanged(words, run, tmp_path):
    model, new = words
    yes, no = tmp_path / "yes.csv", tmp_path / "no.csv.gz"
    options = ("--objects", "word", "--names", "id", "--novel-below", "0.02", "-o", tmp_path / "o")
    sort = ("--classified-out", yes, "--unclassified-out", no)
    code, _, err = run("predict", model, new, *options, *sort)
    assert code == 0, err
    head = b"id,word,note\r\n"
    assert yes.read_bytes() == head + b'1,house,"two\nlines"\r\n4,maus,'
    assert gzip.decompress(no.read_bytes()) == head + b"2,zzzzzzzzzzzzzzzzzzzzzz,\r\n3,,empty\r\n"
    # only one of the two files
    yes.unlink()
    assert run("predict", model, new, *options, "--classified-out", yes)[0] == 0
    assert yes.read_bytes().startswith(head + b"1,")


def test_series_and_json_lines_are_copied_unchanged(words, run, tmp_path):
    model, _ = words
    lines = ['{"id": 1, "word": "house"}', '{"id": 2, "word": "zzzzzzzzzzzzzzzzzzzzzz"}']
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n")
    no = tmp_path / "no.jsonl"
    options = ("--objects", "word", "--names", "id", "--novel-below", "0.02", "-o", tmp_path / "o")
    assert run("predict", model, tmp_path / "new.jsonl", *options, "--unclassified-out", no)[0] == 0
    assert no.read_text() == lines[1] + "\n"
    rng = np.random.default_rng(0)
    head = "# made up\n@problemName p\n@classLabel true a b\n@data\n"
    series = [",".join(f"{v:.3f}" for v in rng.normal(size=20)) for _ in range(40)]
    known = [f"{s}:{'ab'[i % 2]}" for i, s in enumerate(series)]
    (tmp_path / "known.ts").write_text(head + "\n".join(known) + "\n")
    far = ",".join(["1000"] * 20) + ":a"
    (tmp_path / "new.ts").write_text(head + f"{known[0]}\n{far}\n{known[1]}\n")
    curves, yes, no = tmp_path / "c.krein", tmp_path / "yes.ts", tmp_path / "no.ts"
    assert run("fit", tmp_path / "known.ts", "-o", curves)[0] == 0
    sort = ("--classified-out", yes, "--unclassified-out", no, "--novel-below", "0.03")
    sort += ("--ambiguous-below", "0")
    assert run("predict", curves, tmp_path / "new.ts", *sort, "-o", tmp_path / "o")[0] == 0
    assert yes.read_text() == head + f"{known[0]}\n{known[1]}\n"
    assert no.read_text() == head + f"{far}\n"


def test_files_that_cannot_be_sorted_are_refused(words, run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    np.save(tmp_path / "x.npy", X)
    KreinClassifier("rbf").fit(X, np.arange(40) % 2).save(tmp_path / "x.krein")
    sort = ("--classified-out", tmp_path / "yes.csv")
    code, _, err = run("predict", tmp_path / "x.krein", tmp_path / "x.npy", *sort)
    assert code == 1
    assert "copy lines, but this is not a text file" in err
    assert not (tmp_path / "yes.csv").exists()
    code, _, err = run("predict", words[0], "-", "--input-format", "csv", *sort, input="word\nx\n")
    assert code == 2
    assert "save standard input to a file first" in err


def test_unscored_letters_are_reported_or_replaced(world, fitted, run, tmp_path):
    (tmp_path / "odd.fasta").write_text((world / "new.fasta").read_text() + ">odd\nMKV1LL\n")
    row = table(run("predict", fitted, tmp_path / "odd.fasta")[1])[-1]
    assert row["reason"].endswith("contains '1' at position 4, which is not scored with BLOSUM62")
    row = table(run("predict", fitted, tmp_path / "odd.fasta", "--unknown-letters", "X")[1])[-1]
    assert row["status"] != "unreadable"


def test_impossible_options_are_refused(world, fitted, run, tmp_path):
    code, _, err = predict(world, fitted, run, "--coverage", "0.5", "--classified-out", "a.fasta")
    assert code == 2
    assert "--ambiguous-below instead" in err
    other = tmp_path / "ikfd.krein"
    known = str(world / "known.fasta")
    pattern = ("--label-pattern", r"family=(\S+)")
    plain = ("--model", "ikfd", "--no-calibrate")
    assert run("fit", known, *pattern, *plain, "-o", str(other))[0] == 0
    code, _, err = run("predict", str(other), str(world / "new.fasta"), "--sets", "0.9")
    assert code == 1
    assert "--sets needs a model with held-out scores" in err
    rows = table(run("predict", str(other), str(world / "new.fasta"))[1])
    assert {row["status"] for row in rows} <= {"ok", "ambiguous"}
    assert "novelty" not in rows[0]


def test_dna_for_a_protein_model_is_warned_about_once(world, fitted, run, tmp_path):
    new = tmp_path / "dna.fasta"
    text = "".join(f">read{i}\n{'ACGTTGCAGG' * 8}\n" for i in range(9))
    new.write_text((world / "new.fasta").read_text() + text)
    code, _, err = run("predict", fitted, new, "-o", tmp_path / "labels.csv")
    assert code == 0
    rows = table((tmp_path / "labels.csv").read_text())
    told = {(row["status"], row["novelty"], row["reason"]) for row in rows[-9:]}
    assert told == {("novel", "0.000000", "of another kind: letters of DNA or RNA")}
    assert {row["reason"] for row in rows[:-9]} == {""}
    page = tmp_path / "why.html"
    assert run("explain", fitted, new, "--max", "100", "-o", page)[0] == 0
    assert page.read_text().count("Of a different kind from the training objects") == 9
    warning = "read0, read1, read2, read3, read4 and 4 more (letters of DNA or RNA)"
    assert err.count(warning) == err.count("krein: warning") == 1


def test_objects_of_another_kind_are_not_compared(world, fitted, run, tmp_path, monkeypatch):
    lengths = []
    block = SmithWaterman.block
    monkeypatch.setattr(
        SmithWaterman,
        "block",
        lambda self, A, B: lengths.append(map_lengths(A)) or block(self, A, B),
    )
    long = "".join(np.random.default_rng(1).choice(list("ACDEFGHIKLMNPQRSTVWY"), 5000))
    new = tmp_path / "long.fasta"
    new.write_text((world / "new.fasta").read_text() + f">long\n{long}\n")
    code, out, err = run("predict", fitted, new)
    assert code == 0
    assert lengths
    assert max(map(max, lengths)) < 1000
    row = table(out)[-1]
    assert (row["status"], row["label"], row["probability"]) == ("novel", "", "")
    assert row["reason"].startswith("of another kind: far longer than the training objects")
    assert "not compared, because they are of another kind: long" in err


def map_lengths(objects):
    return [len(one) for one in objects]


@pytest.fixture(scope="module")
def transposases(tmp_path_factory):
    """A model of two families, and the proteome of an organism that has few members of them."""
    folder = tmp_path_factory.mktemp("transposases")
    rng = np.random.default_rng(3)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    rows = []
    for c in ("IS3", "IS5"):
        ancestor = "".join(rng.choice(letters, 60))
        rows += [(f"{c}_{i}", c, s) for i, s in enumerate(family(rng, ancestor, 70))]
    rng.shuffle(rows)
    write_fasta(folder / "known.fasta", rows[:120])
    random = [("".join(rng.choice(letters, n))) for n in rng.integers(30, 90, 60)]
    half = [a[2][:30] + b[2][30:] for a, b in zip(rows[:20], rows[20:40], strict=True)]
    others = [(f"p{i}", "-", s) for i, s in enumerate([*random, *half])]
    others += [(f"d{i}", "-", "ACGTTGCAGG" * 8) for i in range(5)]
    write_fasta(folder / "proteome.fasta", [*rows[120:], *others])
    args = ["fit", str(folder / "known.fasta"), "--label-pattern", r"family=(\S+)"]
    result = CliRunner().invoke(krein, [*args, "-o", str(folder / "m.krein")])
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.parametrize("family", ["krein", "pcvm"])
def test_ambiguous_and_novel_objects_are_unclassified_everywhere(
    transposases, run, tmp_path, family
):
    model = transposases / "m.krein"
    if family == "pcvm":
        model = tmp_path / "pcvm.krein"
        options = ("--label-pattern", r"family=(\S+)", "--model", "pcvm", "-o", model)
        assert run("fit", transposases / "known.fasta", *options)[0] == 0
    yes, no, kraken = tmp_path / "yes.fasta", tmp_path / "no.fasta", tmp_path / "report.txt"
    rows = tmp_path / "rows.csv"
    code, _, err = run(
        "predict", model, transposases / "proteome.fasta", "-o", rows,
        "--classified-out", yes, "--unclassified-out", no, "--kraken-report", kraken,
    )  # fmt: skip
    assert code == 0
    found = table(rows.read_text())
    assert "rejected" not in found[0]
    by_status = Counter(row["status"] for row in found)
    # half of each of two families fits neither, or both about as well
    assert set(by_status) == {"known" if family == "krein" else "ok", "ambiguous", "novel"}
    known = {row["name"] for row in found if row["status"] in ("known", "ok")}
    assert set(open_source(yes).read().names) == known
    assert len(open_source(no).read().names) == len(found) - len(known)
    lines = [line.split("\t") for line in kraken.read_text().splitlines()]
    assert int(lines[0][1]) == len(found) - len(known)
    assert int(lines[1][1]) == len(known)
    assert f"{len(known)} of {len(found)} objects" in err
    told = f"{by_status['ambiguous']} ambiguous (probability below 0.8)"
    assert told in err
    assert f"{by_status['novel']} novel" in err


def test_text_for_a_model_of_numbers_is_one_error(world, fitted, run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    KreinClassifier("rbf").fit(X, np.arange(40) % 2).save(tmp_path / "x.krein")
    series = list(rng.normal(size=(40, 9)))
    KreinClassifier("dtw").fit(series, np.arange(40) % 2).save(tmp_path / "s.krein")
    for command in ("predict", "explain"):
        for model in ("x.krein", "s.krein"):
            code, out, err = run(command, tmp_path / model, world / "new.fasta")
            assert (code, out) == (1, "")
            assert "new.fasta: contains text (sequences in FASTA format), but the model" in err
        code, out, err = run(command, fitted, tmp_path / "x.csv")
        assert (code, out) == (1, "")
        assert "), but the model compares text by smith-waterman" in err


def test_the_lists_of_trusted_labels_and_novel_objects_match_the_library(world, fitted, run):
    code, out, _ = predict(world, fitted, run, "--fdr", "0.1")
    assert code == 0
    rows = table(out)
    clf, objects = load(fitted), open_source(world / "new.fasta").read().objects
    for name, mask in (
        ("label", clf.select(objects, fdr=0.1)),
        ("novel", clf.select(objects, fdr=0.1, novel=True)),
    ):
        assert mask.any()
        novel = name == "novel"
        np.testing.assert_array_equal(clf.select(world / "new.fasta", 0.1, novel=novel), mask)
        assert [name in row["selected"].split("|") for row in rows] == mask.tolist()
    np.testing.assert_allclose(
        [float(row["doubt"]) for row in rows], clf.assess(objects)["doubt"], atol=1e-6
    )


def test_a_list_is_written_with_its_size_and_without_unreadable_objects(world, fitted, run):
    text = (world / "new.fasta").read_text() + ">empty\n\n"
    (world / "some.fasta").write_text(text)
    target = world / "list.csv"
    code, _, err = run(
        "predict", str(fitted), str(world / "some.fasta"), "--fdr", "0.1", "-o", str(target)
    )
    assert code == 0
    rows = table(target.read_text())
    assert (rows[-1]["status"], rows[-1]["selected"]) == ("unreadable", "")
    n_labels = sum("label" in row["selected"] for row in rows)
    n_novel = sum("novel" in row["selected"] for row in rows)
    assert f"{n_labels} labels, {n_novel} novel; at most 10 % errors expected in each" in err
    whole = table(predict(world, fitted, run, "--fdr", "0.1")[1])
    assert [row["selected"] for row in rows[:-1]] == [row["selected"] for row in whole]


def test_lists_need_held_out_scores(world, run):
    data, target = str(world / "known.fasta"), str(world / "plain.krein")
    args = ["fit", data, "--label-pattern", r"family=(\S+)", "-o", target]
    assert run(*args, "--model", "ikfd", "--no-calibrate")[0] == 0
    code, _, err = run("predict", target, str(world / "new.fasta"), "--fdr", "0.1")
    assert code != 0
    assert "--fdr needs a model with held-out scores" in err


@pytest.mark.parametrize(
    ("unsure", "by_chance", "told"),
    [
        (2, 0, "2 ambiguous (probability below 0.8)"),
        (2, 1, "3 ambiguous (2 with a probability below 0.8, 1 no nearer than random objects)"),
        (0, 1, "1 ambiguous (1 no nearer than random objects)"),
    ],
)
def test_ambiguous_objects_are_counted_by_their_reason(unsure, by_chance, told):
    reasons = ["no genus is certain"] * unsure + [BY_CHANCE] * by_chance
    counts = Counts()
    counts.add({"name": f"{i}", "status": "ambiguous", "reason": r} for i, r in enumerate(reasons))
    assert counts.describe_others(0.8) == told
