"""Tables of hits: what the programs write, in any order, with headers, gaps and faults."""

import bz2
import gzip
import lzma
import os
import threading

import numpy as np
import pytest

from krein.io import DataError
from krein.io.hits import BestHits, HitTable, groups_of_hits, queries, references

BLAST = [  # query, target, identity, …, e-value, bits
    ("a", "a", 100.0, 50, 0, 0, 1, 50, 1, 50, "0.0", 99.0),
    ("a", "b", 90.0, 50, 5, 0, 1, 50, 1, 50, "1e-40", 80.5),
    ("a", "b", 70.0, 20, 6, 0, 1, 20, 1, 20, "2e-05", 30.0),
    ("a", "c", 40.0, 40, 24, 0, 1, 40, 1, 40, "3e-09", 41.0),
    ("b", "a", 90.0, 50, 5, 0, 1, 50, 1, 50, "1e-40", 80.0),
    ("c", "d", 35.5, 40, 24, 0, 1, 40, 1, 40, "0.0", 22.0),
]
TEXT = "".join("\t".join(map(str, row)) + "\n" for row in BLAST)


@pytest.fixture
def table(tmp_path):
    def write(text, name="hits.tsv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return HitTable(str(path), **options)

    return write


def named(hits):
    """Return the hits as {(query, target): score}."""
    found = hits.graph.tocoo()
    pairs = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    return {(hits.queries[i], hits.targets[j]): score for i, j, score in pairs}


BITS = {("a", "b"): 80.5, ("a", "c"): 41.0, ("c", "d"): 22.0}
BITS |= {(t, q): score for (q, t), score in BITS.items()}


def test_twelve_columns_are_those_of_blast(table):
    hits = references(table(TEXT))
    assert hits.score == "bits"
    assert named(hits) == BITS
    assert (hits.counts.rows, hits.counts.itself) == (6, 1)


def columns(*wanted):
    return [[row[i] for i in wanted] for row in BLAST]


def lines(rows, separator="\t"):
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


FIELDS = "query acc.ver, subject acc.ver, % identity, alignment length, mismatches, gap opens, "
FIELDS += "q. start, q. end, s. start, s. end, evalue, bit score"
FORMS = {
    "outfmt 7": f"# BLASTP 2.12.0+\n# Query: a some text\n# Fields: {FIELDS}\n# 6 hits\n{TEXT}",
    "outfmt 7, few fields": "# Fields: query id, subject id, bit score\n"
    + lines(columns(0, 1, 11)),
    "outfmt 10": lines(BLAST, ","),
    "diamond, simple header": "qseqid\tsseqid\tbitscore\n" + lines(columns(0, 1, 11)),
    "mmseqs, header": "query\ttarget\tfident\tbits\n" + lines(columns(0, 1, 2, 11)),
    "carriage returns": TEXT.replace("\n", "\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "no last line end": TEXT.rstrip("\n"),
    "blank lines": "\n" + TEXT.replace("\n", "\n\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_programs_write_the_same_hits(table, form):
    assert named(references(table(FORMS[form]))) == BITS


def test_columns_can_be_named(table):
    text = lines(columns(11, 1, 0))
    hits = references(table(text, columns=["bits", "target", "query"]))
    assert named(hits) == BITS
    heading = "score\tsubject\tquery\n"
    assert named(references(table(heading + text, columns=["bits", "target", "query"]))) == BITS


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_compressed_tables(table, pack):
    assert named(references(table(pack(TEXT.encode())))) == BITS


def test_a_pipe_is_read_once(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)

    def write():
        with open(path, "w") as pipe:
            pipe.write(TEXT)

    writer = threading.Thread(target=write)
    writer.start()
    assert named(references(HitTable(path))) == BITS
    writer.join()


def test_vsearch_has_identities_only(table):
    rows = [(*row[:10], -1, 0) for row in BLAST] + [("e", "*", *[0.0] * 8, -1, 0)]
    hits = references(table(lines(rows)))
    assert hits.score == "identity"
    assert named(hits)["a", "b"] == 0.9  # a share, although the table has percentages
    assert "e" in hits.queries  # a query without a hit
    assert hits.graph[hits.queries.index("e")].nnz == 0


def test_cluster_format_of_vsearch(table):
    rows = [
        ("H", 1, 50, "90.0", "+", 0, 0, "50M", "a", "b"),
        ("N", "*", "*", "*", ".", "*", "*", "*", "e", "*"),
        ("S", 2, 50, "*", "*", "*", "*", "*", "f", "*"),
    ]
    hits = references(table(lines(rows), "hits.uc"))
    assert named(hits) == {("a", "b"): 0.9, ("b", "a"): 0.9}
    assert set(hits.queries) == {"a", "b", "e"}


def test_queries_without_hits_in_comments(table):
    text = f"# Query: e text\n# 0 hits found\n# Query: a\n# Fields: {FIELDS}\n{TEXT}"
    hits = queries(table(text), ["b", "c", "d"])
    assert hits.queries[0] == "e"
    assert hits.graph[0].nnz == 0


def test_an_e_value_of_0_is_the_best_but_finite(table):
    hits = references(table(lines(columns(0, 1, 10)), columns=["query", "target", "evalue"]))
    scores = named(hits)
    assert np.isfinite(hits.graph.data).all()
    assert scores["c", "d"] == max(scores.values()) == 180.0
    assert scores["a", "b"] == pytest.approx(40.0)


@pytest.mark.parametrize("score", ["bits", "12", "bitscore"])
def test_score_by_name_or_number(table, score):
    assert named(references(table(TEXT, score=score))) == BITS


def test_smaller_distances_are_better(table):
    text = "query\ttarget\trmsd\na\tb\t1.5\na\tb\t0.5\n"
    assert named(references(table(text, score="rmsd")))["a", "b"] == -0.5


class TestAnyOrder:
    """Property tests: what counts is the set of hits, however the table presents it."""

    def random_rows(self, seed, n=40, rows=600):
        rng = np.random.default_rng(seed)
        names = [f"n{i}" for i in range(n)]
        q, t = rng.integers(n, size=(2, rows))
        scores = rng.normal(50, 20, rows).round()  # with ties
        return [(names[i], names[j], s) for i, j, s in zip(q, t, scores, strict=True)]

    def read(self, table, rows, k=5):
        text = "query\ttarget\tbits\n" + lines(rows)
        found = named(references(table(text), k=k))
        return dict(sorted(found.items()))

    def dense(self, rows, k):
        """Return the k best of each object, from all pairs."""
        best = {}
        for q, t, score in rows:
            for pair in ((q, t), (t, q)):
                if q != t:
                    best[pair] = max(best.get(pair, -np.inf), score)
        found = {}
        for name in {q for q, _ in best}:
            own = sorted((-score, t) for (q, t), score in best.items() if q == name)
            found[name] = [-score for score, _ in own[:k]]
        return found

    @pytest.mark.parametrize("seed", range(3))
    def test_the_best_of_all_rows(self, table, seed, monkeypatch):
        monkeypatch.setattr(BestHits, "WAITING", 50)  # so that hits are kept in several rounds
        rows = self.random_rows(seed)
        found = {}
        for (q, _), score in self.read(table, rows).items():
            found.setdefault(q, []).append(score)
        assert {q: sorted(s, reverse=True) for q, s in found.items()} == self.dense(rows, 5)

    @pytest.mark.parametrize("seed", range(3))
    def test_order_of_rows(self, table, seed, monkeypatch):
        rows = sorted(set(self.random_rows(seed)))
        once = self.read(table, rows)
        monkeypatch.setattr(BestHits, "WAITING", 50)
        np.random.default_rng(seed).shuffle(rows)
        assert self.read(table, [tuple(row) for row in rows]) == once

    def test_direction(self, table):
        rows = self.random_rows(0)
        assert self.read(table, rows) == self.read(table, [(t, q, s) for q, t, s in rows])

    def test_split_and_repeated_hits(self, table):
        rows = self.random_rows(1)
        worse = [(q, t, score - 5) for q, t, score in rows]
        assert self.read(table, [*worse, *rows, *rows]) == self.read(table, rows)

    def test_blocks_of_any_size(self, table, monkeypatch):
        rows = self.random_rows(2)
        once = self.read(table, rows)
        monkeypatch.setattr("krein.io.hittable.BLOCK", 37)
        assert self.read(table, rows) == once


class TestFaults:
    def refused(self, read, *words):
        with pytest.raises(DataError) as caught:
            read()
        for word in words:
            assert word in str(caught.value)

    def test_nan(self, table):
        text = TEXT + lines([(*BLAST[1][:11], "nan")])
        self.refused(lambda: references(table(text)), "line 7", "'nan'", "bits")

    def test_not_a_number_after_comments(self, table):
        text = f"# Fields: {FIELDS}\n" + lines([(*BLAST[1][:11], "many")])
        self.refused(lambda: references(table(text)), "'many'", "bits")

    def test_a_row_that_was_cut_off(self, table):
        self.refused(lambda: references(table(TEXT + "a\tb\t90")), "line 7", "3 columns", "12")

    def test_unknown_columns(self, table):
        read = lambda: references(table(lines(columns(0, 1, 11))))  # noqa: E731
        self.refused(read, "3 columns", "query,target,bits")

    def test_a_header_of_unknown_names_is_not_a_hit(self, table):
        heading = "\t".join(f"name{i}" for i in range(12)) + "\n"
        self.refused(lambda: references(table(heading + TEXT)), "names of the columns")

    def test_no_such_score(self, table):
        self.refused(lambda: references(table(TEXT, score="tm")), "'tm'", "identity")

    def test_columns_without_a_target(self, table):
        self.refused(lambda: table(TEXT, columns=["query", "bits"]), "target")

    def test_text(self, table):
        self.refused(lambda: references(table(">a\nMKV\n")), "not a table of hits")

    def test_a_line_without_an_end(self, table):
        text = "a" * 5000
        self.refused(lambda: references(table(text, max_size=1000)), "line 1")

    @pytest.mark.parametrize("name", ["gzip", "backports.zstd"])
    def test_compressed_text_that_expands_to_far_more(self, table, name):
        packed = pytest.importorskip(name).compress(TEXT.encode() * 10_000)
        self.refused(lambda: references(table(packed, max_size=1000)), "unpacked")

    def test_a_negative_e_value(self, table):
        text = "query\ttarget\tevalue\na\tb\t-3\n"
        self.refused(lambda: references(table(text)), "line 2", "negative")


def test_a_cell_of_megabytes_does_not_widen_its_column(table):
    rows = [(f"q{i}", "t", i) for i in range(2000)] + [("x" * 2**20, "t", 1)]
    hits = references(table("query\ttarget\tbits\n" + lines(rows)))
    assert len(hits.queries) == 2002


def test_hits_to_unlabelled_objects_are_counted(table):
    hits = references(table(TEXT), lambda names: [name != "c" for name in names])
    assert named(hits) == {("a", "b"): 80.5, ("b", "a"): 80.5}
    assert (hits.counts.unknown_targets, hits.counts.unknown_queries) == (1, 1)


def test_hits_within_a_group_are_left_out(table):
    hits = references(table(TEXT), group_of={"a": 0, "b": 0, "c": 1, "d": 2}.get)
    assert ("a", "b") not in named(hits)
    assert ("a", "c") in named(hits)


class TestQueries:
    KNOWN = ("b", "c", "d")

    def test_targets_are_the_known_objects(self, table):
        hits = queries(table(TEXT), self.KNOWN)
        assert hits.graph.shape == (3, 3)
        assert hits.queries == ["a", "b", "c"]
        assert named(hits) == {("a", "b"): 80.5, ("a", "c"): 41.0, ("c", "d"): 22.0}
        assert hits.counts.unknown_targets == 2  # to a
        assert not hits.swapped

    def test_an_object_is_not_a_hit_of_itself(self, table):
        hits = queries(table("query\ttarget\tbits\nb\tb\t99\nb\tc\t3\n"), self.KNOWN)
        assert named(hits) == {("b", "c"): 3.0}
        assert hits.counts.itself == 1

    def test_swapped_columns_are_detected(self, table):
        text = "query\ttarget\tbits\nb\tx\t9\nc\ty\t3\n"
        hits = queries(table(text), self.KNOWN)
        assert hits.swapped
        assert named(hits) == {("x", "b"): 9.0, ("y", "c"): 3.0}

    def test_a_table_of_other_objects_is_refused(self, table):
        with pytest.raises(DataError, match=r"none of the targets.*'y'.*'b'"):
            queries(table("query\ttarget\tbits\nx\ty\t9\n"), self.KNOWN)


class TestIdentityGroups:
    def test_relatives_are_together(self, table):
        rows = [("a", "b", 95, 9), ("b", "c", 95, 9), ("d", "e", 99, 9), ("e", "f", 50, 9)]
        groups = groups_of_hits(table("query\ttarget\tpident\tbits\n" + lines(rows)), 0.9)
        assert groups["a"] == groups["b"] == groups["c"]  # b has most relatives
        assert groups["d"] == groups["e"]
        assert len(set(groups.values())) == 3

    def test_no_chains(self, table):
        rows = [(f"n{i}", f"n{i + 1}", 0.95, 9) for i in range(9)]
        groups = groups_of_hits(table("query\ttarget\tfident\tbits\n" + lines(rows)), 0.9)
        assert len(set(groups.values())) >= 4

    def test_order_of_rows(self, table):
        rng = np.random.default_rng(0)
        rows = [(f"n{i}", f"n{j}", int(s), 9) for i, j, s in rng.integers(0, 100, size=(500, 3))]
        heading = "query\ttarget\tpident\tbits\n"

        def partition(some):
            found = groups_of_hits(table(heading + lines(some)), 0.8)
            members = {}
            for name, group in found.items():
                members.setdefault(group, set()).add(name)
            return sorted(map(sorted, members.values()))

        assert partition(rows) == partition(rows[::-1])

    def test_a_table_without_identities(self, table):
        with pytest.raises(DataError, match="identities"):
            groups_of_hits(table("query\ttarget\tbits\na\tb\t9\n"), 0.9)


def test_memory_depends_on_the_result_not_on_the_table(monkeypatch):
    monkeypatch.setattr(BestHits, "WAITING", 1000)
    rng, best = np.random.default_rng(0), BestHits(5)
    for _ in range(100):
        rows, columns = rng.integers(20, size=500), rng.integers(10_000, size=500)
        best.add(rows, columns, rng.normal(size=500))
        assert len(best._kept[0]) <= 20 * 5
        assert best._n_waiting <= BestHits.WAITING + 500
    assert best.graph(20, 10_000).nnz == 100
