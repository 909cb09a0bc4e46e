"""CSV, TSV, lines and Parquet."""

import csv
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from krein.io import DataError, open_source


def written(tmp_path, text, name="a.csv", pack=lambda b: b):
    path = tmp_path / name
    path.write_bytes(pack(text if isinstance(text, bytes) else text.encode()))
    return str(path)


cell = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1).filter(
    lambda s: s.strip()
)


@given(
    rows=st.lists(st.tuples(cell, cell), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;\t"),
    pack=st.sampled_from([lambda b: b, gzip.compress, lzma.compress]),
)
def test_whatever_is_written_is_read(tmp_path_factory, rows, delimiter, pack):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([("word", "class"), *rows])
    path = written(tmp_path_factory.mktemp("t"), text.getvalue(), "a.csv", pack)
    source = open_source(path, objects="word", labels="class")
    chunk = source.read()
    assert chunk.objects == [row[0] for row in rows]
    assert chunk.labels == [row[1].strip() for row in rows]
    assert [n for c in source.chunks(2) for n in c.names] == [str(i) for i in range(len(rows))]


def test_lines_are_counted_through_quoted_newlines(tmp_path):
    text = 'id,text,class\na,"one\ntwo\nthree",x\n\nb,four,y\nc,,x\n'
    source = open_source(written(tmp_path, text))
    with pytest.raises(DataError, match=r"a\.csv, line 7, row 'c': the column 'text' is empty"):
        source.read()
    chunk = next(source.chunks(2))
    assert chunk.lines == [2, 6]
    assert chunk.names == ["a", "b"]
    assert chunk.labels == ["x", "y"]
    assert source.understood == "strings in the column 'text', labels in 'class', names in 'id'"


def test_columns_are_chosen_by_name_or_number(tmp_path):
    path = written(tmp_path, "a\tb\tc\nu\tv\tw\n", "a.tsv")
    chunk = open_source(path, objects="3", labels="a", names="2").read()
    assert (chunk.objects, chunk.labels, chunk.names) == (["w"], ["u"], ["v"])
    chunk = open_source(path, objects="3", header=False).read()
    assert chunk.objects == ["c", "w"]
    with pytest.raises(
        DataError, match="no column 'd' for the labels; the columns are 'a', 'b', 'c'"
    ):
        open_source(path, objects="a", labels="d")
    with pytest.raises(DataError, match="which column contains the objects"):
        open_source(path)


def test_columns_of_vectors_are_chosen_by_a_range(tmp_path):
    path = written(tmp_path, "label,a,b,c,d\nx,1,2,3,4\ny,5,6,7,8\n", "a.csv")
    for objects, expected in (
        ("3-5", [[2, 3, 4], [6, 7, 8]]),
        ("a,4-5", [[1, 3, 4], [5, 7, 8]]),
        ("2-2,5", [[1, 4], [5, 8]]),
    ):
        chunk = open_source(path, objects=objects).read()
        np.testing.assert_array_equal(chunk.objects, expected)
        assert chunk.labels == ["x", "y"]
    with pytest.raises(DataError, match="no column '6' for the objects"):
        open_source(path, objects="4-9")
    with pytest.raises(DataError, match="no column '5-3' for the objects"):
        open_source(path, objects="5-3")


def test_labels_of_a_table_from_another_file(tmp_path):
    path = written(tmp_path, "id,word\na,u\nb,v\n")
    table = written(tmp_path, "b,2\na,1\n", "labels.csv")
    assert open_source(path, labels=table).read().labels == ["1", "2"]
    assert open_source(path, label_pattern="(.)").read().labels == ["a", "b"]


SHAPES = [
    # text, kind, shape, names, labels
    ("1,2\n3,4\n", "matrix", (2, 2), ["0", "1"], None),
    ("7,2\n3,4\n5,6\n", "vectors", (3, 2), ["0", "1", "2"], None),
    ("x,y\n1,2\n3,4\n5,6\n", "vectors", (3, 2), ["0", "1", "2"], None),
    ("x,y\n1,2\n3,4\n", "matrix", (2, 2), ["0", "1"], None),
    (",x,y\nx,1,2\ny,3,4\n", "matrix", (2, 2), ["x", "y"], None),
    (",0,1\n0,1,2\n1,3,4\n", "matrix", (2, 2), ["0", "1"], None),  # pandas
    ("0,1\n1,2\n2,4\n", "matrix", (2, 2), ["0", "1"], None),  # numbered columns
    ('"V1" "V2"\n"a" 1 2\n"b" 3 4\n'.replace(" ", "\t"), "matrix", (2, 2), ["a", "b"], None),  # R
    ("a,1,2\nb,3,4\n", "matrix", (2, 2), ["a", "b"], None),
    ("a,b,class\n3,4,u\n5,6,v\n7,8,v\n", "vectors", (3, 2), ["0", "1", "2"], ["u", "v", "v"]),
    ("w,h,target\n3,4,1\n5,6,1\n7,8,2\n", "vectors", (3, 2), ["0", "1", "2"], ["1", "1", "2"]),
    ("id;w;h\np;3;4\nq;5;6\nr;7;8\n", "vectors", (3, 2), ["p", "q", "r"], None),
]


@pytest.mark.parametrize(("text", "kind", "shape", "names", "labels"), SHAPES)
def test_numbers_are_a_matrix_if_there_are_as_many_columns_as_rows(
    tmp_path, text, kind, shape, names, labels
):
    source = open_source(written(tmp_path, text))
    chunk = source.read()
    assert (source.kind, chunk.objects.shape, chunk.names) == (kind, shape, names)
    assert chunk.labels == labels
    assert open_source(written(tmp_path, text), format="vectors").kind == "vectors"
    assert open_source(written(tmp_path, text), format="matrix").kind == "matrix"


@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.data())
def test_numbers_survive_a_round_trip_exactly(tmp_path_factory, n, d, heading, data):
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    X = np.array([[data.draw(numbers) for _ in range(d)] for _ in range(n)])
    lines = [",".join(f"c{j}" for j in range(d))] if heading else []
    lines += [",".join(repr(float(x)) for x in row) for row in X]
    path = written(tmp_path_factory.mktemp("t"), "\n".join(lines))
    np.testing.assert_array_equal(open_source(path, format="vectors").read().objects, X)


