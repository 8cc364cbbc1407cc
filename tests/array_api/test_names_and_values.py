"""The array API standard: its names and signatures.

NumPy also implements the standard, so the tests compare values with NumPy's.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import adjoint as torch
from adjoint import array_api as xp

ELEMENTWISE_OF_ONE = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log10
    log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
""".split()
ELEMENTWISE_OF_TWO = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide greater
    greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal
    pow remainder subtract
""".split()
SIGNATURES = """
    all(x, /, *, axis, keepdims) any(x, /, *, axis, keepdims) arange(start, /, stop, step, *, dtype, device)
    argmax(x, /, *, axis, keepdims) argmin(x, /, *, axis, keepdims) argsort(x, /, *, axis, descending, stable)
    asarray(obj, /, *, dtype, device, copy) astype(x, dtype, /, *, copy, device) broadcast_arrays(*arrays)
    broadcast_shapes(*shapes) broadcast_to(x, /, shape) can_cast(from_, to, /) clip(x, /, min, max) concat(arrays, /, *, axis)
    count_nonzero(x, /, *, axis, keepdims) cumulative_prod(x, /, *, axis, dtype, include_initial)
    cumulative_sum(x, /, *, axis, dtype, include_initial) diff(x, /, *, axis, n, prepend, append) empty(shape, *, dtype, device)
    empty_like(x, /, *, dtype, device) expand_dims(x, /, axis) eye(n_rows, n_cols, /, *, k, dtype, device) finfo(type, /)
    flip(x, /, *, axis) from_dlpack(x, /, *, device, copy) full(shape, fill_value, *, dtype, device)
    full_like(x, /, fill_value, *, dtype, device) iinfo(type, /) isdtype(dtype, kind)
    isin(x1, x2, /, *, invert)
    linspace(start, stop, /, num, *, dtype, device, endpoint) matmul(x1, x2, /) matrix_transpose(x, /)
    max(x, /, *, axis, keepdims) mean(x, /, *, axis, keepdims) meshgrid(*arrays, indexing) min(x, /, *, axis, keepdims)
    moveaxis(x, source, destination, /) nonzero(x, /) ones(shape, *, dtype, device) ones_like(x, /, *, dtype, device)
    permute_dims(x, /, axes) prod(x, /, *, axis, dtype, keepdims) repeat(x, repeats, /, *, axis) reshape(x, /, shape, *, copy)
    result_type(*arrays_and_dtypes) roll(x, /, shift, *, axis) searchsorted(x1, x2, /, *, side, sorter)
    sort(x, /, *, axis, descending, stable) squeeze(x, /, axis) stack(arrays, /, *, axis)
    std(x, /, *, axis, correction, keepdims) sum(x, /, *, axis, dtype, keepdims) take(x, indices, /, *, axis)
    take_along_axis(x, indices, /, *, axis) tensordot(x1, x2, /, *, axes) tile(x, repetitions, /) tril(x, /, *, k)
    triu(x, /, *, k) unique_all(x, /) unique_counts(x, /) unique_inverse(x, /) unique_values(x, /) unstack(x, /, *, axis)
    var(x, /, *, axis, correction, keepdims) vecdot(x1, x2, /, *, axis) where(condition, x1, x2, /) zeros(shape, *, dtype, device)
    zeros_like(x, /, *, dtype, device)

    linalg.cholesky(x, /, *, upper) linalg.cross(x1, x2, /, *, axis) linalg.det(x, /) linalg.diagonal(x, /, *, offset)
    linalg.eigh(x, /) linalg.eigvalsh(x, /) linalg.inv(x, /) linalg.matmul(x1, x2, /) linalg.matrix_norm(x, /, *, keepdims, ord)
    linalg.matrix_power(x, n, /) linalg.matrix_rank(x, /, *, rtol) linalg.matrix_transpose(x, /) linalg.outer(x1, x2, /)
    linalg.pinv(x, /, *, rtol) linalg.qr(x, /, *, mode) linalg.slogdet(x, /) linalg.solve(x1, x2, /)
    linalg.svd(x, /, *, full_matrices) linalg.svdvals(x, /) linalg.tensordot(x1, x2, /, *, axes)
    linalg.trace(x, /, *, offset, dtype) linalg.vecdot(x1, x2, /, *, axis) linalg.vector_norm(x, /, *, axis, keepdims, ord)

    fft.fft(x, /, *, n, axis, norm) fft.ifft(x, /, *, n, axis, norm) fft.fftn(x, /, *, s, axes, norm)
    fft.ifftn(x, /, *, s, axes, norm) fft.rfft(x, /, *, n, axis, norm) fft.irfft(x, /, *, n, axis, norm)
    fft.rfftn(x, /, *, s, axes, norm) fft.irfftn(x, /, *, s, axes, norm) fft.hfft(x, /, *, n, axis, norm)
    fft.ihfft(x, /, *, n, axis, norm) fft.fftfreq(n, /, *, d, dtype, device) fft.rfftfreq(n, /, *, d, dtype, device)
    fft.fftshift(x, /, *, axes) fft.ifftshift(x, /, *, axes)
