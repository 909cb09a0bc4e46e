"""FASTA and FASTQ."""

import bz2
import gzip
import io
import lzma

import dnaio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from krein.io import DataError, open_source

FASTA = """>sp|P1|A_X first [family=globin]
MKV LA
GHT
; a comment

>P2 second [family=kinase]
mkt*
>P3 third [family=globin]
WWW
"""


def written(tmp_path, text, name="a.fasta", pack=lambda b: b):
    path = tmp_path / name
    path.write_bytes(pack(text if isinstance(text, bytes) else text.encode()))
    return str(path)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.fasta", lambda b: b),
        ("a.FA.gz", gzip.compress),
        ("a.faa.xz", lzma.compress),
        ("a.fna.bz2", bz2.compress),
        ("a.fasta.gz", lambda b: gzip.compress(b[:20]) + gzip.compress(b[20:])),
        ("plain.fasta.gz", lambda b: b),  # the name says gzip, the contents do not
        ("noname", lambda b: b),
        ("noname.gz", gzip.compress),
        ("dos.fasta", lambda b: b.replace(b"\n", b"\r\n")),
        ("mark.fasta", lambda b: b"\xef\xbb\xbf" + b),
    ],
)
def test_fasta_is_read_whatever_it_is_wrapped_in(tmp_path, name, pack):
    source = open_source(written(tmp_path, FASTA, name, pack), label_pattern=r"family=(\w+)")
    for _ in range(2):  # again and again
        chunk = source.read()
        assert chunk.names == ["sp|P1|A_X", "P2", "P3"]
        assert chunk.objects == ["MKVLAGHT", "mkt*", "WWW"]
        assert chunk.labels == ["globin", "kinase", "globin"]
    assert chunk.where(1).endswith(", line 6, sequence 'P2'")


def test_chunks_follow_each_other_and_know_their_place(tmp_path):
    source = open_source(written(tmp_path, FASTA))
    a, b = source.chunks(2)
    assert (a.first, a.names, a.labels) == (0, ["sp|P1|A_X", "P2"], None)
    assert (b.first, b.names, b.objects) == (2, ["P3"], ["WWW"])
    assert "line 8" in b.where(0)


letters = st.text("ACDEFGHIKLMNPQRSTVWY", min_size=1, max_size=130)


@given(sequences=st.lists(letters, min_size=1, max_size=8), width=st.integers(1, 70))
def test_fasta_agrees_with_another_reader(tmp_path_factory, sequences, width):
    lines = []
    for i, s in enumerate(sequences):
        lines += [f">s{i} class={len(s)}", *(s[k : k + width] for k in range(0, len(s), width))]
    text = "\n".join(lines)
    path = written(tmp_path_factory.mktemp("f"), text)
    chunk = open_source(path, label_pattern="class=(.*)").read()
    with dnaio.open(io.BytesIO(text.encode()), fileformat="fasta") as records:
        theirs = [(r.name.split()[0], r.sequence) for r in records]
    assert list(zip(chunk.names, chunk.objects, strict=True)) == theirs
    assert chunk.labels == [str(len(s)) for s in sequences]


@given(sequences=st.lists(letters, min_size=1, max_size=8))
def test_fastq_agrees_with_another_reader(tmp_path_factory, sequences):
    text = "".join(f"@r{i} x\n{s}\n+\n{'@' * len(s)}\n" for i, s in enumerate(sequences))
    chunk = open_source(written(tmp_path_factory.mktemp("f"), text, "a.fq")).read()
    with dnaio.open(io.BytesIO(text.encode()), fileformat="fastq") as records:
        assert list(zip(chunk.names, chunk.objects, strict=True)) == [
            (r.id, r.sequence) for r in records
        ]


def test_labels_come_from_a_table_of_names(tmp_path):
    path = written(tmp_path, ">a\nMK\n>b\nML\n")
    table = written(tmp_path, "id\tfamily\nb\tkinase\na\tglobin\nc\tother\n", "labels.tsv")
    assert open_source(path, labels=table).read().labels == ["globin", "kinase"]
    wide = written(tmp_path, "id,size,family\nb,1,kinase\na,2,globin\n", "wide.csv")
    assert open_source(path, labels=wide).read().labels == ["globin", "kinase"]
    assert open_source(path, labels=f"{wide}:size").read().labels == ["2", "1"]
    lines = written(tmp_path, "x\ny\n", "labels.txt")
    assert open_source(path, labels=lines).read().labels == ["x", "y"]


