"""Files as they are: unlabelled records, tiny classes, repeated names, taxonomies."""

import csv
import html
import io
import json
import re

import numpy as np
import pytest

from krein import IKFD
from krein.landmarks.meb import SmallClassWarning

from .conftest import family, write_fasta

PATTERN = ("--label-pattern", r"family=(\S+)")
TAXA = [
    ("Bacteria", "Firmicutes", "Bacilli", "Lactobacillus"),
    ("Bacteria", "Firmicutes", "Clostridia", "Clostridium"),
    ("Bacteria", "Proteobacteria", "Gammaproteobacteria", "Vibrio"),
    ("Archaea", "Nanoarchaeota", "Nanoarchaeia", "Woesearchaeales"),
]
RANKS = "dpcg"


def reads(rng, ancestor, n):
    """Sequences that differ from an ancestor in about a tenth of the places."""
    found = []
    for _ in range(n):
        letters = np.array(list(ancestor))
        changed = rng.random(len(letters)) < 0.1
        letters[changed] = rng.choice(list("ACGT"), changed.sum())
        found.append("".join(letters))
    return found


@pytest.fixture(scope="module")
def taxa():
    """30 reads of each taxon for training, and 10 others."""
    rng = np.random.default_rng(0)
    ancestors = ["".join(rng.choice(list("ACGT"), 80)) for _ in TAXA]
    return [(path, reads(rng, a, 40)) for path, a in zip(TAXA, ancestors, strict=True)]