"""
STANDARD = dict(re.findall(r"([\w.]+)\(([^)]*)\)", SIGNATURES))
STANDARD |= dict.fromkeys(ELEMENTWISE_OF_ONE, "x, /") | dict.fromkeys(ELEMENTWISE_OF_TWO, "x1, x2, /")
OTHERS = """
    bool complex64 complex128 e fft float32 float64 inf int8 int16 int32 int64 linalg nan newaxis pi uint8 uint16 uint32 uint64
    __array_api_version__ __array_namespace_info__
""".split()


def named(space, path):
    for name in path.split("."):
        space = getattr(space, name)
    return space


@pytest.mark.parametrize("path", sorted(STANDARD))
def test_arguments_of_the_standard_are_accepted(path):
    found = inspect.signature(named(xp, path)).parameters
    positional, keywords, only_keywords = [], [], False
    for word in STANDARD[path].split(", "):
        if word == "/":
            positional, keywords = keywords, []
        elif word.startswith("*"):
            only_keywords = True
            assert word == "*" or found[word[1:]].kind is inspect.Parameter.VAR_POSITIONAL
        else:
            keywords.append(word)
            assert only_keywords or "/" in STANDARD[path] or word in found
    places = [each for each in found.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    assert len(places) >= len(positional)
    assert set(keywords) <= found.keys()


def test_the_namespace_has_the_names_of_the_standard_and_no_others():
    assert set(xp.__all__) == {path for path in STANDARD if "." not in path} | set(OTHERS)
    for part in ("linalg", "fft"):
        names = {path.partition(".")[2] for path in STANDARD if path.startswith(f"{part}.")}
        assert set(getattr(xp, part).__all__) == names
    assert len(xp.__all__) == len(set(xp.__all__))


def test_tensors_know_their_namespace():
    x = torch.ones(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match=r"unsupported version of the array API standard: '2019\.01'"):
        x.__array_namespace__(api_version="2019.01")


REAL = numpy.array([[0.25, -0.5, 0.75], [1.0, 0.0, -0.875]])
POSITIVE = numpy.abs(REAL) + 1.125
INTEGERS = numpy.array([[3, 1, -2], [0, 5, 4]])
VECTOR = numpy.array([3.0, 1.0, 2.0, 1.0, 3.0])
SQUARE = numpy.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 2.0]])
STACK = numpy.arange(24.0).reshape(2, 3, 4)


def as_tensors(value):
    if isinstance(value, numpy.ndarray):
        return torch.from_numpy(value.copy())
    return type(value)(map(as_tensors, value)) if type(value) in (list, tuple) else value


def agree(path, *operands, **options):
    """Assert that the function returns NumPy's values and dtype."""
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.1.0":
        pytest.skip("NumPy before 2.1 lacks parts of the standard")
    expected = named(numpy, path)(*operands, **options)
    found = named(xp, path)(*map(as_tensors, operands), **{key: as_tensors(value) for key, value in options.items()})
    several = isinstance(expected, (tuple, list))
    assert isinstance(found, tuple) == several
    for mine, theirs in zip(found, expected, strict=True) if several else [(found, expected)]:
        assert isinstance(mine, torch.Tensor)
        assert str(mine.dtype).removeprefix("torch.") == str(theirs.dtype)
        assert tuple(mine.shape) == theirs.shape
        numpy.testing.assert_allclose(mine.resolve_conj().numpy(), theirs, rtol=1e-6, atol=1e-12)


