"""`krein evaluate` and `krein demo`."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

from krein import load
from krein.cli import output
from krein.cli.commands import evaluate as evaluate_module
from krein.evaluation import AVAILABLE

PATTERN = ("--label-pattern", r"family=(\w+)")


def test_the_command_knows_every_model():
    assert set(evaluate_module.EVALUATED) == set(AVAILABLE)


def test_a_table_and_a_report(files, run):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    with open("families.fasta", "a") as file:
        file.write(">evil<script>alert(1)</script> family=globin\nMKVLAMKVLA\n")
    code, out, err = run("evaluate", "families.fasta", *PATTERN, "--folds", "3",
                         "--compare", "ikfd,knn", "--report", "report.html")  # fmt: skip
    assert (code, err) == (0, "")
    assert "smith-waterman, because the objects look like protein sequences" in out
    assert any(line.split()[:1] == ["ikfd"] for line in out.splitlines())
    assert out.rstrip().endswith("report.html")
    assert "\x1b" not in out
    page = (files / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "krein evaluate families.fasta --label-pattern" in page


@pytest.mark.parametrize(
    "command",
    [("demo",), ("evaluate", "families.fasta", *PATTERN, "--report", "report.html")],
    ids=lambda command: command[0],
)
def test_a_missing_extra_is_named_before_the_work(files, run, monkeypatch, command):
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    monkeypatch.setattr("krein.evaluation.evaluate", lambda *_, **__: pytest.fail("it began"))
    code, out, err = run(*command)
    assert code == 1
    assert out == ""
    assert err == 'krein: error: a report needs jinja2: pip install "krein[report]"\n'


@pytest.mark.filterwarnings("ignore:.*near-duplicate")
def test_the_worth_of_heads_and_looks_is_printed(files, run):
    options = ("words.csv", "--labels", "language", "--compare", "krein,knn", "--folds", "3")
    code, out, _ = run("evaluate", *options)
    assert code == 0
    told = {line[:12].strip(): line[12:] for line in out.splitlines()}
    code, out, _ = run("evaluate", *options, "--json")
    models = json.loads(out)["models"]
    assert models["knn"]["worth"] is None
    heads, looks = models["krein"]["worth"]["heads"], models["krein"]["worth"]["looks"]
    parts = told["pool"].split("; ")
    assert parts[0].startswith(f"krein: features weight {heads[0]['weight']:.2f}, log-loss")
    for part, head in zip(parts, heads, strict=False):
        for figure in (f"{head['weight']:.2f}", f"{head['alone']:.3f}", f"{head['without']:.3f}"):
            assert figure in part
    for part, look in zip(told["looks"].split("; "), looks, strict=True):
        assert part.startswith(look["name"]) or part.startswith(f"krein: {look['name']}")
        for figure in (f"{100 * look['share']:.0f} %", f"{look['log_loss']:.3f}"):
            assert figure in part


@pytest.mark.filterwarnings("ignore:.*near-duplicate")
def test_json_matches_the_library(files, run):
    from krein.evaluation import evaluate
    from krein.io import open_source

    options = ["--labels", "language", "--folds", "4", "--compare", "pcvm", "--seed", "2"]
    code, out, err = run("evaluate", "words.csv", *options, "--json")
    assert code == 0, err
    found = json.loads(out)
    chunk = open_source("words.csv", labels="language").read()
    mine = evaluate(
        chunk.objects, chunk.labels, "pcvm", measure="levenshtein", folds=4, random_state=2
    )
    assert found["models"]["pcvm"]["fold_accuracy"] == mine.models["pcvm"].fold_accuracy.tolist()
    assert found["objects"] == 40
    assert found["pairs"]["compared"] == mine.pairs.compared


def test_a_cache_serves_a_second_evaluation(files, run):
    line = ["evaluate", "words.csv", "--labels", "language", "--folds", "2", "--cache", "c"]
    line += ["--compare", "krein,ikfd"]
    first, second = run(*line), run(*line)
    assert first[0] == second[0] == 0
    assert "reused" not in first[1]
    assert "reused" in second[1]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--compare", "svm"], 2, "unknown model 'svm'"),
        (["--compare", "ikfd,ikfd"], 2, "list each model once"),
        (["--folds", "1"], 2, "Invalid value for '--folds'"),
        (["--folds", "900"], 1, "words.csv: --folds 900: must be"),
        (["--report", "none/r.html"], 1, "none/r.html: there is no folder none"),
    ],
)
def test_errors(files, run, args, code, message):
    found, _, err = run("evaluate", "words.csv", "--labels", "language", *args)
    assert found == code
    assert message in err
    assert err.startswith("krein: error: ")


def test_the_demo_writes_its_report(files, run, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: load_digits(n_class=3))
    code, out, err = run("demo", "--compare", "ikfd", "--folds", "2", "--report", "d.html")
    assert code == 0, err
    assert "537 digits, images of 8 × 8 pixels, in 3 classes" in out
    assert (files / "d.html").stat().st_size > 10_000


class TestGroups:
    @pytest.fixture
    def table(self, files):
        """Words in groups of four; the class is the parity of the group."""
        rows = []
        for i in range(40):
            word, stem = "abcdefghij"[i // 4] * 8 + "xyzu"[i % 4], i // 4
            rows.append(f"w{i},{word},{stem},{'de' if stem % 2 else 'en'}")
        (files / "g.csv").write_text("\n".join(["name,word,stem,language", *rows]) + "\n")
        lines = "".join(f"w{i},{i // 4}\n" for i in range(40))
        (files / "groups.csv").write_text(lines)
        return ["g.csv", "--labels", "language", "--objects", "word", "--names", "name",
                "--folds", "3", "--compare", "ikfd", "--json"]  # fmt: skip

    def test_a_column_a_file_and_the_measure_find_the_same_groups(self, table, run):
        told = []
        for groups in ("stem", "groups.csv", "identity:0.8"):
            code, out, err = run("evaluate", *table, "--groups", groups)
            assert (code, err) == (0, "")
            told.append(json.loads(out))
        assert [t["groups"] for t in told] == [10, 10, 10]
        assert (
            told[0]["models"]["ikfd"]["fold_accuracy"]
            == (told[1]["models"]["ikfd"]["fold_accuracy"])
        )
        assert told[2]["settings"]["groups"] == "identity:0.8"

    @pytest.mark.parametrize("model", ["krein", "ikfd"])
    def test_a_fit_holds_out_the_same_groups(self, table, files, run, model):
        fit = ["fit", *table[:7], "--model", model, "-o", "m.krein", "--force"]
        for groups in ("stem", "groups.csv", "identity:0.8"):
            code, out, err = run(*fit, "--groups", groups)
            assert (code, err) == (0, "")
            assert "10 groups, the largest of 4 objects, held out together" in out
            assert load(files / "m.krein", only_model=True).reference.smallest == pytest.approx(
                1 / 11
            )
        code, _, err = run(*fit, "--groups", "stem", "--cluster", "local")
        assert code == 2
        assert "--groups needs all objects in memory" in err
        code, _, err = run(*fit, "--groups", "stem", "--model", "pcvm")
        assert code == 2
        assert "add --calibrate" in err

    @pytest.mark.filterwarnings("default:.*have a near-duplicate")
    def test_near_duplicates_are_warned_about_without_groups(self, table, files, run):
        text = (files / "g.csv").read_text().replace("aaaaaaaax", "aaaaaaaay")
        (files / "g.csv").write_text(text.replace("bbbbbbbbx", "bbbbbbbby"))
        code, _, err = run("evaluate", *table, "--seed", "1")
        assert code == 0
        assert "krein: warning: " in err
        assert "have a near-duplicate (identity 0.9 or more) in another fold" in err

    @pytest.mark.parametrize(
        ("groups", "code", "message"),
        [
            ("identity:2", 2, "--groups identity:2: pass one group per object, or"),
            ("nobody", 1, "there is no column 'nobody' for the labels"),
            ("language", 1, "class 'de' is in a single group"),
        ],
    )
    def test_errors(self, table, run, groups, code, message):
        found, _, err = run("evaluate", *table, "--groups", groups)
        assert found == code
        assert message in err

    def test_standard_input_cannot_be_read_twice(self, table, run):
        code, _, err = run("evaluate", "-", *table[1:], "--groups", "stem", input="a,b\n")
        assert code == 2
        assert "save the data to a file" in err


class TestTaxonomy:
    """Labels that are paths, some of them short, some of one object."""

    @pytest.fixture
    def tables(self, files):
        rng = np.random.default_rng(0)
        letters = {"a;b;c": "abc", "a;b;d": "abd", "a;e;f": "fgh", "a;e;g": "fgi"}
        rows = [
            f"{label},{''.join(rng.choice(list(letters[label]), 12))}"
            for _ in range(12)
            for label in letters
        ]
        (files / "known.csv").write_text("\n".join(["taxon,read", *rows, "a;e;z,fzfzfzhzfz"]))
        short = [row.replace("a;e;f,", "a;e,") for row in rows[:16]] + ["x;y;z,qqqqqqqqqqqq"]
        (files / "new.csv").write_text("\n".join(["taxon,read", *short]))
        return ["--labels", "taxon", "--objects", "read", "--compare", "ikfd"]

    def test_every_test_object_is_scored_at_the_ranks_of_its_label(self, tables, run):
        options = ["known.csv", *tables, "--test", "new.csv"]
        code, out, err = run("evaluate", *options, "--label-ranks", ";")
        assert code == 0, err
        assert "5 test objects of unknown classes are scored by rank only" in err
        told = {line[:12].strip(): line[12:] for line in out.splitlines()}
        unknown = "1 more without a training object of that name"
        assert told["rank 1"].startswith("ikfd: 1 names, 16 objects, 100.0 % correct")
        assert told["rank 2"].startswith("ikfd: 2 names, 16 objects, 100.0 % correct")
        assert told["rank 3"].startswith("ikfd: 5 names, 12 objects, ")
        assert all(unknown in told[f"rank {k}"] for k in (1, 2, 3))
        assert "±" not in out
        share = re.search(r"([\d.]+) % of ([\d,]+)", told["compared"])
        assert float(share[1]) <= 100
        assert share[2] == f"{(49 + 17) ** 2:,}"
        code, out, err = run("evaluate", *options)
        assert "left out    5 test objects of unknown classes: " in err

    def test_ranks_are_called_by_their_prefixes(self, tables, files, run):
        text = (files / "known.csv").read_text()
        (files / "known.csv").write_text(
            text.replace("a;e", "f__a;g__e").replace("a;b", "f__a;g__b")
        )
        code, out, err = run("evaluate", "known.csv", *tables, "--folds", "3", "--label-ranks", ";")
        assert code == 0, err
        assert [line.split()[0] for line in out.splitlines() if "names," in line] == [
            "family", "genus", "rank",
        ]  # fmt: skip

    def test_a_separator_that_never_occurs_is_refused(self, tables, run):
        code, _, err = run("evaluate", "known.csv", *tables, "--label-ranks", "/")
        assert (code, "--label-ranks /: no label contains it" in err) == (1, True)

    def test_a_class_of_one_object_is_held_out_too(self, tables, run):
        code, out, err = run("evaluate", "known.csv", *tables, "--folds", "3", "--label-ranks", ";")
        assert code == 0, err
        assert "--class-weight" not in out
        assert "leave" not in err
        assert "1 of 5 classes has only one object, which counts for the ranks above it" in err
        told = {line[:12].strip(): line[12:] for line in out.splitlines()}
        assert told["rank 2"].startswith("ikfd: 2 names, 49 objects, ")
        assert told["rank 3"].startswith("ikfd: 5 names, 48 objects, ")
        code, out, err = run("evaluate", "known.csv", *tables, "--folds", "3")
        assert code == 1
        assert 'score it at the ranks above, with --label-ranks ";"' in err
