"""Arrays of .npy, .npz and .mat files, and series of .ts files."""

import gzip
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from krein.io import DataError, open_source


def test_a_square_npy_is_a_matrix_and_stays_on_the_disk(tmp_path):
    K = np.arange(9.0).reshape(3, 3)
    np.save(tmp_path / "K.npy", K)
    source = open_source(tmp_path / "K.npy")
    chunk = source.read()
    assert source.kind == "matrix"
    assert isinstance(chunk.objects, np.memmap)
    np.testing.assert_array_equal(np.concatenate([c.objects for c in source.chunks(2)]), K)
    assert open_source(tmp_path / "K.npy", format="vectors").kind == "vectors"
    np.save(tmp_path / "y.npy", np.array([1.0, 2.0, 1.0]))
    assert open_source(tmp_path / "K.npy", labels=str(tmp_path / "y.npy")).read().labels == [
        "1",
        "2",
        "1",
    ]
    (tmp_path / "K.npy.gz").write_bytes(gzip.compress((tmp_path / "K.npy").read_bytes()))
    np.testing.assert_array_equal(open_source(tmp_path / "K.npy.gz").read().objects, K)


def test_other_shapes_are_vectors_and_series(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4)))
    assert open_source(tmp_path / "a.npy").kind == "vectors"
    assert open_source(tmp_path / "a.npy", format="series").kind == "series"
    np.save(tmp_path / "b.npy", np.ones((3, 4, 2)))
    assert open_source(tmp_path / "b.npy").kind == "series"
    np.save(tmp_path / "c.npy", np.ones(3))
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        open_source(tmp_path / "c.npy")
    np.save(tmp_path / "d.npy", np.ones((3, 3), dtype=complex))
    with pytest.raises(DataError, match="not real numbers"):
        open_source(tmp_path / "d.npy")


@pytest.mark.parametrize("suffix", ["npz", "mat"])
def test_archives_have_arrays_by_name(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    S, D = np.eye(4), 1 - np.eye(4)
    y = np.array(["u", "v", "u", "v"])

    def save(**arrays):
        if suffix == "npz":
            np.savez(path, **arrays)
        else:
            savemat(path, arrays)

    save(S=S, y=y)
    chunk = open_source(path).read()
    np.testing.assert_array_equal(chunk.objects, S)
    assert chunk.labels == ["u", "v", "u", "v"]
    save(S=S, D=D, y=np.array([1, 2, 1, 2]))
    with pytest.raises(DataError, match=r"which array .* 'S' \(4 × 4\), 'D' \(4 × 4\)"):
        open_source(path)
    chunk = open_source(path, objects="D").read()
    np.testing.assert_array_equal(chunk.objects, D)
    assert chunk.labels == ["1", "2", "1", "2"]


def test_arrays_that_are_missing_or_too_short_are_refused(tmp_path):
    path, S = tmp_path / "a.npz", np.eye(4)
    np.savez(path, S=S, D=1 - S, y=np.array([1, 2, 1, 2]))
    with pytest.raises(DataError, match="there is no array 'K'"):
        open_source(path, objects="K")
    with pytest.raises(DataError, match="there is no array 'classes'"):
        open_source(path, objects="S", labels="classes")
    np.savez(path, S=S, y=np.array([1, 2, 1]))
    with pytest.raises(DataError, match="3 values for the 4 objects"):
        open_source(path, labels="y")


def test_an_archive_of_three_dimensions_contains_series(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((5, 7, 2)), y=np.arange(5))
    assert open_source(tmp_path / "a.npz").kind == "series"


def test_missing_values_are_named(tmp_path):
    X = np.ones((5, 3))
    X[3, 1] = np.nan
    np.savez(tmp_path / "a.npz", X=X, names=np.array(list("abcde")))
    with pytest.raises(DataError, match=r"a\.npz, row 3 \('d'\): the value at \(1\) is nan"):
        open_source(tmp_path / "a.npz").read()
    chunks = open_source(tmp_path / "a.npz").chunks(2)
    next(chunks)
    with pytest.raises(DataError, match=r"row 3"):
        next(chunks)


def test_labels_of_a_file_are_found_by_the_names_in_an_array(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((4, 3)), who=np.array(list("abcd")))
    (tmp_path / "l.csv").write_text("name,label\nd,4\nc,3\nb,2\na,1\n")
    labels = str(tmp_path / "l.csv")
    chunk = open_source(tmp_path / "a.npz", names="who", labels=labels).read()
    assert (chunk.names, chunk.labels) == (list("abcd"), list("1234"))
    with pytest.raises(DataError, match="there is no array 'whom'"):
        open_source(tmp_path / "a.npz", names="whom", labels=labels)


class Bomb:
    def __reduce__(self):
        return (print, ("ran",))


def test_nothing_is_unpickled(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="may run code"):
        open_source(tmp_path / "a.npy")
    np.savez(tmp_path / "b.npz", X=np.array([Bomb()], dtype=object))
    with pytest.raises(DataError, match="without running code"):
        open_source(tmp_path / "b.npz")
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError):
        open_source(tmp_path / "c.npy")
    assert "ran" not in capsys.readouterr().out