OF_INTEGERS_ONLY = {name for name in (*ELEMENTWISE_OF_ONE, *ELEMENTWISE_OF_TWO) if name.startswith("bitwise")}
OF_LOGIC = {"logical_and", "logical_not", "logical_or", "logical_xor"}
OF_POSITIVE = {"acosh", "log", "log2", "log10", "sqrt", "reciprocal"}
OF_REALS_ONLY = {"ceil", "floor", "trunc", "signbit"}
OF_INTEGERS_TOO = {*"abs ceil floor isinf isnan negative positive round sign square trunc".split()}
OF_FLOATS_ONLY = {"divide", "signbit", "nextafter", "hypot", "logaddexp", "copysign", "atan2", "reciprocal"}


@pytest.mark.parametrize("name", ELEMENTWISE_OF_ONE)
def test_elementwise_functions_of_one_operand(name):
    if name in OF_INTEGERS_ONLY:
        agree(name, INTEGERS)
        return
    if name in OF_LOGIC:
        agree(name, INTEGERS > 1)
        return
    agree(name, POSITIVE if name in OF_POSITIVE else REAL * 0.75)
    if name not in OF_REALS_ONLY:
        agree(name, REAL * 0.75 + 1j * POSITIVE)
    if name in OF_INTEGERS_TOO:
        agree(name, INTEGERS)
        agree(name, INTEGERS.astype(numpy.uint16))


@pytest.mark.parametrize("name", ELEMENTWISE_OF_TWO)
def test_elementwise_functions_of_two_operands(name):
    if name in OF_LOGIC:
        agree(name, INTEGERS > 1, REAL > 0)
        agree(name, INTEGERS > 1, True)
        return
    if name not in OF_FLOATS_ONLY:
        for kinds in (
            ("int64", "int64"),
            ("uint8", "int8"),
            ("uint16", "int32"),
            ("uint32", "uint8"),
            ("int16", "uint32"),
        ):
            agree(name, numpy.array([[9, 4, 7]], kinds[0]), numpy.array([[2], [3]], kinds[1]))
            agree(name, numpy.array([9, 4, 7], kinds[0]), numpy.array(2, kinds[1]))
        agree(name, numpy.array([9, 4], numpy.int16), 2)
        agree(name, 2, numpy.array([3, 1], numpy.uint8))
    if name not in OF_INTEGERS_ONLY:
        agree(name, POSITIVE, POSITIVE[:1])
        agree(name, POSITIVE.astype(numpy.float32), numpy.array(1.5))
        agree(name, POSITIVE.astype(numpy.float32), 1.5)
        agree(name, 2.0, POSITIVE.astype(numpy.float32))
        agree(name, POSITIVE, 2)
    if name in ("add", "subtract", "multiply", "divide", "pow", "equal", "not_equal"):
        agree(name, POSITIVE.astype(numpy.complex64), POSITIVE.astype(numpy.float32))
        agree(name, POSITIVE.astype(numpy.float32), 1j)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "count_nonzero"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 1), (0, 1, 2), ()])
