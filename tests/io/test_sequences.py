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
def test_fasta_is_read_in_any_wrapping(tmp_path, name, pack):
    source = open_source(written(tmp_path, FASTA, name, pack), label_pattern=r"family=(\w+)")
    for _ in range(2):  # a file can be read again
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
    ("a.fasta", b"", {}, r"a\.fasta: contains no objects"),
    ("noname", b"", {}, r"noname: is empty"),
    ("a.fasta", b"MKV\n", {}, r"a\.fasta, line 1: .* begins with '>'"),
    (
        "a.fasta",
        b">a\nMK\n>b\n>c\nMK\n",
        {},
        r"a\.fasta, line 3, sequence 'b': contains no letters",
    ),
    ("a.fasta", b">a\nMK\n>\nMK\n", {}, r"a\.fasta, line 3: the sequence has no name"),
    ("a.fasta", b">a\nMK\n>b caf\xe9\nMK\n", {}, r"a\.fasta, line 3: byte 0xe9 is not UTF-8"),
    ("a.fasta", "\ufeff>a\nMK\n".encode("utf-16"), {}, r"UTF-16"),
    (
        "a.fasta",
        b">a x=1\nMK\n>b\nMK\n",
        {"label_pattern": r"x=(\S)"},
        r"a\.fasta, line 3, sequence 'b': the label pattern 'x=\(\\S\)' does not match 'b'",
    ),
    (
        "a.fastq",
        b"@a\nMK\n+\nII\n@b\nMK\n+\nI\n",
        {},
        r"a\.fastq, line 5, sequence 'b': 2 letters but 1 qualities",
    ),
    ("a.fastq", b"@a\nMK\n", {}, r"line 1, sequence 'a': its third line .* truncated"),
    ("a.fastq", b">a\nMK\n", {}, r"line 1: a FASTQ record begins with '@'"),
    ("a.fasta", b"\x28\xb5\x2f\xfd123", {}, "compressed"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), BROKEN)