def test_damaged_archives_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((50, 3)))
    content = (tmp_path / "a.npz").read_bytes()
    for broken in (content[: len(content) // 2], b"", b"PK\x03\x04 nothing"):
        (tmp_path / "a.npz").write_bytes(broken)
        with pytest.raises(DataError, match=r"a\.npz: cannot be read"):
            open_source(tmp_path / "a.npz")
    np.save(tmp_path / "b.npy", np.ones((50, 3)))
    content = (tmp_path / "b.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(content[:-100])
    with pytest.raises(DataError, match=r"b\.npy: cannot be read"):
        open_source(tmp_path / "b.npy")


def test_matlab_of_version_7_3_is_refused_with_a_remedy(tmp_path):
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\x00\x02IM"
    (tmp_path / "a.mat").write_bytes(header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataError, match=r"version 7\.3 \(HDF5\).*'-v7'"):
        open_source(tmp_path / "a.mat")
    (tmp_path / "b.mat").write_bytes(b"no such thing")
    with pytest.raises(DataError, match=r"b\.mat: cannot be read"):
        open_source(tmp_path / "b.mat")


TS = """# a comment
@problemName Gestures
@timeStamps false
@univariate false
@classLabel true wave point
@data
1,2,3:4,5,6:wave
1.5,2:0,-1e3:point
"""


def test_ts_with_channels_lengths_and_labels(tmp_path):
    path = tmp_path / "g.ts"
    path.write_text(TS)
    source = open_source(path)
    chunk = source.read()
    assert source.kind == "series"
    assert [s.tolist() for s in chunk.objects] == [
        [[1, 4], [2, 5], [3, 6]],
        [[1.5, 0], [2, -1000]],
    ]
    assert chunk.labels == ["wave", "point"]
    path.write_text("@univariate true\n@classLabel false\n@data\n1,2\n3,4\n")
    chunk = open_source(path).read()
    assert chunk.labels is None
    assert chunk.objects[1].tolist() == [[3], [4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TS + "1,?,2:1,2,3:wave\n", r"line 9, series 2: channel 0, time 1 contains '\?'"),
        (TS + "1,two:1,2:wave\n", r"line 9, series 2: channel 0, time 1 contains 'two', which"),
        (TS + "1,2:1:wave\n", r"line 9, series 2: its channels have different lengths"),
        (TS + "1,2:wave\n", r"line 9, series 2: has 1 channels, but series 0 has 2"),
        (TS + "1,2:3,4:\n", r"line 9, series '2': has no label"),
        (TS.replace("@data\n", ""), r"line 6: a \.ts file has lines of '@…'"),
        (TS.replace("Stamps false", "Stamps true"), r"line 3: series with time stamps"),
        ("@data\n", "contains no objects"),
        ("@problemName x\n", "has no line '@data'"),
    ],
)
def test_broken_ts_is_named(tmp_path, text, message):
    (tmp_path / "g.ts").write_text(text)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "g.ts").read()


def npy_header(version, header, values=b""):
    text = repr(header).encode() + b"\n"
    width = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(width, "little") + text + values


@pytest.mark.parametrize("dtype", ["<U0", "|S0", "|V0"])
def test_values_without_bytes_are_refused(tmp_path, dtype):
    """They take no bytes in the file, but NumPy would allocate some for each."""
    header = {"descr": dtype, "fortran_order": False, "shape": (400_000_000,)}
    content = npy_header(1, header)
    (tmp_path / "y.npy").write_bytes(content)
    (tmp_path / "y.npy.gz").write_bytes(gzip.compress(content))
    (tmp_path / "w.txt").write_text("one\ntwo\n")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("y.npy", content)
    tracemalloc.start()
    try:
        for name in ("y.npy", "y.npy.gz"):
            with pytest.raises(DataError, match=r"cannot be read as \.npy: .* values of 0 bytes"):
                open_source(tmp_path / name)
            with pytest.raises(DataError, match="values of 0 bytes"):
                open_source(tmp_path / "w.txt", labels=str(tmp_path / name))
        with pytest.raises(DataError, match="contains no arrays"):
            open_source(tmp_path / "a.npz")
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(50_000_000),  # a header of 4 GiB
        npy_header(9, {"descr": "<f8", "fortran_order": False, "shape": (1, 1)}, bytes(8)),
        npy_header(1, {"descr": "<f8", "fortran_order": False, "shape": (-1, 2)}),
        npy_header(1, {"descr": "<f8", "fortran_order": False, "shape": (0, 2**40, 2**40)}),
        npy_header(1, {"descr": "<f8", "fortran_order": False, "shape": (2**20, 2**20)}),
        npy_header(1, {"descr": "no type", "fortran_order": False, "shape": (2, 2)}),
        npy_header(1, "[" * 5000),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress])
