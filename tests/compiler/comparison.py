"""Compare a compiled function with the original function: values, gradients, buffers and random numbers."""

import copy
import warnings

import numpy

import adjoint as torch

TOLERANCES = {torch.float64: 1e-10, torch.complex128: 1e-10, torch.bfloat16: 3e-2, torch.float16: 3e-3}
"""The relative tolerance by dtype, and 2e-5 for other dtypes. Captured formulas of half types round after each step."""


def tensors_in(value):
    """Return the tensors in nested values, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for each in value for tensor in tensors_in(each)] if isinstance(value, (list, tuple)) else []


def assert_alike(found, expected, what="", *, strides=True):
    """Assert that results have the same structure, and their tensors the same values, dtypes, strides and versions.

    `strides=False`: do not compare strides, because returned gradients may have the layout of recorded gradients.
    """
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, torch.Tensor), what
        facts = [
            (
                *(t.dtype, tuple(t.shape), t.stride() if strides and t.numel() > 1 else None),
                *(t.is_inference() or t._version, t.requires_grad, t.is_leaf),
            )
            for t in (found, expected)
        ]
        assert facts[0] == facts[1], f"{what}: {facts}"
        assert_close(found, expected, what)
    elif isinstance(expected, dict):
        assert list(found) == list(expected), what
        for name in expected:
            assert_alike(found[name], expected[name], f"{what}[{name!r}]", strides=strides)
    elif isinstance(expected, (list, tuple)):
        assert type(found).__name__ == type(expected).__name__ and len(found) == len(expected), what
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_alike(one, other, f"{what}[{number}]", strides=strides)
    else:
        assert type(found).__name__ == type(expected).__name__, what
        if isinstance(expected, (int, float, complex, str, torch.dtype, torch.device, set, frozenset)):
            assert found == expected or found != found, what


def assert_close(found, expected, what=""):
    """Assert that two tensors have the same elements, up to rounding."""
    arrays = []
    for tensor in (found, expected):
        tensor = tensor.detach().resolve_conj().resolve_neg()
        arrays.append((tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy())
    if arrays[0].dtype.kind in "fc":
        tolerance = TOLERANCES.get(expected.dtype, 2e-5)
        scale = numpy.abs(arrays[1][numpy.isfinite(arrays[1])]).max(initial=1)
        numpy.testing.assert_allclose(*arrays, rtol=tolerance, atol=tolerance * scale, err_msg=what)
    else:
        numpy.testing.assert_array_equal(*arrays, err_msg=what)


def gradients(result, leaves, *, twice=False):
    """Return the gradients of the sum of squares of the results and, if `twice`, of the sum of squares of these gradients."""
    roots = [each for each in tensors_in(result) if each.requires_grad and torch.is_grad_enabled()]
    if not roots or not leaves:
        return []
    loss = sum(each.abs().square().sum() for each in roots)
    found = torch.autograd.grad(loss, leaves, create_graph=twice, allow_unused=True)
    if not twice:
        return list(found)
    second = sum(each.abs().square().sum() for each in found if each is not None and each.requires_grad)
    if not isinstance(second, torch.Tensor):
        return list(found)
    return [*found, *torch.autograd.grad(second, leaves, allow_unused=True)]


def detached(value):
    """Return the nested values with detached tensors, which keep `requires_grad`."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {name: detached(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(detached, value))
    return value


def converted(value, dtype):
    """Convert the floating-point tensors in nested values to a dtype, if one is given."""
    if isinstance(value, torch.Tensor):
        kept = dtype is None or not value.is_floating_point()
        return value if kept else value.detach().to(dtype).requires_grad_(value.requires_grad)
    return type(value)([converted(each, dtype) for each in value]) if isinstance(value, (list, tuple)) else value


def reason_of(compiled):
    """Return the reason why a compiled function or module was not captured, or None."""
    return compiled.compiled.reason


def assert_as_eager(function, inputs, *, module=None, times=3, captured=True, twice=False, kwargs=None, dtype=None):
    """Call `function` (or `module`) several times with and without compilation, and compare the results.

    `inputs(number)`: the arguments of a call. `captured`: whether one program must run in all calls except the first. None: do
    not check this. `twice`: compare second gradients.
    """
    if module is not None:
        function, plain = module, copy.deepcopy(module)
    else:
        plain = function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(function)
        for number in range(times):
            torch.manual_seed(number)
            given = converted(inputs(number), dtype)
            both = []
            for called in (plain, compiled):
                arguments = detached(given)
                torch.manual_seed(100 + number)
                result = called(*arguments, **(kwargs or {}))
                state = torch.get_rng_state()
                leaves = [each for each in tensors_in(arguments) if each.requires_grad and each.is_leaf]
                buffers = []
                if module is not None:
                    owner = plain if called is plain else module
                    leaves += [each for each in owner.parameters() if each.requires_grad]
                    buffers = [each.clone() for each in owner.buffers()]
                both.append((result, gradients(result, leaves, twice=twice), buffers, state, arguments))
            for part, found, expected in zip(
                ("result", "gradient", "buffer", "random state", "argument"), both[1], both[0], strict=True
            ):
                assert_alike(found, expected, f"call {number}: {part}", strides=part != "gradient")
    if captured is not None:
        wanted = (None, times - 1) if captured else (reason_of(compiled), 0)
        assert (reason_of(compiled), sum(each.calls for each in compiled.compiled.variants)) == wanted, reason_of(
            compiled
        )
        assert captured or reason_of(compiled)
    return compiled
