"""Floats of eight bits, complex numbers of two halves, and bits: the same results and errors as PyTorch."""

import io
import itertools
import warnings
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint
from tests.parity.conversion import Converter, from_array, to_array

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

EIGHTHS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
NARROW = (*EIGHTHS, "complex32")
OTHERS = "float32 float64 float16 bfloat16 int64 int32 uint8 bool complex64 complex128".split()


def numbers(name: str) -> numpy.ndarray:
    """Return numbers of a dtype: all numbers of a short dtype.

    For longer dtypes, return numbers near the borders of short numbers.
    """
    if name in EIGHTHS or name == "uint8":
        return numpy.arange(256, dtype=numpy.uint8)
    halves = numpy.arange(1 << 16, dtype=numpy.uint16)
    match name:
        case "float16" | "bfloat16":
            return halves
        case "float32":
            words = halves.astype(numpy.uint32) << 16
            return numpy.concatenate([words, words + 1, words + 0x8000, words - 1]).view(numpy.float32)
        case "float64":
            wide = numbers("float32").astype(numpy.float64)
            with numpy.errstate(over="ignore", invalid="ignore"):
                return numpy.concatenate([wide, wide * (1 + 2**-40), wide * 1e-300, wide * 1e300])
        case "complex32" | "complex64" | "complex128":
            parts = numpy.stack([halves, halves[::-1]], 1).view(numpy.float16)
            if name == "complex32":
                return parts.view(numpy.int32)[:, 0]
            return parts.astype(numpy.float64).view(numpy.complex128)[:, 0].astype(name)
        case "int64":
            return numpy.concatenate([numpy.arange(-70000, 70000), 2 ** numpy.arange(63), -(2 ** numpy.arange(63))])
        case "int32":
            return numpy.arange(-70000, 70000, dtype=numpy.int32)
    return numpy.array([False, True])


def tensor(module: Any, name: str) -> Any:
    held = module.from_numpy(numbers(name))
    return held if name in str(held.dtype) else held.view(getattr(module, name))


def same(first: Any, second: Any) -> bool:
    """Return whether a tensor of PyTorch and a tensor of adjoint have the same dtype, numbers and signs of zeros."""
    one, two = to_array(first), numpy.asarray(to_array(second))
    if one.dtype.kind == "W":
        one, two = one.view(numpy.float16), two.view(numpy.float16)
    elif one.dtype.isbuiltin != 1 and one.itemsize == 1:
        one, two = one.view(numpy.uint8), two.view(numpy.uint8)
    if one.dtype.kind in "fV":
        one, two = one.astype(numpy.float64), two.astype(numpy.float64)
        return numpy.array_equal(one, two, equal_nan=True) and numpy.array_equal(
            numpy.signbit(one) & ~numpy.isnan(one), numpy.signbit(two) & ~numpy.isnan(two)
        )
    return str(first.dtype) == str(second.dtype) and numpy.array_equal(one, two, equal_nan=one.dtype.kind == "c")


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [*itertools.product(NARROW, [*NARROW, *OTHERS]), *itertools.product(OTHERS, NARROW)],
)
def test_conversions(given: str, wanted: str) -> None:
    ours, theirs = (tensor(module, given).to(getattr(module, wanted)) for module in (adjoint, torch))
    assert same(theirs, ours)


def _eighths(m: Any) -> Any:
    return m.tensor([[1.0, -2.0, 3.0], [4.0, 500.0, float("nan")]]).to(m.float8_e4m3fn)


def _halves(m: Any) -> Any:
    return m.tensor([[1 + 2j, -2.0, 3.1], [4.0, 500.0j, 5.0]]).to(m.complex32)


def _of_sample(expression: str) -> Any:
    code = compile(expression, expression, "eval")
    return lambda m: eval(code, {"torch": m, "x": _eighths(m), "c": _halves(m), "bits": m.zeros(2, dtype=m.bits8)})