@pytest.fixture
def transposases(tmp_path):
    """Two families and some tiny ones, with unlabelled records among them."""
    rng = np.random.default_rng(1)
    rows = []
    for c, n in (("IS3", 30), ("IS5", 30), ("IS21", 3), ("IS110", 1)):
        ancestor = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 50))
        rows += [(f"{c}_{i}", c, s) for i, s in enumerate(family(rng, ancestor, n))]
    rng.shuffle(rows)
    path = tmp_path / "is.fasta"
    write_fasta(path, rows)
    others = family(rng, "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 50)), 4)
    with open(path, "a") as file:
        file.writelines(f">hypothetical_{i}\n{s}\n" for i, s in enumerate(others))
    return path


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_unlabelled_records_are_counted_or_skipped(transposases, run, tmp_path):
    code, _, err = run("fit", transposases, *PATTERN, "-o", tmp_path / "m.krein")
    assert code == 1
    assert "sequence 'hypothetical_0': the label pattern" in err
    assert "4 of 68 objects are without a label: --skip-unlabelled leaves them out" in err
    skip = ("--skip-unlabelled", "--min-class-size", "5")
    code, out, err = run("fit", transposases, *PATTERN, *skip, "-o", tmp_path / "m.krein")
    assert code == 0, err
    assert "60 objects" in out
    left_out = "4 objects without a label; 4 objects in classes of fewer than 5: 2 classes: "
    assert left_out + "IS21 (3), IS110 (1)" in err
    code, out, _ = run("inspect", tmp_path / "m.krein", "--json")
    assert sorted(json.loads(out)["classes"]) == ["IS3", "IS5"]
    # evaluation names the classes that stand in its way, and the option
    evaluate = ("evaluate", transposases, *PATTERN, "--compare", "ikfd", "--folds", "3")
    code, _, err = run(*evaluate, "--skip-unlabelled")
    assert code == 1
    assert "class 'IS110' has one object" in err
    assert "--min-class-size 2" in err
    code, out, err = run(*evaluate, *skip, "--json")
    assert code == 0, err
    assert json.loads(out)["objects"] == 60


@pytest.mark.parametrize("blank", ["", "  "])
def test_unlabelled_rows_of_a_table(files, run, blank):
    text = (files / "words.csv").read_text()
    (files / "some.csv").write_text(text + f"houses,{blank}\nmouses,{blank}\n")
    code, _, err = run("fit", "some.csv", "--labels", "language", "-o", "m.krein")
    assert code == 1
    assert "2 of 42 objects are without a label" in err
    code, out, err = run(
        "fit", "some.csv", "--labels", "language", "--skip-unlabelled", "-o", "m.krein"
    )
    assert code == 0, err
    assert "40 objects" in out
    assert "left out    2 objects without a label" in err


@pytest.mark.parametrize("labels", ["named.csv", "ordered.txt"])
def test_a_file_of_labels_that_lacks_some(files, run, labels):
    with open(files / "labels.csv") as file:
        rows = [line.strip().split(",") for line in file]
    (files / "named.csv").write_text(
        "".join(f"{a},{b}\n" for a, b in rows if a not in {"3", "5", "7"})
    )
    (files / "ordered.txt").write_text(
        "".join(("" if a in {"3", "5", "7"} else b) + "\n" for a, b in rows)
    )
    fit = ("fit", "distances.csv", "--distance", "--labels", labels, "-o", "m.krein")
    code, _, err = run(*fit)
    assert code == 1
    assert "no label" in err
    code, _, err = run(*fit, "--skip-unlabelled")
    assert code == 0, err
    assert "left out    3 objects without a label" in err
    # rows and columns of the others
    D = np.loadtxt(files / "distances.csv", delimiter=",")
    keep = [i for i in range(40) if i not in (3, 5, 7)]
    np.savetxt(files / "some.csv", D[np.ix_(keep, keep)], delimiter=",", fmt="%.17g")
    (files / "some.txt").write_text("".join(rows[i][1] + "\n" for i in keep))
    assert run("fit", "some.csv", "--distance", "--labels", "some.txt", "-o", "n.krein")[0] == 0
    np.savetxt(files / "new.csv", D[:, keep], delimiter=",", fmt="%.17g")
    found = [table(run("predict", m, "new.csv")[1]) for m in ("m.krein", "n.krein")]
    assert [row["probability"] for row in found[0]] == [row["probability"] for row in found[1]]


def test_a_large_file_leaves_out_the_same(files, run, monkeypatch):
    text = (files / "words.csv").read_text()
    (files / "some.csv").write_text(text + "houses,\nmousse,fr\n")
    skip = ("--skip-unlabelled", "--min-class-size", "2", "--model", "ikfd")
    fit = ("fit", "some.csv", "--labels", "language", *skip)
    assert run(*fit, "-o", "memory.krein")[0] == 0
    monkeypatch.setattr("krein.data.dataset.IN_MEMORY_OBJECTS", 20)
    monkeypatch.setattr("krein.data.opening.IN_MEMORY_OBJECTS", 20)
    code, out, err = run(*fit, "-o", "chunks.krein")
    assert code == 0, err
    assert "more than 20 objects" in out
    assert "40 in 2 classes, read in chunks" in out
    assert "left out    1 object without a label; 1 objects in classes of fewer than 2" in err


def test_records_that_cannot_be_read_are_left_out_if_asked(run, tmp_path):
    path, model = tmp_path / "some.fasta", tmp_path / "m.krein"
    good = "".join(f">s{i} family={'AB'[i % 2]}\n{'MW'[i % 2] * (5 + i)}\n" for i in range(20))
    path.write_text(">odd family=A\nMKT1\n>empty family=B\n\n" + good)
    words = ("fit", path, *PATTERN, "--model", "ikfd", "-o", model)
    code, _, err = run(*words)
    assert code == 1
    assert "'empty': contains no letters; --skip-unreadable leaves such objects out" in err
    code, out, err = run(*words, "--skip-unreadable")
    assert code == 0, err
    assert "2 objects that cannot be read or compared, such as" in err
    assert "20 objects: sequences" in out
    np.save(tmp_path / "v.npy", np.eye(4))
    code, _, err = run("fit", tmp_path / "v.npy", "--skip-unreadable", "-o", tmp_path / "v.krein")
    assert code == 2
    assert "--skip-unreadable is for objects in text and tables" in err


def test_no_labels_at_all(transposases, run, tmp_path):
    code, _, err = run(
        "fit", transposases, "--label-pattern", "nothing=(.)", "--skip-unlabelled",
        "-o", tmp_path / "m.krein",
    )  # fmt: skip
    assert code == 1
    assert "none of its 68 objects has a label" in err


def test_a_class_in_a_single_group_is_left_out(run, tmp_path):
    """The tutorial's own command, on families of which some are nearly copies of each other."""
    rng = np.random.default_rng(2)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    rows = []
    for c in ("wide", "broad"):
        rows += [
            (f"{c}{k}{i}", c, s)
            for k in range(4)
            for i, s in enumerate(family(rng, "".join(rng.choice(letters, 50)), 6))
        ]
    narrow = "".join(rng.choice(letters, 50))
    rows += [(f"narrow{i}", "narrow", narrow[:-1] + letters[i]) for i in range(8)]
    write_fasta(tmp_path / "f.fasta", rows)
    code, out, err = run(
        "evaluate", tmp_path / "f.fasta", *PATTERN, "--groups", "identity:0.4", "--compare",
        "ikfd", "--folds", "4", "--json",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["objects"] == 48
    assert "left out 1 of the classes (8 objects)" in err
    assert "narrow" in err


def unbroken(text):
    """Markup without the places where a long word may be divided."""
    return html.unescape(re.sub(r"<wbr>|\u200b", "", text))


def test_dada2_training_files(taxa, run, tmp_path):
    """The header is the taxonomy, so names repeat; there is a sign at its end."""
    path = tmp_path / "train_set.fa"
    path.write_text(
        "".join(f">{';'.join(taxon)};\n{s}\n" for taxon, sequences in taxa for s in sequences[:30])
    )
    model = tmp_path / "m.krein"
    code, out, err = run("fit", path, "--label-pattern", "(.+)", "-o", model)
    assert code == 0, err
    assert "4 classes: Lactobacillus (30), Clostridium (30), Vibrio (30)" in out
    new = tmp_path / "new.fa"
    new.write_text(
        "".join(f">{i}{t[3]}\n{s}\n" for t, found in taxa for i, s in enumerate(found[30:]))
    )
    report = tmp_path / "report.txt"
    code, out, err = run("predict", model, new, "--evidence", "1", "--kraken-report", report)
    assert code == 0, err
    rows = table(out)
    assert [row["label"].split(";")[3] for row in rows] == [row["name"][1:] for row in rows]
    assert any(re.search(r"; \(\d+\)$", row["nearest_1"]) for row in rows)
    lines = [line.split("\t") for line in report.read_text().splitlines()]
    ranks = {line[5].strip(): (line[3], int(line[1]), line[5]) for line in lines}
    known = sum(row["status"] == "known" for row in rows)
    assert ranks["root"][1] == known > 30
    assert [ranks[name][0] for name in TAXA[0]] == ["D", "P", "C", "O"]
    assert ranks["Bacteria"][1] + ranks["Archaea"][1] == known
    assert ranks["Firmicutes"][1] == ranks["Bacilli"][1] + ranks["Clostridia"][1]
    assert ranks["Bacilli"][2] == "      Bacilli"
    code, _, err = run("predict", model, new, "--label-ranks", ";", "-o", tmp_path / "o.csv")
    assert code == 0, err


@pytest.mark.parametrize(("separator", "sign"), [("; ", "__"), (",", ":")])
def test_qiime_and_sintax_taxonomies(taxa, run, tmp_path, separator, sign):
    """A table of identifiers and taxonomies, with ranks that have no name."""
    lines, fasta, new = [], [], []
    for t, (taxon, sequences) in enumerate(taxa):
        path = [f"{rank}{sign}{name}" for rank, name in zip(RANKS, taxon, strict=True)]
        if separator == "; ":
            path.append("s__")
        for i, s in enumerate(sequences):
            name = f"{t}{i:03}"
            if i < 30:
                lines.append(f"{name}\t{separator.join(path)}\n")
                fasta.append(f">{name}\n{s}\n")
            else:
                new.append(f">{name}\n{s}\n")
    (tmp_path / "seqs.fasta").write_text("".join(fasta))
    (tmp_path / "taxonomy.tsv").write_text("Feature ID\tTaxon\n" + "".join(lines))
    (tmp_path / "new.fasta").write_text("".join(new))
    labels = ("--labels", tmp_path / "taxonomy.tsv")
    code, out, err = run("fit", tmp_path / "seqs.fasta", *labels, "-o", tmp_path / "m.krein")
    assert code == 0, err
    assert f"g{sign}Vibrio (30)" in out
    assert (
        f"ranks       domain (2), phylum (3), class (4), genus (4), "
        f"separated by '{separator[0]}'" in out
    )
    report, ranked = tmp_path / "report.txt", tmp_path / "ranked.txt"
    predict = ("predict", tmp_path / "m.krein", tmp_path / "new.fasta")
    code, out, err = run(*predict, "--kraken-report", report)
    assert code == 0, err
    rows = [line.split("\t") for line in report.read_text().splitlines()]
    found = {line[5].strip(): line[3] for line in rows}
    assert [found[name] for name in TAXA[2]] == ["D", "P", "C", "G"]
    # one answer: the deepest rank that is certain enough, spelt as in the labels
    yes, output = tmp_path / "yes.fasta", tmp_path / "o.csv"
    files = ("-o", output, "--kraken-report", ranked, "--classified-out", yes)
    code, _, err = run(*predict, "--ambiguous-below", "0.99", *files)
    assert code == 0, err
    rows = table(output.read_text())
    known = [row for row in rows if row["status"] == "known"]
    assert {bool(row["rank_label"]) for row in known} == {True}
    assert {row["rank_label"] for row in rows if row["status"] != "known"} <= {""}
    given = {separator.join(line.split("\t")[1].rstrip("\n").split(separator)) for line in lines}
    assert all(any(path.startswith(row["rank_label"]) for path in given) for row in known)
    assert f"{len(known)} of {len(rows)} objects" in err
    assert yes.read_text().count(">") == len(known)
    counted = [line.split("\t") for line in ranked.read_text().splitlines()]
    assert int(counted[0][1]) == len(rows) - len(known)
    columns = ["domain", "phylum", "class", "genus"]
    for row in rows:
        P = [float(row[f"{name}_probability"]) for name in columns]
        assert sorted(P, reverse=True) == P
        depth = columns.index(row["rank"]) + 1 if row["rank"] else 0
        assert all(p >= 0.99 for p in P[:depth])
        assert bool(row["reason"]) == (depth < 4)
    # the page gives the same answers
    page, least = tmp_path / "why.html", ("--ambiguous-below", "0.99")
    code, _, err = run("explain", *predict[1:], "-o", page, *least, "--max", "1000")
    assert code == 0, err
    parts = page.read_text().split('<section id="o')[1:]
    assert len(parts) == len(rows)
    for row, part in zip(rows, parts, strict=True):
        assert f'<span class="status {row["status"]}">' in part
        name = row["rank_label"].split(separator)[-1].strip()
        shown = re.findall(r'<p class="verdict"><b>([^(]+)</b> \((\w+)\), with', part)
        assert [(unbroken(one), rank) for one, rank in shown] == [(name, row["rank"])] * bool(name)
        assert row["reason"] is None or row["reason"].lower() in unbroken(part).lower()


OWN = """
def shared(a, b):
    return float(len(set(a) & set(b)))

def apart(a, b):
    return float(len(set(a) ^ set(b)))

LONGEST = 3
"""


@pytest.mark.parametrize(
    ("name", "options"),
    [("shared", ()), ("apart", ("--measure-param", "kind=dissimilarity"))],
)
def test_a_measure_of_your_own(files, run, name, options):
    (files / "mine.py").write_text(OWN)
    measure = ("--measure", f"mine.py:{name}")
    fit = ("fit", "words.csv", "--objects", "word", "--labels", "language", *measure, *options)
    code, out, err = run(*fit, "--model", "ikfd", "-o", "m.krein", "--jobs", "2")
    assert code == 0, err
    assert f"mine.py:{name}" in out
    predict = ("predict", "m.krein", "words.csv", "--objects", "word")
    code, out, err = run(*predict, *measure)
    assert code == 0, err
    labels = [row["label"] for row in table(out)]
    namespace = {}
    exec(OWN, namespace)
    kind = {"kind": "dissimilarity"} if name == "apart" else None
    words = [line.split(",") for line in (files / "words.csv").read_text().split()[1:]]
    clf = IKFD(namespace[name], measure_params=kind, calibrate=True, random_state=0)
    clf.fit([word for word, _ in words], [language for _, language in words])
    assert labels == clf.predict([word for word, _ in words]).tolist()
    # a model file never names the code to run
    code, _, err = run(*predict)
    assert code == 1
    assert f"was fitted with the measure '{name}'" in err
    assert "--measure FILE.py:FUNCTION" in err
    code, _, err = run("explain", "m.krein", "words.csv", "--objects", "word", *measure)
    assert code == 0, err
    code, out, err = run("evaluate", *fit[1:], "--compare", "ikfd", "--folds", "2", "--json")
    assert code == 0, err


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("mine.py:nothing", "mine.py has no function 'nothing'; it has shared, apart"),
        ("mine.py:LONGEST", "mine.py has no function 'LONGEST'"),
        ("other.py:shared", "there is no file other.py"),
        ("broken.py:f", "broken.py cannot be run: ZeroDivisionError"),
    ],
)
def test_a_measure_that_cannot_be_loaded(files, run, measure, message):
    (files / "mine.py").write_text(OWN)
    (files / "broken.py").write_text("1 / 0")
    for command in (
        ("fit", "words.csv", "--labels", "language", "-o", "m.krein"),
        ("evaluate", "words.csv", "--labels", "language"),
    ):
        code, _, err = run(*command, "--measure", measure)
        assert code == 2
        assert message in err


