"""Fourier transforms: their values for every size, and refused arguments."""

import numpy
import pytest

import adjoint as torch

X = torch.tensor([[1.0, -2.0, 3.0, 5.0], [0.5, 4.0, -1.0, 2.0], [2.0, 0.0, 1.0, -3.0]], dtype=torch.float64)
Z = torch.complex(X, X.flip(0))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    "name", "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()
)
def test_transforms_are_those_of_numpy(name, norm):
    value = X if name.startswith(("rfft", "ihfft")) else Z
    result = getattr(torch.fft, name)(value, norm=norm)
    numpy.testing.assert_allclose(
        result.numpy(force=True), getattr(numpy.fft, name)(value.numpy(), norm=norm), atol=1e-12
    )


@pytest.mark.parametrize("name", ["fft2", "fftn"])
def test_hermitian_transforms_over_several_dimensions_undo_each_other(name):
    there, back = getattr(torch.fft, f"ih{name}"), getattr(torch.fft, f"h{name}")
    assert torch.allclose(back(there(X)), X)


def test_sizes_cut_and_extend():
    assert torch.allclose(torch.fft.fft(X, 6), torch.fft.fft(torch.nn.functional.pad(X, (0, 2))))
    assert torch.allclose(torch.fft.fftn(X, (2, -1)), torch.fft.fftn(X[:2]))
    assert torch.fft.irfft(Z, 5).shape == (3, 5)


@pytest.mark.parametrize("shape", [(20_000, 17), (3, 100_000), (200_000, 2)])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_halves_of_large_real_transforms(shape, dim):
    x = numpy.random.default_rng(0).standard_normal(shape)
    exact = numpy.fft.fft(x.astype(complex), axis=dim)
    numpy.testing.assert_allclose(torch.fft.fft(torch.from_numpy(x), dim=dim).numpy(), exact, atol=1e-10)


def test_single_precision_stays_single():
    assert torch.fft.fft(X.float()).dtype is torch.complex64
    assert torch.fft.irfft(Z.to(torch.complex64)).dtype is torch.float32
    assert torch.fft.fft(torch.arange(3)).dtype is torch.complex64


def test_examples_are_transformed_together():
    mapped = torch.func.vmap(lambda row: torch.fft.irfft(torch.fft.rfft(row, norm="ortho") * 2, 4, norm="ortho"))
    assert torch.allclose(mapped(X), X * 2)


def test_frequencies_and_shifts():
    assert torch.fft.fftfreq(0).shape == (0,)
    assert torch.fft.fftshift(torch.arange(5)).tolist() == [3, 4, 0, 1, 2]
    assert torch.fft.ifftshift(torch.fft.fftshift(X, 1), 1).equal(X)
    assert torch.fft.rfftfreq(4, 0.5, dtype=torch.float64).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.fft.rfft(Z), RuntimeError, "rfft expects a real input tensor, but got ComplexDouble"),
        (lambda: torch.fft.fft(X, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
        (lambda: torch.fft.fft(X, 0), RuntimeError, "Invalid number of data points"),
        (lambda: torch.fft.fftn(X, dim=(0, -2)), RuntimeError, "FFT dims must be unique"),
        (lambda: torch.fft.fft(torch.ones(())), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda: torch.fft.fft(X.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda: torch.fft.fft(X, out=X.clone()), RuntimeError, "fft expects a complex output tensor, but got Double"),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
def test_every_dimension_is_transformed_with_the_same_bits(name):
    value = torch.tensor(numpy.random.default_rng(0).normal(size=(4, 6, 5)).astype("f"))
    value = value if name == "rfft" else value + 0j
    for dim in range(2):
        found = getattr(torch.fft, name)(value, dim=dim)
        turned = getattr(torch.fft, name)(value.transpose(dim, 2).contiguous()).transpose(dim, 2)
        assert found.dtype == torch.complex64
        assert found.contiguous().numpy().tobytes() == turned.contiguous().numpy().tobytes()
