"""The schema of model files, read from annotations: sizes that agree, limits, and unions."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from krein.core.shapes import (
    CODE,
    LOG,
    NON_NEGATIVE,
    POSITIVE,
    SHARE,
    Array,
    Codes,
    Indices,
    Within,
)
from krein.core.space import Signature
from krein.measures import Measure, get_measure
from krein.model import ESTIMATORS, find_estimator
from krein.model.landmark_map import LandmarkMap
from krein.model.model import Model
from krein.model.schema import (
    BYTES,
    LABELS,
    LOCAL,
    OBJECTS,
    OPTIONAL,
    Context,
    check_schema,
    decode,
    decode_attributes,
    encode,
    hints_of,
)


@dataclass(frozen=True)
class Part:
    values: Annotated[Array, "n m"]
    codes: Annotated[Codes, "n", CODE]


@dataclass(frozen=True)
class Whole:
    first: Part
    second: Annotated[Part, LOCAL] | None
    weights: Annotated[Array, "m", NON_NEGATIVE]


class Fitted:
    whole_: Annotated[Whole, LOCAL]
    counts_: Annotated[Array, "C"]
    size_: Annotated[int, "d", Within(1, 100)]
    names_: Annotated[NDArray[np.str_], "d", OPTIONAL]
    _private_: int
    parameter: int


def part(n=3, m=2, C=2):
    return Part(np.zeros((n, m)), np.arange(n) % C)


def check(value, hint, context=None):
    return decode(value, hint, "it", context or Context())


# -- sizes -----------------------------------------------------------------------------------------


def test_a_symbol_has_one_size():
    context = Context()
    assert context.bind("m", 3)
    assert context.bind("m", 3)
    assert not context.bind("m", 4)
    assert context.bind("m+2", 5)
    assert not context.bind("m+2", 3)
    assert not context.bind("k+2", 1)  # would be negative
    assert context.bind("H+2", 6)
    assert context.sizes["H"] == 4
    assert context.bind("7", 7)
    assert not context.bind("7", 8)
    assert context.bind("2*m", 6)
    assert not context.bind("2*m", 7)
    assert context.bind("2*n+1", 9)
    assert context.sizes["n"] == 4
    with pytest.raises(TypeError, match="'m-1' is not a size"):
        context.bind("m-1", 2)


def test_parts_with_local_symbols_share_only_classes_and_columns():
    context = Context(sizes={"m": 3, "C": 2, "d": 5})
    inner = context.within("part ")
    assert inner.bind("m", 4)
    assert not inner.bind("C", 3)
    assert not inner.bind("d", 4)
    assert context.sizes["m"] == 3


def test_sizes_agree_across_a_model():
    tree = encode(Whole(part(3), part(9, 5), np.ones(2)))
    found = check(tree, Whole)
    np.testing.assert_array_equal(found.second.values, np.zeros((9, 5)))
    assert check(encode(Whole(part(3), None, np.ones(2))), Whole).second is None
    with pytest.raises(ValueError, match=r"it.weights has the shape \(3,\), not \(m=2\)"):
        check(encode(Whole(part(3), None, np.ones(3))), Whole)
    tree["fields"]["first"]["fields"]["codes"] = np.zeros(4, dtype=int)
    with pytest.raises(ValueError, match=r"it.first.codes has the shape \(4,\), not \(n=3\)"):
        check(tree, Whole)


def test_indices_stay_below_a_size_that_may_be_known_later():
    context = Context()
    check(np.array([0, 4]), Annotated[Indices, "k", Within(0, below="m")], context)
    context.settle(end=False)  # nothing is known about m yet
    with pytest.raises(TypeError, match="it refers to 'm', a size that nothing sets"):
        context.settle()
    check(np.zeros(5), Annotated[Array, "m"], context)
    context.settle()
    check(np.array([5]), Annotated[Indices, "one", Within(0, below="m")], context)
    with pytest.raises(ValueError, match="contains 5, not below 5"):
        context.settle()
    with pytest.raises(ValueError, match="less than 0"):
        check(np.array([-1]), Annotated[Indices, "k", Within(0, below="m")])


def test_items_of_a_list_have_their_own_sizes():
    parts = Annotated[tuple[Part, ...], "H"]
    context = Context(sizes={"C": 2})
    assert len(check([encode(part(3, 2)), encode(part(5, 4))], parts, context)) == 2
    assert {k: size for k, size in context.sizes.items() if k != BYTES} == {"C": 2, "H": 2}
    known = Context(sizes={"m": 2})
    with pytest.raises(ValueError, match=r"it\[1\].values has the shape"):
        check([encode(part(3, 2)), encode(part(5, 4))], parts, known)
    with pytest.raises(ValueError, match="it has 1 items, not H=2"):
        check([encode(part())], parts, context)
    with pytest.raises(ValueError, match="it is not a list"):
        check("text", parts)


def test_a_number_may_bind_a_size():
    context = Context()
    assert check(4, Annotated[int, "d", Within(1)], context) == 4
    with pytest.raises(ValueError, match="it is 5, not d=4"):
        check(5, Annotated[int, "d", Within(1)], context)


def test_offsets_lead_from_the_first_entry_to_the_last():
    starts = Annotated[Indices, "rows+1", Within(0, spans="entries")]

    def offsets(*numbers):
        context = Context(sizes={"entries": 5})
        found = check(np.array(numbers, dtype=np.intp), starts, context)
        context.settle()
        return found

    assert offsets(0, 2, 2, 5).tolist() == [0, 2, 2, 5]
    for wrong, message in (
        ((0, 2**40, 5), "not in ascending order"),
        ((0, 3, 2, 5), "not in ascending order"),
        ((1, 5), "does not start at 0"),
        ((0, 4), "the end of it is 4, not 5"),
        ((0, 2**40), f"the end of it is {2**40}, not 5"),
        ((-1, 5), "less than 0"),
        ((), "has the shape"),
    ):
        with pytest.raises(ValueError, match=message):
            offsets(*wrong)


def test_ascending_numbers_are_not_shuffled():
    hint = Annotated[Array, "n", Within(ascending=True)]
    assert check(np.array([1.0, 1.0, 2.0]), hint).tolist() == [1.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="not in ascending order"):
        check(np.array([1.0, 2.0, 1.0]), hint)


def test_sizes_are_limited_by_the_bytes_of_a_model():
    length = Annotated[int, "length", Within(1, below="bytes")]
    for number, bytes_ in ((40, 41), (40, 40), (2**40, 10**6)):
        context = Context()
        check(number, length, context)
        check(np.zeros(bytes_, dtype=np.int8), Annotated[NDArray[np.int8], "n"], context)
        if number < bytes_:
            context.settle()
        else:
            with pytest.raises(ValueError, match=f"contains {number}, not below {bytes_}"):
                context.settle()
    empty = Context()
    check(np.zeros((0, 2**40)), Annotated[Array, "n m"], empty)
    with pytest.raises(ValueError, match=f"the shape of it contains {2**40}, not below 1"):
        empty.settle()


# -- the annotations themselves --------------------------------------------------------------------


def schema(**annotations):
    """Return a class with these annotations."""
    return dataclass(type("Made", (), {"__annotations__": annotations}))


GOOD = Annotated[Indices, "n", Within(0, below="m")]


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"a": GOOD}, "Made.a depends on 'm', a size that nothing sets"),
        ({"a": GOOD, "b": Annotated[Array, "m"] | None}, "Made.a depends on 'm'"),
        ({"a": GOOD, "b": Annotated[Array, "m"] | Annotated[Array, "k"]}, "Made.a depends on 'm'"),
        ({"a": GOOD, "b": tuple[Annotated[Array, "m"], ...]}, "Made.a depends on 'm'"),
        ({"a": GOOD, "b": Annotated[schema(c=Annotated[Array, "m"]), LOCAL]}, "Made.a depends"),
        ({"a": GOOD, "b": Annotated[Array, "m", OPTIONAL]}, "Made.a depends on 'm'"),
        ({"a": Annotated[Indices, "n", Within(0, spans="entries")]}, "depends on 'entries'"),
        ({"a": schema(b=Annotated[Array, "n", Within(0, below="q+1")])}, "Made.b depends on 'q'"),
        ({"a": Annotated[int, "C", Within(2)]}, "Made.a depends on 'C'"),
        ({"a": int}, "Made.a needs a limit"),
        ({"a": Annotated[int, Within(1)] | None}, "Made.a needs a limit"),
        ({"a": Annotated[Indices, "n", Within(0)]}, "Made.a needs a limit"),
        ({"a": tuple[Annotated[Codes, "n"], ...]}, "an item of Made.a needs a limit"),
    ],
    ids=str,
)
def test_annotations_without_a_limit_are_errors(annotations, message):
    with pytest.raises(TypeError, match=message):
        check_schema(schema(**annotations))


def test_annotations_with_limits_are_valid():
    check_schema(
        schema(
            a=GOOD,
            b=Annotated[Array, "m"],
            c=Annotated[int, "C", Within(2)],
            d=Annotated[NDArray[Any], LABELS, "C"],
            e=Annotated[Indices, "rows+1", Within(0, spans="entries")] | None,
            f=Annotated[NDArray[np.int32], "entries", Within(0, below="2*m")],
            g=tuple[schema(h=Annotated[Array, "k"], i=GOOD) | float, ...],
            j=Annotated[schema(k=GOOD, m=Annotated[Array, "m"]), LOCAL],
            l=Annotated[int, "length", Within(1, below="bytes")],
        )
    )


@pytest.mark.parametrize("name", ["Model", "LandmarkMap", *ESTIMATORS])
def test_every_limit_of_a_model_depends_on_a_size_that_it_has(name):
    check_schema({"Model": Model, "LandmarkMap": LandmarkMap}.get(name) or find_estimator(name))


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, True, "1", None, 1j])
def test_numbers_are_finite(number):
    with pytest.raises(ValueError, match=r"^it is not"):
        check(number, float)


@pytest.mark.parametrize(
    ("hint", "allowed", "refused"),
    [
        (Annotated[float, Within(infinite=(np.inf,))], [np.inf, 0], [-np.inf]),
        (Annotated[float, NON_NEGATIVE], [0, 0.0, 1e300], [-1e-300]),
        (Annotated[float, POSITIVE], [1e-300, 1], [0, 1e301]),
        (Annotated[float, SHARE], [0, 1], [-0.1, 1.1]),
        (Annotated[int, Within(1)], [1, 10**9], [0, 1.0, True, 2**60]),
        (int, [-3], [1.5, "1"]),
        (bool, [True, False], [1, 0, None]),
        (str, ["a"], [1, b"a"]),
        (Literal["a", "b"], ["a", "b"], ["c", 1, None, ["a"]]),
        (Literal[1.0, 0.5], [0.5], [0.25, "0.5", 1]),
        (float | None, [None, 1.0], ["x"]),
        (Signature, [[3, 2, 0]], [[3, -2, 0], [1, 2], "ab"]),
    ],
    ids=str,
)
def test_limits_of_plain_values(hint, allowed, refused):
    for value in allowed:
        found = check(value, hint)
        assert (list(found) if hint is Signature else found) == value
    for value in refused:
        with pytest.raises((ValueError, TypeError)):
            check(value, hint)


@pytest.mark.parametrize("number", [-np.inf, np.inf, np.nan])
def test_arrays_are_finite(number):
    with pytest.raises(ValueError, match="it contains values that are not finite"):
        check(np.array([0.0, number]), Annotated[Array, "n"])
    if number == -np.inf:
        low = np.array([0.0, number])
        np.testing.assert_array_equal(check(low, Annotated[Array, "n", LOG]), low)
        with pytest.raises(ValueError, match="contains no finite value"):
            check(low[1:], Annotated[Array, "n", LOG])
    else:
        with pytest.raises(ValueError, match="not finite"):
            check(np.array([0.0, number]), Annotated[Array, "n", LOG])


@pytest.mark.parametrize(
    ("array", "hint"),
    [
        (np.zeros(3, dtype=np.float32), Annotated[Array, "n"]),
        (np.zeros(3), Annotated[NDArray[np.float32], "n"]),
        (np.zeros(3, dtype=np.int64), Annotated[Array, "n"]),
        (np.zeros(3), Annotated[Indices, "n"]),
        (np.zeros(3), Annotated[Codes, "n"]),
        (np.zeros(3, dtype="S2"), Annotated[NDArray[np.str_], "n"]),
        (np.array(["a", 1], dtype=object), Annotated[NDArray[np.str_], "n"]),
        (np.zeros((3, 1)), Annotated[Array, "n"]),
        (np.array([-1.0]), Annotated[Array, "n", NON_NEGATIVE]),
        (np.array([1.5]), Annotated[Array, "n", SHARE]),
        ([0.0], Annotated[Array, "n"]),
        (None, Annotated[Array, "n"]),
    ],
)
def test_arrays_of_another_kind_are_refused(array, hint):
    with pytest.raises(ValueError, match=r"^it (contains|has|is)"):
        check(array, hint)


def test_codes_may_have_any_whole_type_and_byte_order():
    for dtype in ("i1", "<i4", ">i8", "u2"):
        found = check(np.arange(3, dtype=dtype), Annotated[Codes, "n"])
        np.testing.assert_array_equal(found, [0, 1, 2])
        assert found.dtype.isnative
    assert check(np.zeros(2, dtype=">f8"), Annotated[Array, "n"]).dtype.isnative


def test_the_first_alternative_that_fits_is_taken():
    hint = Annotated[float, SHARE] | Annotated[Array, "C", SHARE]
    context = Context(sizes={"C": 2})
    assert check(0.5, hint, context) == 0.5
    np.testing.assert_array_equal(check(np.array([0.5, 1.0]), hint, context), [0.5, 1.0])
    with pytest.raises(ValueError, match="has the shape"):
        check(np.zeros(3), hint, context)


def test_an_alternative_that_fails_leaves_no_trace():
    @dataclass
    class Other:
        values: Annotated[Array, "n m"]
        codes: Annotated[Indices, "n", Within(0, below="q")]
        label: str

    tree = {"class": "Part", "fields": {"values": np.zeros((3, 2)), "codes": np.array([0, 1, 1])}}
    context = Context(sizes={"C": 2})
    found = check(tree, Annotated[Array, "m n"] | Part, context)
    assert isinstance(found, Part)
    odd = {"class": "Other", "fields": {**tree["fields"], "label": "x"}}
    assert decode(odd, Part | Other, "it", context).label == "x"
    assert context.sizes["n"] == 3
    with pytest.raises(ValueError, match="it is not a Part"):
        check({"class": "Popen", "fields": {}}, Other | Part, context)


# -- classes ---------------------------------------------------------------------------------------


def test_only_named_classes_and_their_own_fields_are_built():
    tree = encode(part())
    for name in ("Whole", "os.system", None, 3):
        with pytest.raises(ValueError, match="it is not a Part"):
            check({**tree, "class": name}, Part)
    more = {**tree["fields"], "hidden": 1}
    with pytest.raises(ValueError, match="hidden is missing, or not a part"):
        check({**tree, "fields": more}, Part)
    del tree["fields"]["codes"]
    with pytest.raises(ValueError, match="codes is missing"):
        check(tree, Part)


def test_attributes_of_an_estimator_end_in_an_underscore():
    assert list(hints_of(Fitted)) == ["whole_", "counts_", "size_", "names_"]
    assert list(hints_of(Part)) == ["values", "codes"]


def test_attributes_are_declared_and_present_unless_optional():
    context = {"sizes": {"C": 2}}
    tree = {"whole_": encode(Whole(part(), None, np.ones(2))), "counts_": np.ones(2), "size_": 4}
    found = decode_attributes(tree, Fitted, Context(**context))
    assert set(found) == {"whole_", "counts_", "size_"}
    names = np.array(["a", "b", "c", "d"])
    found = decode_attributes({**tree, "names_": names}, Fitted, Context(**context))
    np.testing.assert_array_equal(found["names_"], names)
    with pytest.raises(ValueError, match="names_ has the shape"):
        decode_attributes({**tree, "names_": names[:3]}, Fitted, Context(**context))
    for odd in ("_private_", "parameter", "__dict__", "fit"):
        with pytest.raises(ValueError, match="is not an attribute of such a model"):
            decode_attributes({**tree, odd: 1}, Fitted, Context(**context))
    with pytest.raises(ValueError, match="whole_ is missing"):
        decode_attributes({"size_": 4}, Fitted, Context(**context))


def test_codes_beyond_the_classes_are_refused_at_the_end():
    tree = {"whole_": encode(Whole(part(C=3), None, np.ones(2))), "counts_": np.ones(2), "size_": 4}
    with pytest.raises(ValueError, match=r"codes contains 2, not below 2"):
        decode_attributes(tree, Fitted, Context(sizes={"C": 2}))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["a"]), "at least two labels"),
        (np.array(["a", "a"]), "a label twice"),
        (np.array([["a", "b"]]), "at least two labels"),
        (np.array(["a", None], dtype=object), "not numbers or strings"),
        (["a", "b"], "at least two labels"),
        (np.array([1, 2, 3]), "3 labels, not C=2"),
    ],
)
def test_labels(labels, message):
    hint = Annotated[NDArray[Any], LABELS, "C"]
    good = check(np.array(["a", "b"]), hint, Context(sizes={"C": 2}))
    assert good.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=message):
        check(labels, hint, Context(sizes={"C": 2}))


def test_objects_pass_the_check_of_the_measure():
    hint, words = Annotated[Any, OBJECTS, "m"], Context(get_measure("levenshtein"), {"m": 2})
    assert list(check(["a", "b"], hint, words)) == ["a", "b"]
    for wrong, message in (
        (["a"], "it has 1 objects, not m=2"),
        ("ab", "not a list of objects"),
        ([1, 2], "^it: "),
    ):
        with pytest.raises(ValueError, match=message):
            check(wrong, hint, words)
    vectors = Context(get_measure("manhattan"), {"m": 2, "d": 3})
    assert check(np.zeros((2, 3)), hint, vectors).shape == (2, 3)
    with pytest.raises(ValueError, match="it has 4 columns, not d=3"):
        check(np.zeros((2, 4)), hint, vectors)
    with pytest.raises(ValueError, match="it contains float32"):
        check(np.zeros((2, 3), dtype=np.float32), hint, vectors)


def test_columns_of_a_matrix_are_within_its_width():
    hint, context = Annotated[Any, OBJECTS, "m"], Context(get_measure("precomputed"), {"m": 2})
    tree = {"class": "PrecomputedColumns", "fields": {"columns": np.array([0, 4]), "width": 5}}
    assert len(check(tree, hint, context)) == 2
    tree["fields"]["width"] = 4
    with pytest.raises(ValueError, match="beyond 4"):
        check(tree, hint, Context(get_measure("precomputed"), {"m": 2}))


def test_a_measure_is_stored_by_name_and_parameters():
    measure = get_measure("elm", {"sigma": 3.0})
    context = Context()
    assert check(encode(measure), Measure, context) == measure
    assert context.measure == measure


def test_lazy_aliases_are_resolved() -> None:
    """From numpy 2.5 on, `NDArray` is such an alias."""
    extensions = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar", bound=np.generic)
    alias = extensions.TypeAliasType(
        "alias", np.ndarray[tuple[Any, ...], np.dtype[scalar]], type_params=(scalar,)
    )
    hint, codes = Annotated[alias[np.int64], "n", Within(0)], np.arange(3, dtype=np.int64)
    assert decode(codes, hint, "codes", Context()) is codes
    with pytest.raises(ValueError, match="codes contains float64, not int64"):
        decode(codes * 1.0, hint, "codes", Context())
