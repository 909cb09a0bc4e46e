"""JSON lines as a source of objects."""

import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from krein.io import DataError, open_source

WORDS = [
    {"id": "a", "word": "house", "language": "en", "size": 5},
    {"language": "de", "id": "b", "word": "haus"},
    {"id": "c", "word": "maus\n", "language": "de", "more": None},
]


def written(tmp_path, records, name="a.jsonl", pack=lambda b: b):
    path = tmp_path / name
    text = "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records)
    path.write_bytes(pack(text.encode() + b"\n"))
    return str(path)


@pytest.mark.parametrize(
    ("name", "pack"), [("a.jsonl", bytes), ("a.ndjson.gz", gzip.compress), ("a.data", bytes)]
)
def test_fields_are_objects_labels_and_names(tmp_path, name, pack):
    path = written(tmp_path, [WORDS[0], "", *WORDS[1:]], name, pack)
    source = open_source(path, objects="word", labels="language", names="id")
    assert source.kind == "strings"
    assert source.understood == (
        "strings in the field 'word', labels in 'language', names in 'id' of JSON lines"
    )
    chunk = source.read()
    assert chunk.objects == ["house", "haus", "maus\n"]
    assert chunk.labels == ["en", "de", "de"]
    assert chunk.names == ["a", "b", "c"]
    assert chunk.where(1) == f"{path}, line 3, string 'b'"
    # as in a table, usual names are understood
    assert open_source(path).read().names == ["a", "b", "c"]


def test_labels_may_be_numbers_or_in_another_file(tmp_path):
    path = written(tmp_path, [{"word": "a", "y": 1}, {"word": "b", "y": True}])
    assert open_source(path, objects="word", labels="y").read().labels == ["1", "true"]
    (tmp_path / "labels.txt").write_text("x\ny\n")
    beside = str(tmp_path / "labels.txt")
    assert open_source(path, objects="word", labels=beside).read().labels == ["x", "y"]


@pytest.mark.parametrize(
    ("records", "options", "kind", "shape"),
    [
        ([{"v": [1, 2]}, {"v": [3, 4]}], {"objects": "v"}, "vectors", (2,)),
        ([{"p": 1, "q": 2}, {"q": 3, "p": 4}], {}, "vectors", (2,)),
        ([{"p": 1, "q": 2}, {"q": 3, "p": 4}], {"objects": "q,p"}, "vectors", (2,)),
        ([{"p": 1}, {"p": 4}], {"objects": "p", "format": "vectors"}, "vectors", (1,)),
        ([{"v": [1, 2]}, {"v": [3]}], {"objects": "v", "format": "series"}, "series", (2, 1)),
        ([{"v": [[1, 2]]}, {"v": [[3, 4], [5, 6]]}], {"objects": "v"}, "series", (1, 2)),
        ([{"v": [0, 2]}, {"v": [2, 0]}], {"objects": "v", "format": "matrix"}, "matrix", (2,)),
    ],
)
def test_numbers(tmp_path, records, options, kind, shape):
    source = open_source(written(tmp_path, records), **options)
    assert source.kind == kind
    objects = source.read().objects
    assert np.shape(objects[0]) == shape
    fields = options.get("objects", "p,q").split(",")
    for found, record in zip(objects, records, strict=True):
        given = [record[f] for f in fields] if len(fields) > 1 else record[fields[0]]
        np.testing.assert_array_equal(np.ravel(found), np.ravel(given))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([WORDS[0], "{'word'"], r"a\.jsonl, line 2: is not JSON"),
        ([WORDS[0], "[1]"], r"line 2: contains \[1\]; a record must have named fields"),
        ([WORDS[0], {"id": "z"}], r"line 2, record 'z': has no field 'word'; its fields are id"),
        ([WORDS[0], {"word": 5}], r"record '1': the field 'word' contains 5, not a string"),
        ([WORDS[0], {"word": " "}], r"the field 'word' is empty"),
        (["", ""], "is empty"),
        ([{"word": [1, 2]}, {"word": [1, None]}], r"line 2.*\[1, null\].*finite numbers"),
        ([{"word": [1, 2]}, {"word": ["x"]}], r"line 2.*not a list of finite numbers"),
        ([{"text": "x"}], r"there is no column 'word' for the objects; the columns are 'text'"),
    ],
)
def test_broken_records_are_named(tmp_path, records, message):
    with pytest.raises(DataError, match=message):
        open_source(written(tmp_path, records), objects="word").read()


def test_a_pipe_loses_no_record(monkeypatch):
    text = "".join(json.dumps(record) + "\n" for record in WORDS)
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(text.encode())))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert open_source("-", objects="word").read().objects == ["house", "haus", "maus\n"]