def test_damaged_headers_take_no_memory(tmp_path, content, pack):
    path = tmp_path / ("a.npy" if pack(b"") == b"" else "a.npy.gz")
    path.write_bytes(pack(content))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"a\.npy.*: (cannot be read as \.npy|would take)"):
            open_source(path)
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_a_packed_matlab_file_is_unpacked(tmp_path):
    savemat(tmp_path / "a.mat", {"K": np.eye(3), "y": np.array(["u", "v", "u"], dtype=object)})
    (tmp_path / "a.mat.gz").write_bytes(gzip.compress((tmp_path / "a.mat").read_bytes()))
    chunk = open_source(tmp_path / "a.mat.gz").read()
    np.testing.assert_array_equal(chunk.objects, np.eye(3))
    assert chunk.labels == ["u", "v", "u"]


def test_matlab_arrays_that_are_not_data_are_named(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"K": np.eye(3) * 1j, "y": np.array(["u", 2.0, "u"], dtype=object)})
    with pytest.raises(DataError, match="array 'K': contains complex128, not real numbers"):
        open_source(path, label_pattern="(.)")
    savemat(path, {"K": np.eye(3), "y": np.array(["u", 2.0, "u"], dtype=object)})
    with pytest.raises(DataError, match="'y' contains cells that are not strings"):
        open_source(path)
    savemat(path, {"K": np.zeros((1000, 1000))}, do_compression=True)
    with pytest.raises(DataError, match=r"array 'K': would take 7\.63 MiB, more than "):
        open_source(path, max_size=2**20)
    assert open_source(path).read().objects.shape == (1000, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
def test_damaged_matlab_files_are_named(tmp_path, packed):
    path = tmp_path / "a.mat"
    savemat(path, {"K": np.random.default_rng(0).normal(size=(40, 40))}, do_compression=packed)
    content = path.read_bytes()
    middle = len(content) // 2
    huge = content.replace((12800).to_bytes(4, "little"), (2**31).to_bytes(4, "little"))
    for broken in (b"", content[:100], content[:middle], content[:-1], huge[: 2 * middle]):
        if broken == content:
            continue
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"a\.mat: cannot be read as \.mat"):
            open_source(path)


def test_a_matlab_array_without_dimensions_is_refused(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"y": "abcdef"})
    content = path.read_bytes()
    sizes = bytes([5, 0, 0, 0, 8, 0, 0, 0])  # eight bytes of dimensions follow
    assert content.count(sizes) == 1
    path.write_bytes(content.replace(sizes, bytes([5, 0, 0, 0, 0, 0, 0, 0])))
    with pytest.raises(DataError, match=r"a\.mat: cannot be read as \.mat"):
        open_source(path)
