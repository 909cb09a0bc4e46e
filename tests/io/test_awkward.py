"""Files that earlier versions misread, or refused without a clear message."""

import gzip
import io
import sys

import numpy as np
import pytest

from krein.io import DataError, open_source


class Slow(io.RawIOBase):
    """A pipe that gives one byte at a time."""

    def __init__(self, content):
        self.content = content

    def readable(self):
        return True

    def readinto(self, buffer):
        part, self.content = self.content[:1], self.content[1:]
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("text", "kind", "first"),
    [
        (b"\xef\xbb\xbf\n\n>a\nACD\n>b\nAC\n", "sequences", "ACD"),
        (b"word,language\nhouse,en\n", "strings", "house"),
        (b"word\tid\nhouse\t1\n", "strings", "house"),
        (b"house\nmouse\n", "strings", "house"),
        (b"house", "strings", "house"),
        (b"@problemName x\n@data\n1,2\n", "series", None),
    ],
)
def test_a_slow_pipe_is_recognised_by_its_first_line(monkeypatch, text, kind, first, packed):
    content = gzip.compress(text) if packed else text
    pipe = io.TextIOWrapper(io.BufferedReader(Slow(content)))
    monkeypatch.setattr(sys, "stdin", pipe)
    objects = {"objects": "word"} if b"word" in text else {}
    source = open_source("-", **objects)
    chunk = source.read()
    assert source.kind == kind
    if first is not None:
        assert chunk.objects[0] == first


def test_a_closed_standard_input_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        open_source("-")


@pytest.mark.parametrize("start", [0, 1])
def test_consecutive_numbers_in_the_first_row_are_not_a_heading(tmp_path, start):
    first = ",".join(str(start + i) for i in range(3))
    (tmp_path / "v.csv").write_text(f"{first}\n4,1,0\n2,2,9\n7,0,1\n")
    assert len(open_source(tmp_path / "v.csv").read()) == 4
    (tmp_path / "k.csv").write_text(f"{first}\n1,2,3\n2,1,4\n3,4,1\n")
    source = open_source(tmp_path / "k.csv")
    assert (source.kind, len(source.read())) == ("matrix", 3)
    assert len(open_source(tmp_path / "k.csv", format="vectors").read()) == 4


def test_a_superscript_is_not_a_column_number(tmp_path):
    (tmp_path / "v.csv").write_text("a,b\n1,2\n3,4\n")
    for named in ({"objects": "²"}, {"objects": "1-²"}, {"labels": "²"}):
        with pytest.raises(DataError, match="²"):
            open_source(tmp_path / "v.csv", **named)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n\nb\n", r"y\.txt, line 2: is blank"),
        ("a\n  \nb\n", r"y\.txt, line 2: is blank"),
        ('a\n""\nb\n', r"y\.txt, line 2: is blank"),
        ("\na\nb\n", r"y\.txt, line 1: is blank"),
        ("a\nb,c\nd\n", r"y\.txt, line 2: has 2 fields, but the first line has 1"),
        ("\n\n", r"y\.txt: is empty"),
    ],
)
def test_a_missing_label_is_reported(tmp_path, text, message):
    (tmp_path / "w.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "y.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "w.txt", labels=str(tmp_path / "y.txt")).read()


def test_empty_lines_after_the_labels_are_ignored(tmp_path):
    (tmp_path / "w.txt").write_text("one\ntwo\n")
    (tmp_path / "y.txt").write_text("a\nb\n\n \n")
    chunk = open_source(tmp_path / "w.txt", labels=str(tmp_path / "y.txt")).read()
    assert chunk.labels == ["a", "b"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(["a", "", "b"]), r"y\.npy, object 1: has no label"),
        (np.array(["a", None, "b"], dtype=object), r"y\.npy: cannot be read .* pickled"),
        (np.array([b"a", b"\xff", b"b"]), r"y\.npy: a label is not UTF-8"),
    ],
)
def test_an_array_of_labels_is_checked(tmp_path, array, message):
    (tmp_path / "w.txt").write_text("one\ntwo\nthree\n")
    np.save(tmp_path / "y.npy", array, allow_pickle=True)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "w.txt", labels=str(tmp_path / "y.npy")).read()


def test_labels_cut_off_or_large(tmp_path):
    (tmp_path / "w.txt").write_text("one\ntwo\nthree\n")
    path = tmp_path / "y.npy"
    np.save(path, np.array([1e300, 2e300, 1.0]))
    labels = open_source(tmp_path / "w.txt", labels=str(path)).read().labels
    assert labels == ["1e+300", "2e+300", "1.0"]
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"y\.npy: cannot be read"):
        open_source(tmp_path / "w.txt", labels=str(path)).read()


@pytest.mark.parametrize("end", ["3,4", "1,2:wink", "1,2:4,5"])
def test_undeclared_labels_in_ts_are_refused(tmp_path, end):
    (tmp_path / "g.ts").write_text(f"@classLabel true wave point\n@data\n1,2:wave\n1,2:{end}\n")
    with pytest.raises(DataError, match=r"g\.ts, line 4, series 1: .*not one of .*\(wave, point\)"):
        open_source(tmp_path / "g.ts").read()


