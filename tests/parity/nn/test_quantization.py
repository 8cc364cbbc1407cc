"""Fake quantization rounds, masks gradients and refuses wrong arguments as PyTorch does."""

from __future__ import annotations

import math
import warnings

import pytest

torch = pytest.importorskip("torch")

import adjoint

DTYPES = "float16 bfloat16 float32 float64".split()
RANGES = ((-4, 4), (0, 255), (-(2**31), 2**31 - 1))


def both(call):
    """Return the answer of each library: bits of the results, or the type and the words of the error."""
    return [answer(library, call) for library in (torch, adjoint)]


def answer(library, call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of missing batching rules
            results = call(library)
    except Exception as error:
        return type(error).__name__, str(error)
    return [
        (str(result.dtype).rpartition(".")[2], tuple(result.stride()), repr(result.detach().double().tolist()))
        for result in results
    ]


def elements(library, dtype, *shape):
    """Return elements of all sizes, halves of the scale, zeros of both signs and numbers that are not finite."""
    special = [0.0, -0.0, 0.125, 0.375, -0.625, math.nan, math.inf, -math.inf, 1e30, -1e30, 3e9, 2.0**24 + 1]
    numbers = [*special, *((i * 0.37 - 4) * 10 ** (i % 9) for i in range(math.prod(shape) - len(special)))]
    return library.tensor(numbers, dtype=library.float64).to(getattr(library, dtype)).reshape(shape)


def with_gradients(library, quantize, x):
    """Return the result, the gradient and the gradient of the gradient of `quantize(x)`."""
    x = x.detach().requires_grad_()
    result = quantize(x)
    cotangent = library.arange(result.numel(), dtype=x.dtype).reshape(result.shape).requires_grad_()
    (grad,) = library.autograd.grad(result, x, cotangent, create_graph=True)
    assert type(result.grad_fn).__name__.startswith("FakeQuantizePer")
    return (
        result,
        result.grad_fn._saved_mask,
        grad,
        *library.autograd.grad(grad, cotangent, 2 * library.ones_like(grad)),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize(
    ("scale", "tensors"),
    [
        (1e300, False),
        *((scale, by) for scale in (0.25, 0.1234567891234, -0.3, 0.0, math.inf, 1e-46) for by in (False, True)),
    ],
)
def test_per_tensor_values_and_gradients(dtype, low, high, scale, tensors):
    def call(library):
        arguments = scale, 3
        if tensors:
            arguments = library.tensor(scale, dtype=library.float64), library.tensor([3])
        return with_gradients(
            library,
            lambda x: library.fake_quantize_per_tensor_affine(x, *arguments, low, high),
            elements(library, dtype, 5, 8),
        )

    expected, found = both(call)
    assert isinstance(expected, list) and found == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("zero_point", ["int32", "float16", "float32"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel_values_and_gradients(dtype, low, high, zero_point, axis):
    def call(library):
        size = (4, 5, 3)[axis]
        scale = library.tensor([0.25, 0.1234567891234, 0.3, 1.7, 0.0][:size])
        zeros = library.tensor([0, 1.3, 2.6, 3.9, 2][:size]).to(getattr(library, zero_point))
        return with_gradients(
            library,
            lambda x: library.fake_quantize_per_channel_affine(x, scale, zeros, axis, low, high),
            elements(library, dtype, 4, 5, 3),
        )

    expected, found = both(call)
    assert isinstance(expected, list) and found == expected


@pytest.mark.parametrize("change", [
    lambda x: x.transpose(0, 2), lambda x: x[:, ::2], lambda x: x[:, :1].expand(4, 5, 3),
    lambda x: x[:0], lambda x: x[1, 1, 1], lambda x: x.reshape(2, 3, 5, 2).permute(0, 3, 1, 2),
])  # fmt: skip
def test_layouts_and_shapes(change):
    def call(library):
        x = change(elements(library, "float32", 4, 5, 3))
        number = with_gradients(library, lambda x: library.fake_quantize_per_tensor_affine(x, 0.1, 0, -4, 4), x)
        if not x.ndim:
            return number
        scale, zeros = library.full((x.shape[1],), 0.2), library.ones(x.shape[1], dtype=library.int32)
        return *number, library.fake_quantize_per_channel_affine(x, scale, zeros, 1, -4, 4)

    expected, found = both(call)
    assert isinstance(expected, list) and found == expected


@pytest.mark.parametrize("arguments", [
    "x, .1, 0, 5, 4", "x, .1, 9, -4, 4", "x, .1, -9, -4, 4", "x.int(), .1, 9, -4, 4", "x.int(), .1, 0, -4, 4",
    "x.to(t.complex64), .1, 0, -4, 4", "x[:0].bool(), .1, 0, -4, 4", "x, s[0], z[0], 5, 4", "x, s, z[0], -4, 4",
    "x, s[0], z, -4, 4", "x, s[:0], z[0], -4, 4", "x, s[0].clone().requires_grad_(), z[0], -4, 4",
    "x, s[0], z.float().requires_grad_()[0], -4, 4", "x, .1, .5, -4, 4", "x, .1, 0, -4., 4", "x, .1, True, -4, 4",
    "x, 'a', 0, -4, 4", "x, 1j, 0, -4, 4", "x, None, 0, -4, 4", "x, s[:2], 0, -4, 4",
])  # fmt: skip
def test_errors_per_tensor(arguments):
    check_error("fake_quantize_per_tensor_affine", arguments)


@pytest.mark.parametrize("arguments", [
    "x, s.double(), z.long(), 5, 5, 4", "x, s[:2], z.long(), 5, 5, 4", "x, s[:2], z[:1], 5, 5, 4", "x, s, z, 5, 5, 4",
    "x, s, z, -3, 5, 4", "x, s[:2], z[:2] + 20, 1, 5, 4", "x, s, z, 1, 5, 4", "x.int(), s, z + 20, 1, -4, 4",
    "x, s, z + 20, -1, -4, 4", "x, s, z, -1, -4, 4", "x, s, z[None], 1, -4, 4", "x, s[None], z, 1, -4, 4",
    "x, s[0], z[0], 1, -4, 4", "x[0, 0], s[:1], z[:1], 0, -4, 4", "x.int(), s, z, 1, -4, 4", "x[:0].int(), s, z, 1, -4, 4",
    "x, s.clone().requires_grad_(), z, 1, -4, 4", "x, s, z.float().requires_grad_(), 1, -4, 4",
])  # fmt: skip
def test_errors_per_channel(arguments):
    check_error("fake_quantize_per_channel_affine", arguments)


def check_error(name, arguments):
    def call(library):
        x, s = library.ones(2, 3), library.tensor([0.1, 0.2, 0.3])
        names = {"t": library, "x": x, "s": s, "z": library.tensor([0, 1, 2], dtype=library.int32)}
        return getattr(library, name)(*eval(arguments, names))

    expected, found = both(call)
    assert isinstance(expected, tuple) and found == expected


def test_vmap_over_any_argument():
    def call(library):
        vmap, quantize = library.func.vmap, library.fake_quantize_per_tensor_affine
        along = library.fake_quantize_per_channel_affine
        x = elements(library, "float32", 4, 3, 5)
        scale, zeros = library.tensor([[0.1], [0.2], [0.3], [0.4]]), library.ones(4, 1, dtype=library.int32)
        return (
            vmap(lambda x: quantize(x, 0.1, 1, -4, 4), 2, 1)(x),
            vmap(lambda x: along(x, scale[:3, 0], zeros[:3, 0], 1, -4, 4), 2)(x),
            vmap(lambda x, scale, zeros: along(x[:1], scale, zeros, 0, -4, 4))(x, scale, zeros),
            vmap(lambda x: quantize(x, scale[0], zeros[0], -4, 4))(x),
        )

    expected, found = both(call)
    assert isinstance(expected, list) and [each[::2] for each in found] == [each[::2] for each in expected]


def test_autocast_computes_with_numbers_in_float32():
    def call(library):
        x, scale, zeros = library.ones(2, 1).bfloat16(), library.tensor([0.3]), library.ones(1, dtype=library.int32)
        with library.autocast("cpu", library.bfloat16):
            return (
                library.fake_quantize_per_tensor_affine(x, 0.3, 1, -4, 4),
                library.fake_quantize_per_tensor_affine(
                    input=x, scale=scale, zero_point=zeros, quant_min=-4, quant_max=4
                ),
                library.fake_quantize_per_channel_affine(x, scale, zeros, 1, -4, 4),
            )

    expected, found = both(call)
    assert isinstance(expected, list) and found == expected
