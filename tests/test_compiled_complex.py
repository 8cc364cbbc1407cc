"""Compiled functions of complex numbers, and floats by expressions, compute what NumPy computes, special values included."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.compiled_complex import FUNCTIONS

PARTS = [0.0, -0.0, 1, -1, numpy.inf, -numpy.inf, numpy.nan, 100, -100, 1e30, 1e-30, 20, -20]


def _both(function, *arrays, monkeypatch):
    """The results of compiled loops and of NumPy."""
    tensors = [torch.from_numpy(array) for array in arrays]
    monkeypatch.setattr(LOOPS, "_enabled", True)
    found = function(*tensors)
    monkeypatch.setattr(LOOPS, "_enabled", False)
    expected = function(*tensors)
    assert found.dtype == expected.dtype and found.stride() == expected.stride()
    return found.numpy(), expected.numpy()


def _complex(dtype, strided=False):
    rng = numpy.random.default_rng(0)
    usual = (3 * rng.standard_normal(40_000) + 3j * rng.standard_normal(40_000)).astype(dtype)
    if strided:
        return usual.reshape(200, 200).T
    return numpy.concatenate([numpy.array([complex(a, b) for a in PARTS for b in PARTS], dtype), usual])


@pytest.mark.parametrize("dtype", ["F", "D"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_complex_functions(name, dtype, monkeypatch):
    for array in (_complex(dtype), _complex(dtype, strided=True)):
        other = numpy.random.default_rng(1).permutation(array.reshape(-1)).reshape(array.shape)
        operands = (array, other) if name in ("multiply", "divide") else (array,)
        found, expected = _both(getattr(torch, name), *operands, monkeypatch=monkeypatch)
        with numpy.errstate(all="ignore"):
            near = numpy.abs(found - expected) <= 8 * numpy.finfo(dtype).eps * numpy.abs(expected)
        for one, wanted in ((found.real, expected.real), (found.imag, expected.imag)):
            same = (one == wanted) | (numpy.isnan(one) & numpy.isnan(wanted))
            assert (same | (near & numpy.isfinite(expected))).all()
    assert not LOOPS.failures


def test_real_and_imaginary_parts_are_joined(monkeypatch):
    parts = numpy.random.default_rng(0).standard_normal((2, 300, 301)).astype("f4")
    found, expected = _both(torch.complex, parts[0], parts[1, :1], monkeypatch=monkeypatch)
    assert (found == expected).all()


PAIRS = {
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "logical_and": torch.logical_and,
    "logical_xor": torch.logical_xor,
    "add": lambda x, y: torch.add(x, y, alpha=2),
    "sign": lambda x, y: torch.sign(x),
    "angle": lambda x, y: torch.angle(x),
    "nan_to_num": lambda x, y: torch.nan_to_num(x),
    "nan_to_num of numbers": lambda x, y: torch.nan_to_num(x, 1.0, 2.0, 3.0),
    "logical_not": lambda x, y: torch.logical_not(x),
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", list(PAIRS))
def test_functions_of_floats(name, dtype, monkeypatch):
    values = numpy.array([*PARTS, 2.5, -2.5, 1e-40, -1e-40, 7, -7, 0.3, 1e10, -1e10])
    rng = numpy.random.default_rng(0)
    wide = rng.standard_normal(40_000) * 10 ** rng.uniform(-5, 8, 40_000)
    x = numpy.concatenate([numpy.repeat(values, len(values)), wide]).astype(dtype)
    y = numpy.concatenate([numpy.tile(values, len(values)), rng.permutation(wide) / 1e4]).astype(dtype)
    found, expected = _both(PAIRS[name], x, y, monkeypatch=monkeypatch)
    if name.startswith("logaddexp"):
        numpy.testing.assert_allclose(
            found, expected, rtol=4e-7 if dtype == "f4" else 1e-15, atol=4e-7 if dtype == "f4" else 1e-15
        )
    else:
        numpy.testing.assert_array_equal(found, expected)
        assert (numpy.signbit(found) == numpy.signbit(expected))[~numpy.isnan(expected)].all()
