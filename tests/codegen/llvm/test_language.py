"""Kernels give Python's results. If a kernel contains unsupported code, the error names the line."""

from __future__ import annotations

import ctypes

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.llvm.language import (
    CompilationError,
    Int,
    Loops,
    Pointer,
    Static,
    Struct,
    T,
    address,
    bf16,
    bits,
    f16,
    f32,
    f64,
    fields,
    fma,
    from_bits,
    i32,
    i64,
    lanes,
    load,
    local,
    loops,
    reduce_add,
    store,
    u32,
    unrolled,
    vector,
    vectorized,
)


@loops(noalias=False)
def scale_positive(out: Pointer[T], x: Pointer[T], factor: T, start: Int, stop: Int) -> None:
    for i in vectorized(start, stop):
        out[i] = x[i] * factor if x[i] > 0 else T(0)


@pytest.mark.parametrize(("type_", "dtype"), [(f32, "f4"), (f64, "f8"), (i32, "i4"), (i64, "i8")])
@pytest.mark.parametrize("size", [0, 1, 7, 64, 1003])
def test_a_vectorized_loop_computes_all_its_turns_and_no_more(type_, dtype, size):
    x = (numpy.arange(size + 2) % 13 - 6).astype(dtype)
    out = numpy.full(size + 2, 99, dtype)
    function = scale_positive.compiled(T=type_)
    function(address(out), address(x), 2, 1, size + 1)
    expected = numpy.where(x > 0, 2 * x, 0)
    expected[[0, -1]] = 99
    assert (out == expected).all()
    before = x.copy()
    function(address(x), address(x), 3, 0, size)  # in place
    assert (x[:size] == numpy.where(before > 0, 3 * before, 0)[:size]).all()
    assert (x[size:] == before[size:]).all()


@loops
def magnitude(x: T) -> T:
    if x >= 0:
        return x
    return -x


@loops(flags="contract")
def absolute_dot(x: Pointer[T], y: Pointer[T], n: Int, W: Static) -> T:
    sums = local(vector(T, W), 4)
    for K in unrolled(4):
        sums[K] = vector(T, W)(0)
    i = 0
    while i + 4 * W <= n:
        for K in unrolled(4):
            sums[K] += load(x + (i + K * W), W) * load(y + (i + K * W), W)
        i += 4 * W
    total = reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]))
    for j in range(i, n):
        total += x[j] * magnitude(y[j])
    return total


def test_vectors_static_parameters_and_calls_of_other_kernels():
    x, y = numpy.random.default_rng(0).random((2, 1003))
    assert absolute_dot.compiled(T=f64, W=8)(address(x), address(-y), 3) == pytest.approx(x[:3] @ y[:3])
    assert absolute_dot.compiled(T=f64, W=8)(address(x), address(y), 1003) == pytest.approx(x @ y)


@loops(flags="contract", explicit=True)
def plain_sum(x: Pointer[T], n: Int) -> T:
    total = T(0)
    for i in range(n):
        total += x[i]
    return total


def test_llvm_makes_no_vectors_in_explicit_kernels():
    x = numpy.arange(100, dtype=numpy.int32)
    function = plain_sum.compiled(T=i32)
    assert function(address(x), 100) == 4950
    assert " x i32>" not in HOST.optimized(function.code)
    assert " x i32>" in HOST.optimized(Loops(plain_sum.function).compiled(T=i32).code)


@loops
def divide(x: Int, y: Int, out: Pointer[i64]) -> None:
    out[0] = x // y
    out[1] = x % y
    out[2] = x >> 1
    out[3] = i64(x < y and x != 3)
    out[4] = i64(x > y or y < 0)


def strided(out: Pointer[T], x: Pointer[T], count: Int, step: Int) -> None:
    for i in range(count):
        out[i] = x[i * step] + x[i * step + 1]


def test_plain_kernels_keep_the_indices_of_their_loops():
    makers = {name: loops(plain=True, strength_reduced=name != "plain") for name in ("before", "plain", "after")}
    found = {name: make(strided).compiled(T=f32) for name, make in makers.items()}
    multiplies = {name: "imul" in HOST.assembly(function.code) for name, function in found.items()}
    if HOST.instruction_set != "NEON":  # assumptions about one kernel do not apply to the next kernel
        assert multiplies == {"before": False, "plain": True, "after": False}
    x = numpy.arange(20, dtype="f4")
    for function in found.values():
        out = numpy.zeros(6, "f4")
        function(address(out), address(x), 6, 3)
        assert out.tolist() == [1, 7, 13, 19, 25, 31]