def test_a_packed_archive_is_unpacked(tmp_path):
    K = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "a.npz", K=K)
    (tmp_path / "a.npz.gz").write_bytes(gzip.compress((tmp_path / "a.npz").read_bytes()))
    np.testing.assert_array_equal(open_source(tmp_path / "a.npz.gz").read().objects, K)
    (tmp_path / "b.npz").write_bytes(b"neither one nor the other")
    with pytest.raises(DataError, match=r"b\.npz: cannot be read .* does not begin like a"):
        open_source(tmp_path / "b.npz")


def damaged(content):
    """Change bytes in the middle, where the packed values are."""
    middle = len(content) // 2
    return content[:middle] + bytes(b ^ 0x5A for b in content[middle : middle + 40]) + content[
        middle + 40 :
    ]  # fmt: skip


def test_an_archive_that_zip_cannot_read_is_named(tmp_path):
    path = tmp_path / "a.npz"
    rng = np.random.default_rng(0)
    np.savez_compressed(path, K=rng.integers(0, 9, (60, 3)).astype(float))
    content = path.read_bytes()
    path.write_bytes(damaged(content))
    with pytest.raises(DataError, match=r"a\.npz: cannot be read as \.npz"):
        open_source(path)
    for at, value in ((6, 1), (8, 99)):  # encrypted; an unknown compression method
        odd = bytearray(content)
        odd[at] = value
        central = content.rindex(b"PK\x01\x02")
        odd[central + at + 2] = value
        path.write_bytes(odd)
        with pytest.raises(DataError, match=r"a\.npz: cannot be read as \.npz"):
            open_source(path)


def test_members_that_are_not_arrays_are_skipped(tmp_path):
    import zipfile

    np.savez(tmp_path / "a.npz", K=np.ones((2, 3)))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("notes.txt", "no array")
        archive.writestr("bad.npy", "nor this")
    assert open_source(tmp_path / "a.npz").read().objects.shape == (2, 3)
    with pytest.raises(DataError, match="there is no array 'bad'"):
        open_source(tmp_path / "a.npz", objects="bad")


def test_parquet_columns_of_every_type(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    words, labels = ["house", "maus", "mouse"], ["en", "de", "en"]
    coats = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    if hasattr(pa, "string_view"):
        coats.append(pa.string_view())
    for coat in coats:
        try:
            table = pa.table({"word": pa.array(words).cast(coat), "label": pa.array(labels)})
            parquet.write_table(table, tmp_path / "w.parquet")
        except pa.ArrowNotImplementedError:
            continue
        chunk = open_source(tmp_path / "w.parquet").read()
        assert (chunk.objects, chunk.labels) == (words, labels)
    lists = pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64(), 2))
    parquet.write_table(pa.table({"x": lists, "label": labels}), tmp_path / "v.parquet")
    source = open_source(tmp_path / "v.parquet", objects="x", labels="label")
    assert source.kind == "vectors"
    np.testing.assert_array_equal(source.read().objects, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("method", ["__init__", "iter_batches"])
def test_whatever_the_parquet_reader_raises_is_a_data_error(tmp_path, monkeypatch, method):
    """Damaged page indexes raise a plain RuntimeError inside Arrow."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "w.parquet"
    parquet.write_table(pa.table({"word": ["haus", "maus"]}), path)

    def broken(*args, **kwargs):
        raise RuntimeError("Definition level histogram size mismatch, size: 4, expected: 3")

    monkeypatch.setattr(parquet.ParquetFile, method, broken)
    with pytest.raises(DataError, match="histogram size mismatch"):
        open_source(path).read()


def test_an_abort_inside_arrow_does_not_end_the_process(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table({"x": [[1.0, 2.0], [3.0, 4.0]], "label": ["a", "b"]}), path)
    source = open_source(path, objects="x", labels="label")
    assert len(source.read()) == 2
    monkeypatch.setattr("krein.io.parquet._COUNT_VALUES", "import os; os.abort()")
    with pytest.raises(DataError, match="is damaged"):
        source.read()


def test_a_packed_or_damaged_parquet_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "w.parquet"
    words = [str(i) * 40 for i in range(300)]
    parquet.write_table(pa.table({"word": words}), path, use_dictionary=False)
    content = path.read_bytes()
    (tmp_path / "w.parquet.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"w\.parquet\.gz: .* decompress the file first"):
        open_source(tmp_path / "w.parquet.gz")
    path.write_bytes(content[:4] + b"\xff" * 60 + content[64:])
    with pytest.raises(DataError, match=r"w\.parquet: is damaged"):
        open_source(path).read()


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\n<!DOCTYPE html>\n<html>\n\n</html>", "a web page"),
        (b"%PDF-1.4\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0", "an image"),
    ],
)
def test_other_documents_are_named(tmp_path, start, kind):
    path = tmp_path / "download"
    path.write_bytes(start)
    with pytest.raises(DataError, match=f"download: is {kind}, not data; expected fasta"):
        open_source(path)