def test_published_splits(files, fit, run):
    """Trained on one file, tested on the other: the probabilities of the same model."""
    with open(files / "new.fasta", "a") as file:
        file.write(">odd family=unheard\nMKVLAGHWKLMKVLAGHWKL\n")
    evaluate = ("evaluate", "families.fasta", "--test", "new.fasta", *PATTERN)
    code, out, err = run(*evaluate, "--compare", "krein,knn", "--json", "--report", "report.html")
    assert code == 0, err
    assert "1 test objects of unknown classes: unheard" in err
    found = json.loads(out)
    assert (found["objects"], found["trained_on"], found["folds"]) == (20, 70, 1)
    fit("families.fasta", *PATTERN, "-o", "model.krein")
    rows = table(run("predict", "model.krein", "new.fasta")[1])[:20]
    right = np.mean([row["label"] == row["name"].rstrip("0123456789") for row in rows])
    assert found["models"]["krein"]["accuracy"]["mean"] == pytest.approx(right)
    text = (files / "report.html").read_text()
    assert "The models were fitted to 70 others" in text
    code, _, err = run(*evaluate, "--groups", "identity:0.4")
    assert code == 2


def test_unbalanced_classes(tmp_path, run):
    rng = np.random.default_rng(0)
    path, new = tmp_path / "known.csv", tmp_path / "new.csv"
    X = np.concatenate([rng.normal(size=(300, 3)), rng.normal(1.5, 1, (8, 3))])
    labels = ["large"] * 300 + ["small"] * 8
    rows = [",".join(f"{v:.6f}" for v in row) for row in X]
    path.write_text(
        "x,y,z,label\n" + "".join(f"{r},{c}\n" for r, c in zip(rows, labels, strict=True))
    )
    X = np.concatenate([rng.normal(size=(100, 3)), rng.normal(1.5, 1, (100, 3))])
    new.write_text("x,y,z\n" + "".join(",".join(f"{v:.6f}" for v in row) + "\n" for row in X))
    found = {}
    for name, options in (("plain", ()), ("balanced", ("--class-weight", "balanced"))):
        model = tmp_path / f"{name}.krein"
        code, out, err = run("fit", path, "--measure", "rbf", *options, "-o", model)
        assert code == 0, err
        assert ("small has 8 of 308 objects: --class-weight balanced" in out) == (name == "plain")
        labels = [row["label"] for row in table(run("predict", model, new)[1])]
        found[name] = labels[100:].count("small")
    assert found["balanced"] > found["plain"] + 10
    code, _, err = run(
        "evaluate", path, "--measure", "rbf", "--class-weight", "balanced", "--compare",
        "ikfd,knn", "--folds", "2", "--json",
    )  # fmt: skip
    assert code == 0, err
    assert "knn takes no class weights" in err