@pytest.mark.parametrize("x", [-7, -6, 0, 3, 7])
@pytest.mark.parametrize("y", [-3, -1, 2, 7])
def test_integers_divide_as_in_python(x, y):
    out = numpy.zeros(5, numpy.int64)
    divide.compiled()(x, y, address(out))
    assert out.tolist() == [x // y, x % y, x >> 1, x < y and x != 3, x > y or y < 0]


@loops
def collatz(n: Int) -> Int:
    steps = 0
    while True:
        if n == 1:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 1000:
            return -1
    return steps


def test_control_flow():
    assert [collatz.compiled()(n) for n in (1, 2, 7, 27)] == [0, 1, 16, 111]


@loops
def through_half(x: Pointer[f32], out: Pointer[T], back: Pointer[f64], n: Int) -> None:
    for i in range(n):
        out[i] = T(x[i])
        back[i] = f64(out[i])


@pytest.mark.parametrize(("type_", "name"), [(bf16, "bfloat16"), (f16, "float16")])
def test_half_types_round_as_numpy_rounds(type_, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = numpy.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else numpy.dtype(numpy.float16)
    raw = numpy.random.default_rng(1).integers(0, 1 << 32, 20000, dtype=numpy.uint32)
    x = numpy.concatenate(
        [raw.view(numpy.float32), numpy.float32([0, -0.0, numpy.inf, -numpy.inf, 1 + 2**-9, 1 + 3 * 2**-9, 65520])]
    )
    out, back = numpy.empty(x.size, dtype), numpy.empty(x.size)
    through_half.compiled(T=type_)(address(x), address(out.view(numpy.uint16)), address(back), x.size)
    with numpy.errstate(all="ignore"):
        expected = x.astype(dtype)
    numpy.testing.assert_array_equal(out.astype(numpy.float64), expected.astype(numpy.float64))
    numpy.testing.assert_array_equal(back, expected.astype(numpy.float64))


@loops
def spell(out: Pointer[u32], x: Pointer[f32]) -> None:
    pair = load(x, 8)
    store(out, u32(bits(pair)))
    x[0] = fma(x[0], f32(2), 1.0)
    x[1] = from_bits(bits(x[1]) + 1, f32)


def test_bits():
    x = numpy.float32([1, 2, 3, 4, 5, 6, 7, 8])
    out = numpy.zeros(8, numpy.uint32)
    before = x.copy()
    spell.compiled()(address(out), address(x))
    assert (out == before.view(numpy.uint32)).all()
    assert x[0] == 3
    assert x[1] == numpy.nextafter(numpy.float32(2), numpy.float32(3))


@loops
def mixes(x: Pointer[f32], y: Pointer[f64]) -> None:
    x[0] = x[0] + y[0]


@loops
def recursive(n: Int) -> Int:
    return recursive(n - 1)


@loops
def unknown(n: Int) -> Int:
    return missing(n)  # noqa: F821


@pytest.mark.parametrize(
    ("kernel", "words"), [(mixes, "f32 and f64"), (recursive, "calls itself"), (unknown, "'missing'")]
)
def test_an_error_names_file_and_line(kernel, words):
    with pytest.raises(CompilationError, match=words) as raised:
        kernel.compiled()
    assert "test_language.py:" in str(raised.value)


def test_machine_code_can_be_looked_at():
    code = scale_positive.compiled(T=f32).code
    assert "define void" in code.text
    assert "ret" in HOST.assembly(code)
    assert HOST.instruction_set in ("AVX-512", "AVX2", "SSE", "NEON")
    assert ctypes.sizeof(ctypes.c_void_p) == 8


@loops
def masked_head(out: Pointer[f32], x: Pointer[T], n: Int) -> None:
    store(out, f32(load(x, 8, lanes(i32, 8) < i32(n))))


@pytest.mark.parametrize("type_", [f16, bf16])
def test_a_masked_load_of_half_types_reads_zeros_elsewhere(type_):
    x = numpy.full(8, 0x3F80 if type_ is bf16 else 0x3C00, numpy.uint16)
    out = numpy.empty(8, numpy.float32)
    masked_head.compiled(T=type_)(address(out), address(x), 3)
    assert out.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_the_address_of_an_array_is_that_of_its_first_element():
    x = numpy.arange(12.0).reshape(3, 4)
    for array in (x, x[1:, ::-1], x[2, 3], numpy.asarray(5)):
        array = numpy.asarray(array)
        assert address(array) == array.__array_interface__["data"][0]
    with pytest.raises(TypeError, match="float64 is no array"):
        address(numpy.float64(5))


TABLE = Struct("first sizes:3 last")


@loops
def read_fields(out: Pointer[i64], table: Pointer[i64], place: Int) -> None:
    told = fields(table, TABLE)
    _, height, width = told.sizes
    out[0] = told.first * 1000 + height * 100 + width * 10 + fields(place, TABLE).last
    out[1] = table[TABLE.places["last"]]


def test_fields_of_a_table_have_names():
    table = numpy.array(TABLE.pack(last=9, first=2, sizes=(3, 4, 5)))
    out = numpy.zeros(2, numpy.int64)
    read_fields.compiled()(address(out), address(table), address(table))
    assert out.tolist() == [2459, 9]
    assert TABLE.size == len(table)
    for wrong in (
        {"first": 1, "last": 2},
        {"first": 1, "last": 2, "sizes": (1, 2)},
        {"first": 1, "last": 2, "size": 3},
    ):
        with pytest.raises(TypeError):
            TABLE.pack(**wrong)


@loops
def store_head(out: Pointer[T], value: T, n: Int) -> None:
    store(out, vector(T, 8)(value), lanes(i32, 8) < i32(n))


@pytest.mark.parametrize("type_", [f32, f64, i32])
@pytest.mark.parametrize("count", [0, 3, 8])
def test_a_masked_store_writes_only_the_lanes_of_its_mask(type_, count):
    out = numpy.zeros(8, {f32: "f", f64: "d", i32: "i"}[type_])
    store_head.compiled(T=type_)(address(out), 2, count)
    assert out.tolist() == [2] * count + [0] * (8 - count)
