"""Dtypes, their promotion and limits; devices, layouts and sizes."""

import copy
import pickle

import ml_dtypes
import numpy
import pytest

from adjoint import dtypes
from adjoint.device import (
    Size,
    channels_last,
    contiguous_format,
    device,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from adjoint.dtypes import Rank, promote

NAMES = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "complex32",
    "float8_e4m3fn",
    "float8_e5m2",
    "bool",
]
ALL = [getattr(dtypes, name) for name in NAMES]


@pytest.fixture(autouse=True)
def _default_dtype():
    yield
    dtypes.set_default_dtype(dtypes.float32)


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_dtype_survives_copies_and_pickles_as_itself(kind):
    assert copy.copy(kind) is kind
    assert copy.deepcopy([kind])[0] is kind
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(kind, protocol)) is kind


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_dtype_and_numpy_dtype_lead_to_each_other(kind):
    assert dtypes.from_numpy(kind.numpy) is kind
    assert dtypes.from_numpy(numpy.zeros(3, kind.numpy).dtype) is kind
    assert kind.itemsize == kind.numpy.itemsize
    assert repr(kind) == str(kind) == f"torch.{kind.name}"


def test_aliases_are_the_same_objects():
    assert dtypes.half is dtypes.float16
    assert dtypes.float is dtypes.float32
    assert dtypes.double is dtypes.float64
    assert dtypes.cfloat is dtypes.complex64
    assert dtypes.cdouble is dtypes.complex128
    assert dtypes.short is dtypes.int16
    assert dtypes.int is dtypes.int32
    assert dtypes.long is dtypes.int64


def test_categories():
    assert [k.name for k in ALL if k.is_floating_point] == [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "float8_e4m3fn",
        "float8_e5m2",
    ]
    assert [k.name for k in ALL if k.is_complex] == ["complex64", "complex128", "complex32"]
    assert [k.name for k in ALL if not k.is_signed] == ["uint8", "uint16", "uint32", "uint64", "bool"]


def test_dtypes_cannot_be_made():
    with pytest.raises(TypeError, match=r"cannot create 'torch.dtype' instances"):
        dtypes.dtype()


def test_real_and_complex_partners():
    assert dtypes.complex128.to_real() is dtypes.float64
    assert dtypes.int32.to_real() is dtypes.int32
    assert dtypes.float32.to_complex() is dtypes.complex64
    assert dtypes.complex64.to_complex() is dtypes.complex64
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Int"):
        dtypes.int32.to_complex()


@pytest.mark.parametrize(
    ("held", "error", "message"),
    [
        ("U1", TypeError, "can't convert np.ndarray of type numpy.str_. The only supported types are: float64"),
        ("O", TypeError, "can't convert np.ndarray of type numpy.object_."),
        (ml_dtypes.float8_e4m3, TypeError, "can't convert np.ndarray of type ml_dtypes.float8_e4m3."),
        (numpy.dtype("f4").newbyteorder(), ValueError, "byte order different from the native byte order"),
    ],
)
def test_arrays_that_no_tensor_can_hold(held, error, message):
    with pytest.raises(error, match=message):
        dtypes.from_numpy(numpy.dtype(held))


def test_default_dtype():
    assert dtypes.get_default_dtype() is dtypes.float32
    assert dtypes.get_default_complex() is dtypes.complex64
    dtypes.set_default_dtype(dtypes.float64)
    assert dtypes.get_default_dtype() is dtypes.float64
    assert dtypes.get_default_complex() is dtypes.complex128
    assert dtypes.scalar_dtype(1.5) is dtypes.float64


@pytest.mark.parametrize("wrong", [dtypes.int32, dtypes.complex64, dtypes.bool, "float32", float, numpy.float32, None])
def test_default_dtype_must_be_floating_point(wrong):
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        dtypes.set_default_dtype(wrong)
    assert dtypes.get_default_dtype() is dtypes.float32