def test_broken_files_are_named_with_line_and_object(tmp_path, name, content, options, message):
    with pytest.raises(DataError, match=message) as caught:
        open_source(written(tmp_path, content, name), **options).read()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_truncated_file_is_not_mistaken_for_a_shorter_one(tmp_path, pack):
    text = "".join(f">s{i}\n{'MKVLAT' * (i % 50 + 1)}{i}\n" for i in range(20_000)).encode()
    packed = pack(text)
    path = written(tmp_path, packed[: len(packed) * 2 // 3], "a.fasta.z")
    with pytest.raises(DataError, match="ends too early; it may have been truncated"):
        open_source(path, format="fasta").read()
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 0xFF
    path = written(tmp_path, bytes(damaged), "b.fasta.z")
    with pytest.raises(DataError):
        open_source(path, format="fasta").read()


UNIPROT = ["sp|Q00001|PTPS_RAT", "tr|A0A002|A0A002_RAT", "sp|Q00003|ACT_HUMAN"]
NCBI = ["gi|11|ref|NP_01.1|", "gi|22|sp|Q00002|X_RAT", "gi|33|gb|AAB03.2|LOC"]


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (UNIPROT, UNIPROT),
        (UNIPROT, ["Q00001", "A0A002", "Q00003"]),
        (UNIPROT, ["PTPS_RAT", "A0A002_RAT", "ACT_HUMAN"]),
        (UNIPROT, ["Q00001.3", "A0A002.1", "Q00003.1"]),
        (["Q00001", "A0A002", "Q00003"], UNIPROT),
        (NCBI, ["11", "22", "33"]),
        (NCBI, ["NP_01.1", "Q00002", "AAB03.2"]),
        (NCBI, ["NP_01", "Q00002", "AAB03"]),
        (["ref|NP_01.1|", "ref|NP_02.4|"], ["NP_01", "NP_02"]),
        (["NP_01.1", "NP_02.4"], ["NP_01.2", "NP_02.2"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_table_may_contain_parts_of_the_identifiers(tmp_path, names, keys, size):
    path = written(tmp_path, "".join(f">{name} about\nACGT\n" for name in names))
    rows = [f"{key},class{i}\n" for i, key in enumerate(keys)]
    table = written(tmp_path, "".join(reversed(rows)), "labels.csv")
    chunks = open_source(path, labels=table).chunks(size)
    assert [c for chunk in chunks for c in chunk.labels] == [f"class{i}" for i in range(len(names))]


@pytest.mark.parametrize("heading", ["", "Entry\tEntry Name\tProtein families\n"])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_a_table_of_three_columns(tmp_path, heading, order):
    path = written(tmp_path, "".join(f">{name}\nACGT\n" for name in UNIPROT))
    rows = [(*name.split("|")[1:], f"class{i % 2}") for i, name in enumerate(UNIPROT)]
    if heading:
        rows = [tuple(heading.strip().split("\t")), *rows]
    text = "".join("\t".join(row[i] for i in order) + "\n" for row in rows)
    table = written(tmp_path, text, "labels.tsv")
    assert open_source(path, labels=table).read().labels == ["class0", "class1", "class0"]
    # one column of names and two others: the user must name that of the labels
    text = "Entry\tsize\tfold\n" + "".join(f"{n.split('|')[1]}\t1\tx\n" for n in UNIPROT)
    table = written(tmp_path, text, "wide.tsv")
    with pytest.raises(
        DataError, match=r"which column contains the labels\? The columns are Entry, size"
    ):
        open_source(path, labels=table).read()
    assert open_source(path, labels=f"{table}:fold").read().labels == ["x"] * 3


def test_one_form_of_the_names_must_match_all(tmp_path):
    path = written(tmp_path, "".join(f">{name}\nACGT\n" for name in UNIPROT))
    table = written(tmp_path, "Q00001,a\nA0A002_RAT,b\nQ00003,c\n", "labels.csv")
    message = (
        r"line 3, sequence 'tr\|A0A002\|A0A002_RAT': has no label in .*labels\.csv, where the "
        r"names are 'Q00001', 'A0A002_RAT', 'Q00003' \(looked for 'tr\|A0A002\|A0A002_RAT' or "
        r"'A0A002' or 'A0A002_RAT'\)"
    )
    for size in (1, 100):
        with pytest.raises(DataError, match=message):
            list(open_source(path, labels=table).chunks(size))


def test_two_versions_with_two_labels_are_refused(tmp_path):
    path = written(tmp_path, ">NP_01\nACGT\n")
    table = written(tmp_path, "NP_01.1,a\nNP_01.2,b\n", "labels.csv")
    with pytest.raises(DataError, match=r"line 2: 'NP_01.2' already has the label 'a', as 'NP_01"):
        open_source(path, labels=table).read()


def test_a_missing_label_names_the_sequence_and_the_table(tmp_path):
    path = written(tmp_path, ">a\nMK\n>b\nML\n")
    table = written(tmp_path, "a,globin\n", "labels.csv")
    with pytest.raises(DataError, match=r"line 3, sequence 'b': has no label in .*labels\.csv"):
        open_source(path, labels=table).read()
    table = written(tmp_path, "a,globin\nb,\n", "labels.csv")
    with pytest.raises(DataError, match=r"labels\.csv, line 2: 'b' has no label"):
        open_source(path, labels=table)
    table = written(tmp_path, "a,globin\nb,x\na,y\n", "labels.csv")
    with pytest.raises(DataError, match=r"line 3: 'a' already has the label 'globin'"):
        open_source(path, labels=table)
    lines = written(tmp_path, "label\nx\ny\n", "labels.txt")
    with pytest.raises(DataError, match="3 labels for 2 objects; is its first line a header"):
        open_source(path, labels=lines).read()
    with pytest.raises(DataError, match="no such file of labels"):
        open_source(path, labels="nowhere.csv")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "is not a valid regular expression"),
        ("x", "needs exactly one group"),
        ("(a)(b)", "has 2"),
    ],
)
def test_a_pattern_without_one_group_is_refused(tmp_path, pattern, message):
    with pytest.raises(ValueError, match=message):
        open_source(written(tmp_path, FASTA), label_pattern=pattern)


def test_invalid_paths_and_formats_are_reported(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        open_source(tmp_path / "none.fasta")
    with pytest.raises(DataError, match="is a folder"):
        open_source(tmp_path)
    with pytest.raises(ValueError, match="unknown format 'fast'"):
        open_source(written(tmp_path, FASTA), format="fast")


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress])
def test_standard_input_is_recognised_by_its_first_letters_and_read_once(monkeypatch, pack):
    class Stdin:
        buffer = io.BytesIO(pack(FASTA.encode()))

    monkeypatch.setattr("sys.stdin", Stdin())
    source = open_source("-")
    assert not source.rereadable
    assert source.read().names == ["sp|P1|A_X", "P2", "P3"]
    with pytest.raises(DataError, match="standard input can be read only once"):
        source.read()


def test_an_error_of_a_measure_is_located_in_the_file(tmp_path):
    from krein.measures import PairError, get_measure

    chunk = open_source(written(tmp_path, FASTA)).read()
    with pytest.raises(ValueError) as caught:
        get_measure("smith-waterman", {"unknown_letters": "fail"}).check(chunk.objects)
    said = str(chunk.located(caught.value))
    assert "a.fasta, line 6, sequence 'P2': contains '*' at position 4" in said
    assert (
        chunk.located(PairError(0, 2, "the value is nan"), 1)
        .args[0]
        .endswith("line 6, sequence 'P2': the value is nan")
    )
    assert str(chunk.located(ValueError("sequence 1 is odd"))) == f"{chunk.path}: sequence 1 is odd"


def test_zstd_is_read_if_it_is_installed(tmp_path, monkeypatch):
    zstd = pytest.importorskip("backports.zstd")
    path = tmp_path / "a.fasta.zst"
    path.write_bytes(zstd.compress(b">a\nMKV\n>b\nMKL\n"))
    assert open_source(path).read().objects == ["MKV", "MKL"]
    path.write_bytes(zstd.compress(b">a\nMKV\n" * 999)[:-9])
    with pytest.raises(DataError, match="compressed file"):
        open_source(path).read()
    monkeypatch.setattr("krein.io.streams.zstd", None)
    with pytest.raises(DataError, match="pip install backports"):
        open_source(path).read()