BROKEN = [
    ("", "is empty"),
    ("a,b\n", "a header but no objects"),
    ("x,y\n1,2\n3\n5,6\n", r"line 3: has 1 fields, but the first row has 2"),
    ("x,y\n1,2\n3,\n5,6\n", r"line 3, row '1': the column 'y' contains '': a value is missing"),
    ("x,y\n1,2\n3,nan\n5,6\n", r"line 3, row '1': the column 'y' contains 'nan'"),
    ("x,y\n1,2\n3,NA\n5,6\n", r"line 3, row '1': the column 'y' contains 'NA'"),
    ("x,y\n1,2\n3,inf\n5,6\n", r"line 3, row '1': the column 'y' contains 'inf'"),
    ("x,y\n" + "1,2\n" * 30 + "3,four\n", r"line 32, row '30': .* 'four', which is not a number"),
    ('id,word\na,"never closed\n', r"line 2: unexpected end of data"),
    ("word,class\nu,x\nv,\n", r"line 3, string '1': has no label"),
    (b"word,class\nu,x\n\xff,y\n", r"line 3: byte 0xff is not UTF-8"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_tables_are_named_with_line_and_row(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        open_source(written(tmp_path, text)).read()
    assert "a.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lines_are_strings(tmp_path):
    chunk = open_source(written(tmp_path, "hello you\r\nworld\n", "a.txt")).read()
    assert chunk.objects == ["hello you", "world"]
    with pytest.raises(DataError, match=r"a\.txt, line 2: is empty"):
        open_source(written(tmp_path, "a\n\nb\n", "a.txt")).read()


def test_a_table_from_standard_input_loses_no_row(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"word,class\n" + b"".join(b"w%d,c\n" % i for i in range(50)))

    monkeypatch.setattr("sys.stdin", Stdin())
    chunks = list(open_source("-").chunks(7))
    assert [w for c in chunks for w in c.objects] == [f"w{i}" for i in range(50)]


def test_parquet_in_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    n = 50
    table = pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "sequence": ["MK" + "A" * i for i in range(n)],
            "family": [i % 3 for i in range(n)],
            "x": np.arange(n) / 2,
            "z": [[0.5] * (i + 1) for i in range(n)],
        }
    )
    path = str(tmp_path / "a.parquet")
    pq.write_table(table, path, row_group_size=8)
    source = open_source(path, objects="sequence")
    chunks = list(source.chunks(20))
    assert [len(c) for c in chunks] == [20, 20, 10]
    assert chunks[2].names[0] == "p40"
    assert chunks[2].labels[:3] == ["1", "2", "0"]
    assert source.read().objects == table["sequence"].to_pylist()
    series = open_source(path, objects="z")
    assert series.kind == "series"
    assert [s.shape for s in series.read().objects[:3]] == [(1, 1), (2, 1), (3, 1)]
    vectors = open_source(path, objects="x,family", format="vectors").read()
    np.testing.assert_array_equal(vectors.objects[:, 0], np.arange(n) / 2)
    with pytest.raises(DataError, match="no column 'nowhere' for the objects; the columns are"):
        open_source(path, objects="nowhere")
    pq.write_table(pa.table({"word": ["a", None]}), path)
    with pytest.raises(DataError, match=r"row 1 \('1'\): contains no object"):
        open_source(path).read()
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        open_source(tmp_path / "b.parquet")