def test_reductions(name, axis):
    for keepdims in (False, True):
        agree(name, STACK / 8, axis=axis, keepdims=keepdims)
        if name not in ("mean", "var", "std"):
            agree(name, STACK.astype(numpy.int64), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("kind", ["uint8", "uint32", "int8", "int32", "float32"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_dtypes_of_sums(name, kind):
    agree(name, numpy.array([1, 2, 3], kind))
    agree(name, numpy.array([1, 2, 3], kind), dtype=None)
    assert getattr(xp, name)(xp.ones(2, dtype=xp.int8), dtype=xp.float64).dtype == xp.float64


CALLS = {
    "argmax": [(VECTOR,), (STACK,), {"axis": 1, "keepdims": True}],
    "argmin": [(VECTOR,), (STACK,), {"axis": -1}],
    "argsort": [(VECTOR,), {"stable": True}, (INTEGERS,), {"axis": 0}],
    "astype": [(REAL, "?")],
    "broadcast_arrays": [(REAL, VECTOR[:3], numpy.array(2.0))],
    "broadcast_to": [(VECTOR, (2, 5))],
    "clip": [
        (REAL, -0.5, 0.5),
        (INTEGERS, 1, None),
        (INTEGERS.astype("u1"), -5, 4),
        (REAL, None, POSITIVE / 4),
        (REAL, -0.2, POSITIVE),
    ],
    "concat": [((REAL, INTEGERS),), {"axis": 1}, ([REAL, INTEGERS, VECTOR],), {"axis": None}],
    "cumulative_sum": [
        (STACK,),
        {"axis": 1, "include_initial": True},
        (VECTOR,),
        {"include_initial": True},
        (STACK,),
        {"axis": -1},
    ],
    "cumulative_prod": [(REAL,), {"axis": 1, "include_initial": True}, (VECTOR,), {"axis": 0}],
    "diff": [(VECTOR,), {"n": 2}, (REAL,), {"axis": 0}, (VECTOR,), {"prepend": VECTOR[:1], "append": VECTOR[:2]}],
    "expand_dims": [(REAL,), {"axis": 1}, (REAL,), {"axis": -1}],
    "flip": [(STACK,), (STACK,), {"axis": 1}, (STACK,), {"axis": (0, -1)}],
    "matmul": [(REAL, REAL.T.copy()), (INTEGERS, INTEGERS.T.copy()), (STACK, VECTOR[:4]), (REAL.astype("f"), SQUARE)],
    "matrix_transpose": [(STACK,)],
    "meshgrid": [(VECTOR, VECTOR[:2]), (VECTOR, VECTOR[:2]), {"indexing": "ij"}, (VECTOR,)],
    "moveaxis": [(STACK, 0, -1), (STACK, (0, 1), (2, 0))],
    "nonzero": [(REAL,), (INTEGERS > 1,)],
    "permute_dims": [(STACK, (2, 0, 1))],
    "repeat": [(REAL, 2), {"axis": 1}, (REAL, 2), (VECTOR, numpy.array([1, 0, 2, 1, 1]))],
    "reshape": [(STACK, (4, -1)), (STACK, (24,)), {"copy": True}, (STACK, (6, 4)), {"copy": False}],
    "roll": [(STACK, 5), (STACK, (1, 2)), {"axis": (0, 1)}, (STACK, 1), {"axis": (0, 2)}, (STACK, 1), {"axis": -1}],
    "searchsorted": [
        (numpy.sort(VECTOR), REAL),
        (numpy.sort(VECTOR), VECTOR),
        {"side": "right"},
        (VECTOR, REAL * 3),
        {"sorter": numpy.argsort(VECTOR)},
    ],
    "sort": [(VECTOR,), (INTEGERS,), {"axis": 0}],
    "squeeze": [(STACK[:1], 0), (STACK[:1, :, :1], (0, 2))],
    "stack": [((REAL, INTEGERS),), {"axis": 1}, ([REAL, REAL],), {"axis": -1}],
    "take": [
        (VECTOR, numpy.array([0, -1, 2])),
        {"axis": 0},
        (STACK, numpy.array([1, 0], "u1")),
        {"axis": 1},
        (VECTOR, numpy.array([1])),
    ],
    "take_along_axis": [
        (REAL, numpy.array([[0, -1], [2, 1]])),
        {"axis": 1},
        (REAL, numpy.array([[0, 1, 0]])),
        {"axis": 0},
    ],
    "tensordot": [
        (REAL, REAL),
        (STACK, VECTOR[:4]),
        {"axes": 1},
        (STACK, STACK),
        {"axes": ((0, 2), (0, 2))},
        (INTEGERS, INTEGERS),
        {"axes": 0},
    ],
    "tile": [(REAL, (2, 1, 2)), (REAL, (3,))],
    "tril": [(STACK,), {"k": -1}, (SQUARE,)],
    "triu": [(STACK,), {"k": 1}, (SQUARE,)],
    "unique_all": [
        (numpy.array([1 + 1j, 1, 1j, 1, 1 + 1j]),),
        (VECTOR,),
        (INTEGERS,),
        (INTEGERS > 1,),
        (numpy.array([1.0, numpy.nan, 1.0]),),
    ],
    "unique_counts": [(VECTOR * 1j,), (VECTOR,), (INTEGERS,)],
    "unique_inverse": [(VECTOR * 1j,), (VECTOR,), (INTEGERS,)],
    "unstack": [(STACK,), (STACK,), {"axis": -2}],
    "vecdot": [(STACK, VECTOR[:4]), (REAL * 1j, REAL), (INTEGERS, INTEGERS)],
    "where": [
        (INTEGERS > 1, REAL, INTEGERS),
        (INTEGERS > 1, REAL.astype("f"), 0),
        (INTEGERS > 1, numpy.array(1.0), REAL.astype("f")),
    ],
    "linalg.cholesky": [(SQUARE,), (SQUARE,), {"upper": True}],
    "linalg.cross": [(REAL, REAL[::-1].copy()), (REAL[0], POSITIVE)],
    "linalg.det": [(SQUARE,)],
    "linalg.diagonal": [(STACK,), (STACK,), {"offset": 1}],
    "linalg.eigvalsh": [(SQUARE,)],
    "linalg.inv": [(SQUARE,)],
    "linalg.matrix_norm": [
        (STACK,),
        (STACK,),
        {"ord": "nuc", "keepdims": True},
        (SQUARE,),
        {"ord": -1},
        (SQUARE,),
        {"ord": 2},
    ],
    "linalg.matrix_power": [(SQUARE, 3), (SQUARE, -1)],
    "linalg.matrix_rank": [(STACK,), (SQUARE,), {"rtol": 0.5}],
    "linalg.outer": [(VECTOR, INTEGERS[0])],
    "linalg.pinv": [(REAL,), (SQUARE,), {"rtol": 0.1}],
    "linalg.slogdet": [(SQUARE,)],
    "linalg.solve": [(SQUARE, VECTOR[:3]), (SQUARE, REAL.T.copy()), (numpy.stack([SQUARE] * 3), SQUARE)],
    "linalg.svdvals": [(REAL,)],
    "linalg.trace": [(STACK,), {"offset": 1}, (INTEGERS.astype("i2"),)],
    "linalg.vector_norm": [
        (STACK,),
        (STACK,),
        {"axis": (0, 2), "ord": 1, "keepdims": True},
        (REAL,),
        {"axis": 1, "ord": float("inf")},
    ],
    "fft.fft": [(REAL,), (VECTOR,), {"n": 4, "norm": "ortho"}],
    "fft.ifft": [(REAL * 1j,), {"axis": 0}],
    "fft.fftn": [(STACK,), (STACK,), {"axes": (0, 2), "s": (2, 3)}],
    "fft.ifftn": [(STACK,)],
    "fft.rfft": [(VECTOR,), {"norm": "forward"}],
    "fft.irfft": [(REAL * 1j + 1,), {"n": 5}],
    "fft.rfftn": [(STACK,)],
    "fft.irfftn": [(STACK + 1j,)],
    "fft.hfft": [(REAL + 1j,), {"axis": 0, "n": 4}],
    "fft.ihfft": [(VECTOR,)],
    "fft.fftshift": [(VECTOR,), (STACK,), {"axes": (0, 2)}],
    "fft.ifftshift": [(VECTOR,), (STACK,), {"axes": 1}],
}
"""For each function the operands of some calls, each followed by its options, if there are any."""


@pytest.mark.parametrize("path", [path for path in CALLS if path != "astype"])
def test_values_are_those_of_numpy(path):
    calls = CALLS[path]
    for number, operands in enumerate(calls):
        if isinstance(operands, tuple):
            following = calls[number + 1] if number + 1 < len(calls) else None
            agree(path, *operands, **(following if isinstance(following, dict) else {}))


def factors(path, x, **options):
    return named(xp, path)(torch.from_numpy(x), **options)


@pytest.mark.parametrize("x", [STACK, SQUARE], ids=["stack", "square"])
def test_decompositions_multiply_to_the_matrices(x):
    for mode in ("reduced", "complete"):
        q, r = factors("linalg.qr", x, mode=mode)
        numpy.testing.assert_allclose(q @ r, x, atol=1e-12)
    u, s, vh = factors("linalg.svd", x, full_matrices=False)
    numpy.testing.assert_allclose((u * s[..., None, :]) @ vh, x, atol=1e-12)
    assert factors("linalg.svd", x).Vh.shape[-2:] == (x.shape[-1],) * 2


def test_eigenvectors():
    values, vectors = factors("linalg.eigh", SQUARE)
    numpy.testing.assert_allclose(vectors * values @ vectors.mT, SQUARE, atol=1e-12)


def test_creation():
    for call in (
        "arange(5)",
        "arange(1, 5, 2)",
        "arange(5, 1, -2)",
        "arange(5, 1)",
        "arange(3, step=-1)",
        "arange(0, 1, 0.25, dtype=xp.float64)",
        "linspace(0, 1, 5, dtype=xp.float64)",
        "linspace(0, 1, 5, endpoint=False, dtype=xp.float64)",
        "linspace(0, 1, 0, dtype=xp.float64)",
        "eye(3, dtype=xp.float64)",
        "eye(2, 4, k=1, dtype=xp.int8)",
        "eye(2, 4, k=-9, dtype=xp.int8)",
        "zeros(3, dtype=xp.float32)",
        "ones((2, 0), dtype=xp.uint16)",
        "full((2,), 3)",
        "full(2, True)",
        "asarray([[1, 2], [3, 4]])",
        "zeros_like(xp.asarray([1, 2]))",
        "ones_like(xp.asarray([1, 2]), dtype=xp.float32)",
        "full_like(xp.asarray([1, 2]), 7)",
        "empty((2, 0), dtype=xp.float64)",
        "empty_like(xp.asarray([[], []], dtype=xp.float32))",
    ):
        mine, theirs = eval(f"xp.{call}"), eval(f"xp.{call}", {"xp": numpy})
        assert str(mine.dtype).removeprefix("torch.") == str(theirs.dtype), call
        assert tuple(mine.shape) == theirs.shape, call
        numpy.testing.assert_allclose(mine.numpy(), theirs, err_msg=call)


def test_asarray_keeps_the_graph_and_copies_only_if_it_may():
    x = torch.ones(2, requires_grad=True)
    assert xp.asarray(x) is x
    xp.sum(xp.asarray(x, dtype=xp.float64) * 3).backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(ValueError, match="copy=False forbids"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    array = numpy.zeros(2)
    xp.asarray(array)[0] = 5
    assert array[0] == 5
    xp.asarray(array, copy=True)[0] = 7
    xp.from_dlpack(array)[1] = 6
    assert array.tolist() == [5, 6]


def test_dtypes():
    kinds = {
        "bool": "bool",
        "integral": "uint8 int64",
        "real floating": "float32",
        "numeric": "int8 float64 complex64",
        "complex floating": "complex128",
        "signed integer": "int16",
        "unsigned integer": "uint64",
    }
    for kind, names in kinds.items():
        assert all(xp.isdtype(getattr(xp, name), kind) for name in names.split())
    assert not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.int8, (xp.int16, "integral"))
    with pytest.raises(ValueError, match="no kind 'real'"):
        xp.isdtype(xp.int8, "real")
    assert xp.result_type(xp.uint16, xp.int16) == xp.int32
    assert xp.result_type(xp.ones(2, dtype=xp.float32), torch.tensor(1.0, dtype=xp.float64)) == xp.float64
    assert xp.result_type(xp.int8, 1) == xp.int8
    assert xp.result_type(xp.float32, 1j) == xp.complex64
    with pytest.raises(TypeError, match="no integer dtype"):
        xp.result_type(xp.uint64, xp.int64)
    assert xp.can_cast(xp.int8, xp.int32)
    assert not xp.can_cast(xp.ones(1), xp.int32)
    assert xp.finfo(xp.complex128).eps == xp.finfo(xp.ones(1, dtype=xp.float64)).eps
    assert xp.iinfo(xp.int8).max == 127
    assert xp.finfo(xp.complex64).dtype is xp.float32
    assert xp.iinfo(xp.uint8).dtype is xp.uint8
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x
    assert xp.astype(x, xp.int8).dtype == xp.int8
    with pytest.raises(TypeError, match=r"take real\(x\) or imag\(x\)"):
        xp.astype(x * 1j, xp.float32)


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == xp.float32
    assert info.dtypes(kind="real floating") == {"float32": xp.float32, "float64": xp.float64}
    assert len(info.dtypes()) == 13
    assert info.dtypes(kind=("bool", "signed integer")).keys() == {"bool", "int8", "int16", "int32", "int64"}
    with pytest.raises(ValueError, match="unsupported kind"):
        info.dtypes(kind="float")


def test_tensors_move_by_the_name_of_the_standard():
    x = torch.ones(2)
    assert x.to_device(x.device) is x
    assert x.to_device("meta").device == torch.device("meta")
    with pytest.raises(ValueError, match="no streams"):
        x.to_device("cpu", stream=1)


def test_frequencies():
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 4, 5):
            found = getattr(xp.fft, name)(n, d=0.5, dtype=xp.float64)
            numpy.testing.assert_allclose(found, getattr(numpy.fft, name)(n, d=0.5))


def test_refusals():
    x = xp.ones((2, 3))
    for call, error in {
        "squeeze(x, 0)": ValueError,
        "expand_dims(x, axis=3)": IndexError,
        "cumulative_sum(x)": ValueError,
        "take(x, xp.asarray([0]))": ValueError,
        "nonzero(x[0, 0])": ValueError,
        "reshape(x.T, (6,), copy=False)": ValueError,
        "vecdot(x, x[:, :2])": ValueError,
        "concat([])": ValueError,
        "result_type(1)": ValueError,
        "sum(x, axis=2)": IndexError,
    }.items():
        with pytest.raises(error):
            eval(f"xp.{call}", {"xp": xp, "x": x})


def test_gradients_flow_through_the_namespace():
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)

    def loss(x):
        y = xp.concat([xp.where(x > 1, xp.pow(x, 2), xp.sin(x)), xp.cumulative_sum(x, include_initial=True)])
        return (
            xp.std(y, correction=1)
            + xp.linalg.vector_norm(xp.take(y, xp.asarray([0, -1])))
            + xp.prod(xp.clip(x, 0.1, 9))
        )

    assert torch.autograd.gradcheck(loss, x)
    assert torch.autograd.gradgradcheck(loss, x)


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip("array_api_compat")
    x = torch.ones(2, 3)
    assert compat.array_namespace(x) is xp
    assert compat.size(x) == 6
    assert compat.to_device(x, "cpu") is x


@pytest.mark.parametrize("number", [1.0, 1j])
def test_distinct_values(number):
    assert xp.unique_values(torch.tensor([3 * number, number, 3 * number])).tolist() == [number, 3 * number]


SCIPY = """
import numpy, scipy.cluster.vq, scipy.fft, scipy.integrate, scipy.signal, scipy.special, scipy.stats
import adjoint as torch

array = numpy.asarray([[1.0, 2.0, 4.0], [3.0, 5.0, 7.5], [0.5, 2.5, 9.0], [4.0, 4.0, 1.0]])
for function in (
    scipy.special.logsumexp, scipy.special.softmax, scipy.special.expit, scipy.special.gammaln, scipy.stats.zscore,
    scipy.stats.skew, scipy.stats.gmean, scipy.stats.iqr, scipy.cluster.vq.whiten, scipy.signal.detrend, scipy.signal.hilbert,
    scipy.fft.fft, scipy.fft.irfft, scipy.integrate.trapezoid,
):
    result = function(torch.from_numpy(array.copy()))
    assert type(result) is torch.Tensor, function
    numpy.testing.assert_allclose(result.resolve_conj().numpy(), function(array), rtol=1e-9, atol=1e-12)
x = torch.from_numpy(array).requires_grad_()
scipy.special.logsumexp(x).backward()
numpy.testing.assert_allclose(x.grad.numpy(), scipy.special.softmax(array))
"""


@pytest.mark.thorough
def test_scipy_computes_on_tensors():
    pytest.importorskip("scipy", minversion="1.15")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCIPY],
        env=environment,
        cwd=Path(torch.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize(
    "arguments", [{"keepdims": True}, {"keepdims": False}, {"axis": None}, {"axis": None, "keepdims": True}]
)
def test_extrema_over_all_dimensions_by_numpys_names(name, arguments):
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]], requires_grad=True)
    extremum = getattr(torch, name)(x, **{"axis": None, **arguments})
    assert extremum.shape == ((1, 1) if arguments.get("keepdims") else ())
    extremum.sum().backward()
    assert x.grad.tolist() == ([[0, 1], [0, 0]] if name == "amax" else [[1, 0], [0, 0]])


def test_tensordot_takes_the_axes_of_numpy():
    a, b = torch.arange(24.0).reshape(2, 3, 4), torch.arange(12.0).reshape(4, 3)
    axes = ((1, 2), (1, 0))
    assert torch.equal(torch.tensordot(a, b, axes=axes), torch.tensordot(a, b, axes))


def test_opt_einsum_contracts_tensors():
    contract = pytest.importorskip("opt_einsum").contract
    a, b, c = (torch.randn(3, 3, requires_grad=True) for _ in range(3))
    torch.testing.assert_close(contract("ij,jk,kl->il", a, b, c), a @ b @ c)
