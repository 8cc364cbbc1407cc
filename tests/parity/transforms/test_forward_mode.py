"""Forward mode compared with PyTorch.

For PyTorch's sample inputs and equal tangents of arguments, the tangents of results agree.
"""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

import importlib

import adjoint
from tests.parity import samples
from tests.parity.candidate import seed
from tests.parity.comparison import results_differ, tensors_in
from tests.parity.conversion import from_array, to_array

FORWARD = {module: importlib.import_module(f"{module.__name__}.autograd.forward_ad") for module in (adjoint, torch)}
DTYPES = (torch.float64, torch.complex128)
MOST = 12

ONE_TRIANGLE = "the function reads one triangle, but PyTorch also uses some tangents of the other triangle"
NOTHING = "for empty tensors, one library gives 0 and the other gives nan"

DIFFERENT = {
    "cholesky_inverse": "only adjoint's tangents agree with finite differences",
    "cholesky_solve": "PyTorch uses tangents of the triangle that the function does not read",
    "triangular_solve": ONE_TRIANGLE,
    "linalg.cholesky": ONE_TRIANGLE,
    "linalg.cholesky_ex": ONE_TRIANGLE,
    "linalg.eigh": ONE_TRIANGLE,
    "cov": "PyTorch rounds float32 weights at another step",
    "logcumsumexp": "PyTorch's tangents have six correct digits, and are nan for complex numbers",
    "var.unbiased": NOTHING,
    "var_mean.unbiased": NOTHING,
    "std_mean.unbiased": NOTHING,
}
"""Operators whose tangents differ for some samples, with the reasons."""


def cases() -> list[tuple[str, Any]]:
    return [
        (name, dtype)
        for name, op in samples.operators().items()
        for dtype in DTYPES
        if op.supports_forward_ad
        and dtype in op.supported_dtypes("cpu")
        and dtype in op.supported_backward_dtypes("cpu")
    ]


def tangent_like(module: Any, tensor: Any) -> Any:
    """Return a tangent that is the same in both libraries."""
    array = to_array(tensor)
    generator = numpy.random.default_rng(array.size)
    values = generator.standard_normal(array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * generator.standard_normal(array.shape)
    return from_array(module, numpy.asarray(values, array.dtype))


def with_tangents(module: Any, value: Any) -> Any:
    """Return the arguments, with tangents for floating-point tensors."""
    if isinstance(value, module.Tensor):
        if value.is_floating_point() or value.is_complex():
            return FORWARD[module].make_dual(value, tangent_like(module, value))
        return value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(with_tangents(module, item) for item in value)
    if isinstance(value, dict):
        return {name: with_tangents(module, item) for name, item in value.items()}
    return value


def tangents(module: Any, run: Callable[..., Any], sample: samples.Sample) -> Any:
    """Return the tangents of the results and of the changed arguments, or the error."""
    args, kwargs, _ = sample.build(module, requires_grad=False)
    with FORWARD[module].dual_level():
        unpack = FORWARD[module].unpack_dual
        try:
            seed(module, 0)
            result = run(*with_tangents(module, args), **with_tangents(module, kwargs))
        except Exception as error:  # all exceptions are compared
            return error
        return [
            (primal, tangent)
            for tensor in tensors_in(result)
            for primal, tangent in [unpack(tensor)]
            if primal.is_floating_point() or primal.is_complex()
        ]


def steps(tensor: Any) -> list[int]:
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1]


def differs(op: Any, sample: samples.Sample) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # PyTorch gives some warnings once in a process, which pytest would turn into errors
        expected = tangents(torch, samples.function(op, torch), sample)
        found = tangents(adjoint, samples.function(op, adjoint), sample)
    if isinstance(expected, Exception):
        return None  # other tests compare the errors
    if isinstance(found, Exception):
        return f"raised {type(found).__name__}: {str(found)[:300]}"
    for (primal, tangent), (wanted_primal, wanted) in zip(found, expected, strict=True):
        if tangent is None or wanted is None:
            given, other = (tangent, wanted_primal) if wanted is None else (wanted, primal)
            if given is not None and to_array(given).any():
                return f"a tangent {'where PyTorch has none' if wanted is None else 'is missing'}, for {tuple(other.shape)}"
            continue
        difference = results_differ(tangent, wanted)
        if difference:
            return difference
        if wanted.layout is torch.strided and steps(tangent) != steps(primal):
            return f"a tangent with the strides {tangent.stride()} of a result with {primal.stride()}"
    return None


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize(("name", "dtype"), cases(), ids=lambda part: str(part).removeprefix("torch."))
@pytest.mark.one_each("name")
def test_tangents_agree(name: str, dtype: Any, others: bool) -> None:
    """Each case tests every second sample, or all samples if known differences exist."""
    if others and name in DIFFERENT:
        pytest.skip("the whole has them")
    op = samples.operators()[name]
    failures = []
    inputs = op.sample_inputs("cpu", dtype, requires_grad=False)
    count = 0
    for given in itertools.islice(inputs, int(others), MOST, 1 if name in DIFFERENT else 2):
        sample = samples.Sample((given.input, *given.args), given.kwargs)
        count += 1
        difference = differs(op, sample)
        if difference:
            failures.append(f"  {sample}: {difference}")
    if name in DIFFERENT:
        assert failures, f"{name} is listed as different: {DIFFERENT[name]}"
    else:
        assert not failures, f"{len(failures)} of {count} samples differ:\n" + "\n".join(failures[:5])