EXPRESSIONS = """
    x                            x.clone()                    x.T.contiguous()              x[0, 1]
    x[:, [2, 0]]                 x[x == x]                    x.view(-1)                    x.view(torch.uint8)
    torch.cat([x, x])            torch.stack([x, x])          x.expand(2, 2, 3).clone()     x.roll(1, 0)
    x.repeat(1, 2)               x.abs()                      x == x                        x != 3
    x.isnan()                    x.all()                      x.any()                       x * x
    x.index_select(0, torch.tensor([1]))                      torch.where(x == x, x, x)     x.masked_select(x == x)
    torch.nn.functional.pad(x, (1, 1))                        x.fill_(0.3)                  x.zero_()
    x.copy_(torch.ones(3))       torch.empty(1, dtype=x.dtype).fill_(1e9)
    x == 1e9                     torch.full((1,), 1e9, dtype=x.dtype)                        torch.full((2,), 1e9, dtype=c.dtype)
    x.index_put_((torch.tensor([0]),), torch.full((3,), 7.0).to(x.dtype))
    x.tolist()[0]                x[0, 0].item()               bool(x[0, 0])                 x.float_power(2)
    x[:1] @ x[:1].T              torch.equal(x, x.clone())    torch.equal(x[0], x[0].clone())                            x.type()
    x.element_size()             x.is_floating_point()        x.is_signed()                 x.storage().dtype
    torch.zeros(2, dtype=x.dtype)                             torch.ones(2, dtype=x.dtype)  torch.full((2,), 1e9, dtype=x.dtype)
    torch.eye(2, dtype=x.dtype)  torch.tensor([1, 2.6], dtype=x.dtype)                      torch.zeros_like(x)
    x.new_full((2,), 0.3)        torch.block_diag(x, x)       x.requires_grad_()            torch.finfo(x.dtype)
    x + x                        x + 1                        x.add_(1)                     x * 2
    x * x[0, 0]                  2 * x[0, 0]                  x / x                         -x
    x < x                        x.sum()                      x.sum(dtype=torch.float32)    x.softmax(0)
    x.softmax(0, dtype=torch.float32)                         x.sort()                      x.isfinite()
    x + torch.ones(3)            x[0, 0] + torch.ones(3)      x + 1j                        x.nonzero()
    torch.rand(2, dtype=x.dtype)                              torch.arange(3, dtype=x.dtype)
    torch.zeros_like(x.to(torch.float8_e8m0fnu)).view(torch.uint8)
    x.to(torch.float8_e8m0fnu).abs()                          x.to(torch.float8_e8m0fnu) == 2
    x[0].to(torch.float8_e8m0fnu) * x[0].to(torch.float8_e8m0fnu)
    x.to(torch.float8_e8m0fnu) @ x.to(torch.float8_e8m0fnu).T
    torch.empty(2, dtype=x.dtype).normal_()                   torch.randperm(3, dtype=x.dtype)
    torch.set_default_dtype(x.dtype)                          torch.promote_types(x.dtype, torch.int8)
    c                            c.conj()                     c.conj() + c                  -c.conj()
    c.real                       c.imag                       c.conj().imag                 torch.view_as_real(c)
    torch.view_as_complex(torch.ones(3, 2).half())            torch.complex(torch.ones(2).half(), torch.ones(2).half())
    torch.ones(2).half() * 1j    torch.ones(2).bfloat16() * 1j                              c + c
    c - 1                        2 - c                        c * 0.3j                      c * c
    c.abs()                      c[0].norm()                  c[0].std()                    c[0].var(0)
    c.tril()                     c.nonzero()                  c.isfinite()                  c.isinf()
    c.bool()                     c == c                       c.add_(1)                     c.mul_(2j)
    c.index_add(0, torch.tensor([0]), c[:1])                  c.index_fill(1, torch.tensor([0]), 2j)
    c.index_copy(0, torch.tensor([0]), c[:1])                 c.masked_fill(c == 3, 0)      torch.where(c == 3, c, 0)
    c + torch.ones(3)            c + torch.ones(3).half()     c + torch.ones(3).bfloat16()  c.to(torch.complex64)
    c.chalf() is c               torch.ones(2).chalf()        c.tolist()[0]                 complex(c[0, 0])
    c.to_sparse()                torch.isclose(c, c, equal_nan=True)                        torch.isclose(c, c)
    torch.finfo(c.dtype)         torch.zeros(2, dtype=c.dtype)                              torch.set_default_dtype(c.dtype)
    torch.rand(3, dtype=c.dtype, generator=torch.Generator().manual_seed(3))
    torch.randn(3, dtype=c.dtype, generator=torch.Generator().manual_seed(3))
    torch.empty(3, dtype=c.dtype).uniform_(generator=torch.Generator().manual_seed(3))
    c / 2                        c.exp()                      c.sum()                       c.sum(dtype=torch.complex64)
    c @ c.T                      c.sort()                     c.cumsum(0)                   torch.arange(3, dtype=c.dtype)
    torch.eye(2, dtype=c.dtype)  torch.equal(c, c)            torch.polar(torch.ones(2).half(), torch.ones(2).half())
    bits.shape                   bits.view(torch.uint8)       bits.clone().view(torch.uint8)
    bits + bits                  bits.item()                  bits.fill_(1)                 bits.to(torch.uint8)
    torch.cat([bits, bits]).view(torch.uint8)                 torch.zeros(2, dtype=torch.uint8).view(torch.uint4).dtype
"""