def test_scalars_have_a_dtype():
    assert dtypes.scalar_dtype(True) is dtypes.bool
    assert dtypes.scalar_dtype(numpy.bool_(True)) is dtypes.bool
    assert dtypes.scalar_dtype(3) is dtypes.int64
    assert dtypes.scalar_dtype(numpy.int8(3)) is dtypes.int64
    assert dtypes.scalar_dtype(numpy.float64(3)) is dtypes.float32
    assert dtypes.scalar_dtype(1j) is dtypes.complex64
    with pytest.raises(TypeError):
        dtypes.scalar_dtype("3")


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("uint8", "int8", "int16"),
        ("bool", "uint8", "uint8"),
        ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
        ("float64", "complex64", "complex128"),
        ("uint64", "float32", "float32"),
        ("uint16", "uint16", "uint16"),
    ],
)
def test_promotion_of_pairs(first, second, result):
    first, second, result = (getattr(dtypes, name) for name in (first, second, result))
    assert dtypes.promote_types(first, second) is dtypes.promote_types(second, first) is result


def test_promotion_of_wide_unsigned_integers_is_an_error():
    with pytest.raises(
        RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported, attempted to "
    ):
        dtypes.promote_types(dtypes.uint16, dtypes.uint8)


def test_promotion_wants_dtypes():
    with pytest.raises(
        TypeError, match=r"promote_types\(\): argument 'type2' \(position 2\) must be torch.dtype, not int"
    ):
        dtypes.promote_types(dtypes.int8, 3)
    with pytest.raises(TypeError, match=r"can_cast\(\): argument 'from_' \(position 1\) must be torch.dtype, not list"):
        dtypes.can_cast([], dtypes.int8)


SCALAR, ZERO_DIM, DIMENSIONED = Rank


@pytest.mark.parametrize(
    ("operands", "result"),
    [
        ([("int32", DIMENSIONED), ("int64", SCALAR)], "int32"),
        ([("int32", DIMENSIONED), ("float32", SCALAR)], "float32"),
        ([("float16", DIMENSIONED), ("float64", ZERO_DIM)], "float16"),
        ([("uint8", DIMENSIONED), ("int8", ZERO_DIM)], "uint8"),
        ([("bool", DIMENSIONED), ("int64", SCALAR)], "int64"),
        ([("float64", DIMENSIONED), ("complex64", SCALAR)], "complex128"),
        ([("int32", ZERO_DIM), ("int64", SCALAR)], "int32"),
        ([("float64", ZERO_DIM), ("int8", DIMENSIONED)], "float64"),
        ([("int8", DIMENSIONED), ("int64", ZERO_DIM), ("float32", SCALAR)], "float32"),
        ([("int8", DIMENSIONED), ("int32", DIMENSIONED), ("int64", ZERO_DIM)], "int32"),
        ([("uint16", DIMENSIONED), ("complex64", SCALAR)], "complex64"),
        ([("uint16", DIMENSIONED), ("int64", SCALAR)], "uint16"),
        ([("float32", SCALAR)], "float32"),
    ],
)
def test_weaker_operands_count_only_by_category(operands, result):
    operands = tuple((getattr(dtypes, name), rank) for name, rank in operands)
    assert promote(operands) is promote(operands[::-1]) is promote(operands) is getattr(dtypes, result)


def test_promotion_of_nothing_is_an_error():
    with pytest.raises(TypeError):
        promote(())


def test_casting_may_not_drop_a_category():
    assert dtypes.can_cast(dtypes.int64, dtypes.int8)
    assert dtypes.can_cast(dtypes.bool, dtypes.float16)
    assert not dtypes.can_cast(dtypes.float16, dtypes.int64)
    assert not dtypes.can_cast(dtypes.complex64, dtypes.float64)
    assert not dtypes.can_cast(dtypes.uint8, dtypes.bool)