BROKEN = [
    ("a.fasta", b"", {}, r"a\.fasta: holds no objects"),
    ("noname", b"", {}, r"noname: is empty"),
    ("a.fasta", b"MKV\n", {}, r"a\.fasta, line 1: .* begins with '>'"),
    ("a.fasta", b">a\nMK\n>b\n>c\nMK\n", {}, r"a\.fasta, line 3, sequence 'b': holds no letters"),
    ("a.fasta", b">a\nMK\n>\nMK\n", {}, r"a\.fasta, line 3: the sequence has no name"),
    (
        "a.fasta",
        b">a\nMK\n>b\nMK\n>a\nML\n",
        {},
        r"a\.fasta, line 5, sequence 'a': the name was there before \(line 1",
    ),
    ("a.fasta", b">a\nMK\n>b caf\xe9\nMK\n", {}, r"a\.fasta, line 3: byte 0xe9 is not UTF-8"),
    ("a.fasta", "\ufeff>a\nMK\n".encode("utf-16"), {}, r"UTF-16"),
    (
        "a.fasta",
        b">a x=1\nMK\n>b\nMK\n",
        {"label_pattern": "x=(.)"},
        r"a\.fasta, line 3, sequence 'b': the label pattern 'x=\(\.\)' does not match 'b'",
    ),
    (
        "a.fastq",
        b"@a\nMK\n+\nII\n@b\nMK\n+\nI\n",
        {},
        r"a\.fastq, line 5, sequence 'b': 2 letters but 1 qualities",
    ),
    ("a.fastq", b"@a\nMK\n", {}, r"line 1, sequence 'a': its third line .* cut off"),
    ("a.fastq", b">a\nMK\n", {}, r"line 1: a FASTQ record begins with '@'"),
    ("a.fasta", b"\x28\xb5\x2f\xfd123", {}, "zstd"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), BROKEN)
def test_broken_files_are_named_with_line_and_object(tmp_path, name, content, options, message):
    with pytest.raises(DataError, match=message) as caught:
        open_source(written(tmp_path, content, name), **options).read()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_file_that_is_cut_off_is_not_taken_for_a_shorter_one(tmp_path, pack):
    text = "".join(f">s{i}\n{'MKVLAT' * (i % 50 + 1)}{i}\n" for i in range(20_000)).encode()
    packed = pack(text)
    path = written(tmp_path, packed[: len(packed) * 2 // 3], "a.fasta.z")
    with pytest.raises(DataError, match="ends too early; it was cut off"):
        open_source(path, format="fasta").read()
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 0xFF
    path = written(tmp_path, bytes(damaged), "b.fasta.z")
    with pytest.raises(DataError):
        open_source(path, format="fasta").read()


def test_a_missing_label_names_the_sequence_and_the_table(tmp_path):
    path = written(tmp_path, ">a\nMK\n>b\nML\n")
    table = written(tmp_path, "a,globin\n", "labels.csv")
    with pytest.raises(DataError, match=r"line 3, sequence 'b': has no label in .*labels\.csv"):
        open_source(path, labels=table).read()
    table = written(tmp_path, "a,globin\nb,\n", "labels.csv")
    with pytest.raises(DataError, match=r"labels\.csv, line 2: 'b' has no label"):
        open_source(path, labels=table)
    table = written(tmp_path, "a,globin\nb,x\na,y\n", "labels.csv")
    with pytest.raises(DataError, match=r"line 3: 'a' has the label 'globin' already"):
        open_source(path, labels=table)
    lines = written(tmp_path, "label\nx\ny\n", "labels.txt")
    with pytest.raises(DataError, match="3 labels for 2 objects; is its first line a heading"):
        open_source(path, labels=lines).read()
    with pytest.raises(DataError, match="no such file of labels"):
        open_source(path, labels="nowhere.csv")


@pytest.mark.parametrize(
    ("pattern", "message"), [("(", "is not one"), ("x", "needs one group"), ("(a)(b)", "has 2")]
)
def test_a_pattern_without_one_group_is_refused(tmp_path, pattern, message):
    with pytest.raises(ValueError, match=message):
        open_source(written(tmp_path, FASTA), label_pattern=pattern)


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        open_source(tmp_path / "none.fasta")
    with pytest.raises(DataError, match="is a folder"):
        open_source(tmp_path)
    with pytest.raises(ValueError, match="no format is called 'fast'"):
        open_source(written(tmp_path, FASTA), format="fast")


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress])
def test_standard_input_is_known_by_its_first_letters_and_read_once(monkeypatch, pack):
    class Stdin:
        buffer = io.BytesIO(pack(FASTA.encode()))

    monkeypatch.setattr("sys.stdin", Stdin())
    source = open_source("-")
    assert not source.rereadable
    assert source.read().names == ["sp|P1|A_X", "P2", "P3"]
    with pytest.raises(DataError, match="standard input can be read once only"):
        source.read()


def test_an_error_of_a_measure_is_told_in_terms_of_the_file(tmp_path):
    from krein.measures import get_measure

    chunk = open_source(written(tmp_path, FASTA)).read()
    with pytest.raises(ValueError) as caught:
        get_measure("smith-waterman").check(chunk.objects)
    said = str(chunk.located(caught.value))
    assert "a.fasta, line 6, sequence 'P2': contains '*' at position 4" in said
