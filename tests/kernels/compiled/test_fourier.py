"""Compiled Fourier transforms give NumPy's float64 results, along any dimension."""

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.math.fourier import transform

SHAPES = [(16, 16), (40, 64), (33, 96), (17, 100), (70, 512), (5, 60, 24), (3, 48, 20), (18, 125), (16, 2048)]


def sample(shape, dtype):
    generator = numpy.random.default_rng(0)
    x = generator.standard_normal(shape)
    return (x + 1j * generator.standard_normal(shape) if dtype in "FD" else x).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "width"), [("f", 64), ("F", 64), ("d", 64), ("D", 64), ("f", 32), ("D", 32), ("F", 16)]
)
@pytest.mark.long_cases
def test_transforms(dtype, width, monkeypatch):
    if width > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(HOST, "vector_bytes", width)
    taken = 0
    for shape in SHAPES if width == 64 else SHAPES[:4]:
        x = sample(shape, dtype)
        for axis, n in enumerate(shape):
            for forward, onesided in [(True, False), (False, False), *([(True, True)] if dtype in "fd" else [])]:
                found = transform(x, axis, forward, 0.5, onesided)
                if found is NotImplemented:
                    continue
                taken += 1
                exact = (
                    numpy.fft.fft(x.astype("D"), axis=axis) if forward else n * numpy.fft.ifft(x.astype("D"), axis=axis)
                )
                exact = exact.take(range(n // 2 + 1), axis) if onesided else exact
                error = abs(found - 0.5 * exact).max() / abs(exact).max()
                assert error < (3e-7 if dtype in "fF" else 1e-15), (shape, axis, forward, onesided)
                turned = transform(x, axis, forward, 0.5, onesided, True)
                numpy.testing.assert_array_equal(turned, numpy.moveaxis(found, axis, -1))
    assert taken > 10


@pytest.mark.parametrize("size", [1, 7, 16, 20, 261])
@pytest.mark.long_cases
def test_operators(size, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    x = sample((40, size), "f")
    tensor = adjoint.tensor(x, requires_grad=True)
    for norm in ("backward", "ortho", "forward"):
        for name in ("fft", "rfft", "ifft", "fft2", "rfft2"):
            found = getattr(adjoint.fft, name)(tensor, norm=norm)
            exact = getattr(numpy.fft, name)(x.astype("d"), norm=norm)
            numpy.testing.assert_allclose(
                found.detach().resolve_conj().numpy(), exact, atol=2e-6 * max(1, abs(exact).max())
            )
        back = adjoint.fft.irfft(adjoint.fft.rfft(tensor, norm=norm), x.shape[1], norm=norm)
        numpy.testing.assert_allclose(back.detach().numpy(), x, atol=2e-6)
    (grad,) = adjoint.autograd.grad(adjoint.fft.rfft2(tensor).abs().square().sum(), tensor)
    spectrum = numpy.fft.rfft2(x.astype("d"))
    full = numpy.fft.fft2(x.astype("d"))
    kept = numpy.zeros(full.shape)
    kept[:, : spectrum.shape[1]] = 1
    exact = 2 * (numpy.fft.ifft2(full * kept) * full.size).real
    numpy.testing.assert_allclose(grad.numpy(), exact, rtol=1e-4, atol=1e-4 * abs(exact).max())
    assert not LOOPS.failures


@pytest.mark.parametrize("dtype", ["f", "F"])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_do_not_touch_one_another(axis, dtype):
    x = sample((40, 64), dtype) if axis else sample((64, 40), dtype)
    clean = transform(x, axis, True, 1.0)
    (x if axis else x.T)[3] = numpy.nan
    (x if axis else x.T)[8] *= 1e12
    found = transform(x, axis, True, 1.0)
    kept = [line for line in range(40) if line not in (3, 8)]
    numpy.testing.assert_array_equal(found.take(kept, 1 - axis), clean.take(kept, 1 - axis))
    assert numpy.isnan(found.take(3, 1 - axis)).all()