def test_reads_on_the_other_strand(taxa, run, tmp_path):
    fasta = [
        (f"{t}_{i}", path[-1], s)
        for t, (path, found) in enumerate(taxa)
        for i, s in enumerate(found)
    ]
    write_fasta(tmp_path / "known.fasta", [row for row in fasta if int(row[0][2:]) < 30])
    new = [row for row in fasta if int(row[0][2:]) >= 30]
    turn = str.maketrans("ACGT", "TGCA")
    write_fasta(tmp_path / "new.fasta", new)
    turned = [(name, c, s[::-1].translate(turn)) for name, c, s in new]
    write_fasta(tmp_path / "turned.fasta", turned)
    assert run("fit", tmp_path / "known.fasta", *PATTERN, "-o", tmp_path / "m.krein")[0] == 0

    def predict(name, *options):
        code, out, err = run("predict", tmp_path / "m.krein", tmp_path / name, *options)
        assert (code, err) == (0, "")
        return table(out)

    straight, found = predict("new.fasta"), predict("turned.fasta")
    assert {row["strand"] for row in straight} == {"+"}
    back = [row["strand"] == "-" for row in found]
    assert np.mean(back) > 0.8  # a third of the letters differ, and reads are short
    for one, other, turned in zip(straight, found, back, strict=True):
        assert not turned or other == one | {"strand": "-"}
    for one, other in zip(straight, predict("turned.fasta", "--strand", "both"), strict=True):
        assert other["strand"] == "-"
        assert other["label"] == one["label"]
    kept = predict("turned.fasta", "--strand", "plus")
    assert {row["status"] for row in kept} == {"novel"}
    assert "strand" not in kept[0]
    unknown = run("predict", tmp_path / "m.krein", tmp_path / "new.fasta", "--strand", "minus")
    assert unknown[0] == 2


def test_many_classes_of_one_object_give_one_warning(run, tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdef"), 8)) for _ in range(60)]
    labels = ["a"] * 20 + ["b"] * 20 + [f"rare{i}" for i in range(20)]
    (tmp_path / "w.csv").write_text(
        "word,label\n" + "".join(f"{w},{c}\n" for w, c in zip(words, labels, strict=True))
    )
    options = ("--objects", "word", "--model", "ikfd", "--no-calibrate", "-o", tmp_path / "m.krein")
    code, _, err = run("fit", tmp_path / "w.csv", *options)
    assert code == 0, err
    assert err.count("krein: warning") == 1
    assert "20 of 22 classes have only one object" in err
    assert "rare0, rare1, rare2, rare3, rare4 and 15 more" in err
    assert "--min-class-size 2" in err
    with pytest.warns(SmallClassWarning, match="20 classes have one object each") as caught:
        IKFD("levenshtein").fit(words, labels)
    assert len(caught) == 1
    assert caught[0].message.rows == list(range(40, 60))