def split(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split("  ") if part.strip()]


def outcome(run: Any, module: Any) -> str:
    before = module.get_default_dtype()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(run(module))
    except Exception as error:  # all exceptions are compared
        text = str(error).split("\n")[0]
        return f"{type(error).__name__}: {text}" if " not implemented for " not in text else type(error).__name__
    finally:
        module.set_default_dtype(before)


@pytest.mark.parametrize("expression", split(EXPRESSIONS))
def test_expressions(expression: str) -> None:
    run = _of_sample(expression)
    assert outcome(run, adjoint) == outcome(run, torch)


@pytest.mark.parametrize(
    "expression", ["x + x", "x.sub(1)", "x < x", "x.sum()", "x.softmax(0)", "c.cumsum(0)", "c.sort()"]
)
def test_refusals_in_pytorchs_words(expression: str) -> None:
    run = _of_sample(expression)
    words = []
    for module in (adjoint, torch):
        with pytest.raises(RuntimeError) as raised:
            run(module)
        words.append(str(raised.value))
    assert words[0] == words[1]


def _through_eighths(m: Any, x: Any) -> Any:
    return x.to(m.float8_e4m3fn).to(m.float32) * x


def _through_parts(m: Any, x: Any) -> Any:
    return (x * 1.3).to(m.float8_e5m2).view(3, 2)[1:].clone().float() ** 2


def _of_halves(m: Any, x: Any) -> Any:
    c = m.complex(x.half(), 2 * x.half())
    c = m.cat([c, c * (1 + 2j)]).roll(1, 0)[1:].clone()
    c[0] = 2 * c[1]
    return m.view_as_real(c.mul_(3).neg_()).float() ** 2


def _absolute(m: Any, x: Any) -> Any:
    c = m.complex(x.half(), x.half())
    return (c * c.conj()).real.float() + (c * 2j).abs().float()


@pytest.mark.parametrize("function", [_through_eighths, _through_parts, _of_halves, _absolute])
def test_gradients(function: Any) -> None:
    grads = []
    for module in (adjoint, torch):
        x = module.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        result = function(module, x)
        result.sum().backward()
        grads.append((result.tolist(), x.grad.tolist()))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "complex32"])
def test_gradient_of_a_leaf(name: str) -> None:
    grads = []
    for module in (adjoint, torch):
        x = module.tensor([1.0, 2.0]).to(getattr(module, name)).requires_grad_()
        (x.to(module.complex64).abs() * 3.3).sum().backward()
        grads.append(repr(x.grad))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("name", [*NARROW, "bits8"])
def test_files(name: str) -> None:
    raw = "int32" if name == "complex32" else "uint8"
    for writer, reader in ((torch, adjoint), (adjoint, torch), (adjoint, adjoint)):
        kind = getattr(writer, name)
        held = writer.arange(6, dtype=getattr(writer, raw)).view(kind).view(2, 3)
        file = io.BytesIO()
        writer.save({"all": held, "row": held[1]}, file)
        file.seek(0)
        found = reader.load(file)
        assert [str(each.dtype) for each in found.values()] == [str(kind)] * 2
        assert found["all"].view(getattr(reader, raw)).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert found["row"].untyped_storage().data_ptr() == found["all"].untyped_storage().data_ptr()


def _saturate() -> bool:
    full = torch.full((16, 16), 448.0).to(torch.float8_e4m3fn)
    return bool(torch._scaled_mm(full, full, torch.tensor(1.0), torch.tensor(1.0)).float().isfinite().all())


as_followed = pytest.mark.skipif(
    _saturate(),
    reason="On some processors without tile registers PyTorch multiplies float8 otherwise: results saturate, and words differ.",
)


def _scaled(m: Any) -> list[Any]:
    m.manual_seed(0)
    a, b = (m.randn(16, 16).to(m.float8_e4m3fn) for _ in range(2))
    one, by = m.tensor(1.0), m.nn.functional.ScalingType
    columns, rows = m.full((16, 1), 2.0), m.full((1, 16), 0.5)
    return [
        m._scaled_mm(a, b, one, one),
        m._scaled_mm(a, b, 2 * one, 3 * one, bias=m.ones(16), out_dtype=m.float32),
        m._scaled_mm(a, b, columns, rows, out_dtype=m.bfloat16),
        m._scaled_mm(a, b, one, one, scale_result=2 * one),
        m._scaled_mm(a, b, one, one, out=m.empty(16, 16)),
        m.nn.functional.scaled_mm(a, b, columns, by.RowWise, rows, by.RowWise),
        m.nn.functional.scaled_mm(a, b, [one], [by.TensorWise], [one], [by.TensorWise], bias=m.ones(16)),
        a[:4] @ b,
        m.addmm(a, a, b),
    ]