def test_limits_print_as_pytorchs():
    assert repr(dtypes.finfo()) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert repr(dtypes.finfo(dtypes.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, "
        "tiny=6.10352e-05, dtype=float16)"
    )
    assert repr(dtypes.iinfo(dtypes.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"


def test_limits_compare_by_dtype_and_do_not_hash():
    assert dtypes.finfo(dtypes.complex64) == dtypes.finfo(dtypes.float32) != dtypes.finfo(dtypes.float64)
    assert dtypes.iinfo(dtypes.int8) == dtypes.iinfo(dtypes.int8) != dtypes.iinfo(dtypes.uint8)
    assert dtypes.finfo(dtypes.float32) != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(dtypes.finfo())


def test_limits_of_the_wrong_kind():
    with pytest.raises(TypeError, match="requires a floating point input type"):
        dtypes.finfo(dtypes.int8)
    with pytest.raises(TypeError, match="requires an integer input type"):
        dtypes.iinfo(dtypes.float32)
    with pytest.raises(TypeError, match=r"torch.bool is not supported by torch.iinfo"):
        dtypes.iinfo(dtypes.bool)
    with pytest.raises(TypeError, match=r"iinfo\(\): argument 'type' \(position 1\) must be torch.dtype, not int"):
        dtypes.iinfo(3)


def test_device_from_text_and_from_parts():
    assert repr(device("cpu")) == "device(type='cpu')"
    assert repr(device("cuda:1")) == repr(device("cuda", 1)) == "device(type='cuda', index=1)"
    assert (device("cuda:1").type, device("cuda:1").index, str(device("cuda:1"))) == ("cuda", 1, "cuda:1")
    assert (str(device("cpu")), device("cpu").index) == ("cpu", None)
    assert device(type="cpu", index=0) == device(device("cpu:0"))


def test_device_is_a_value():
    assert device("cpu:0") == device("cpu", 0) != device("cpu")
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device("cpu"), device("cpu:0")}) == 2
    assert pickle.loads(pickle.dumps(device("cuda:1"))) == copy.deepcopy(device("cuda:1")) == device("cuda:1")
    with pytest.raises(AttributeError, match=r"attribute 'type' of 'torch.device' objects is not writable"):
        device("cpu").type = "cuda"
    with pytest.raises(AttributeError):
        device("cpu").name = "cpu"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("tpu",), RuntimeError, "Expected one of cpu, cuda, .* device type at start of device string: tpu"),
        (("",), RuntimeError, "Device string must not be empty"),
        (("cpu:",), RuntimeError, "Invalid device string: 'cpu:'"),
        (("cuda:01",), RuntimeError, "Invalid device string: 'cuda:01'"),
        (("cuda:99999999999",), RuntimeError, "Could not parse device index '99999999999' in device string"),
        (("cpu:0", 1), RuntimeError, "must not include an index because index was passed explicitly: cpu:0"),
        (("cuda", -1), RuntimeError, "Device index must not be negative"),
        ((-1,), RuntimeError, "Device index must not be negative"),
        ((0,), RuntimeError, "Cannot access accelerator device when none is available."),
        (("cpu", "1"), TypeError, r"device\(\): argument 'index' \(position 2\) must be int, not str"),
        ((1.5,), TypeError, r"device\(\) received an invalid combination of arguments - got \(float\)"),
        ((True,), TypeError, r"device\(\) received an invalid combination of arguments - got \(bool\)"),
    ],
)
def test_what_is_no_device(arguments, error, message):
    with pytest.raises(error, match=message):
        device(*arguments)


def test_layouts_and_memory_formats_are_single_objects():
    assert repr(strided) == "torch.strided"
    assert repr(channels_last) == "torch.channels_last"
    for constant in (strided, contiguous_format, preserve_format, channels_last):
        assert copy.deepcopy(constant) is copy.copy(constant) is pickle.loads(pickle.dumps(constant)) is constant
    with pytest.raises(TypeError, match=r"cannot create 'torch.layout' instances"):
        layout()
    with pytest.raises(TypeError, match=r"cannot create 'torch.memory_format' instances"):
        memory_format()


def test_size_is_a_tuple_that_stays_a_size():
    size = Size([2, 3, 4])
    assert size == (2, 3, 4)
    assert hash(size) == hash((2, 3, 4))
    for derived in (size[1:], size + (1,), (1,) + size, size * 2, 2 * size, size[::-1], size + size):
        assert type(derived) is Size
    assert (repr(size[1:]), repr((1,) + size)) == ("torch.Size([3, 4])", "torch.Size([1, 2, 3, 4])")
    assert type(size[0]) is int
    assert (size.numel(), Size().numel(), Size([3, 0]).numel()) == (24, 1, 0)
    for copied in (pickle.loads(pickle.dumps(size)), copy.deepcopy(size)):
        assert (type(copied), copied) == (Size, size)


def test_size_takes_whole_numbers_only():
    assert all(type(length) is int for length in Size([numpy.int64(3), True]))
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'float'\)"):
        Size([1, 2.0])
    with pytest.raises(TypeError, match=r"\(item 0 is 'numpy.float64'\)"):
        Size([numpy.float64(2)])
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        Size(3)
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        Size([1]) + [2]