@as_followed
def test_products_of_matrices_with_scales() -> None:
    for ours, theirs in zip(_scaled(adjoint), _scaled(torch), strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        assert same(theirs, ours) or numpy.allclose(ours.float().numpy(), theirs.float().numpy(), 1e-6, 1e-6)


@as_followed
@pytest.mark.parametrize(
    "run",
    [
        lambda m, a, one: m._scaled_mm(a[0], a, one, one),
        lambda m, a, one: m._scaled_mm(a, a[:2], one, one),
        lambda m, a, one: m._scaled_mm(a, a, m.ones(3), one),
        lambda m, a, one: m._scaled_mm(a, a, one, one, bias=m.ones(3)),
        lambda m, a, one: m._scaled_mm(a, a, one, one, out_dtype=m.float32, out=m.empty(16, 16).half()),
        lambda m, a, one: m.nn.functional.scaled_mm(a, a, m.ones(16, 1), *_both(m, m.ones(1, 16))),
        lambda m, a, one: m.nn.functional.scaled_grouped_mm(a, a, one, *_both(m, one)),
    ],
)
def test_products_of_matrices_that_do_not_fit(run: Any) -> None:
    errors = []
    for module in (adjoint, torch):
        with pytest.raises((RuntimeError, ValueError)) as raised:
            run(module, module.ones(16, 16).to(module.float8_e4m3fn), module.tensor(1.0))
        errors.append((raised.type, str(raised.value).split("\n")[0][:60]))
    assert errors[0] == errors[1]


def _both(m: Any, scale: Any) -> tuple[Any, Any, Any]:
    kind = m.nn.functional.ScalingType.TensorWise
    return kind, scale, kind


def test_arrays_become_tensors_and_back() -> None:
    array = to_array(torch.arange(3.0).to(torch.float8_e5m2))
    ours = from_array(adjoint, array)
    assert ours.dtype is adjoint.float8_e5m2
    assert type(ours.numpy()) is numpy.ndarray
    assert ours.numpy().dtype == array.dtype
    ours[0] = 4
    assert float(array[0]) == 4


@as_followed
@pytest.mark.parametrize("name", ["_scaled_mm", "_scaled_mm_v2"])
def test_samples_of_products_of_matrices_with_scales(name: str) -> None:
    table = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    found = 0
    for op in table.op_db:
        for kind in (torch.float8_e4m3fn, torch.float8_e5m2) if op.name == f"torch.{name}" else ():
            for sample in op.sample_inputs("cpu", kind):
                convert = Converter(adjoint)
                args, kwargs = convert((sample.input, *sample.args)), convert(sample.kwargs)
                theirs = op(sample.input, *sample.args, **sample.kwargs)
                ours = getattr(adjoint, name)(*args, **kwargs)
                assert str(ours.dtype) == str(theirs.dtype)
                assert numpy.allclose(theirs.float().numpy(), ours.float().numpy(), 1e-2, 1e-5, equal_nan=True)
                found += 1
    assert found


@pytest.mark.parametrize("name", NARROW)
def test_tensors_for_tests(name: str) -> None:
    outcomes = []
    for module in (adjoint, torch):
        module.manual_seed(0)
        make = module.testing.make_tensor
        outcomes.append(outcome(lambda m, make=make: make((3,), dtype=getattr(m, name), device="cpu"), module)[:80])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", [*NARROW, "bfloat16", "float32"])
def test_capsules_of_dlpack_share_memory_both_ways(name: str) -> None:
    theirs = torch.ones(2, 3).to(getattr(torch, name)).t()
    ours = adjoint.from_dlpack(theirs)
    back = torch.from_dlpack(ours)
    assert (str(ours.dtype), ours.shape, ours.stride()) == (str(theirs.dtype), theirs.shape, theirs.stride())
    assert (back.dtype, back.data_ptr(), ours.data_ptr()) == (theirs.dtype, *[theirs.data_ptr()] * 2)
    ours[0] = 2
    assert theirs[0].tolist() == back[0].tolist() == [2, 2]
