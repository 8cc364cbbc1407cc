"""`gradcheck` and `gradgradcheck`: derivatives compared with finite differences.

Every element of every input is changed by a small amount. The resulting changes of the outputs are compared with the
Jacobians that backward and forward mode compute. In fast mode only one random direction is compared: `v^T J u` for
vectors of norm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from .._runtime.tracebacks import ending_at_caller, warn
from ..kernels.runtime.sparse_array import SparseArray
from ..tensor import Tensor, wrap

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """The error of `gradcheck` and `gradgradcheck` for a wrong derivative."""


def require(holds: bool, words: str) -> None:
    """Raise PyTorch's error for contradictory options."""
    if not holds:
        raise AssertionError(words)


@ending_at_caller
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with finite differences.

    A complex output is checked as two real functions: its imaginary part and its real part.

    Args:
        func: a function that takes `inputs` and returns a tensor or a sequence of tensors.
        inputs: a tensor, or a sequence of any objects. The tensors that require grad are checked. They should have
            double precision, and are changed in place while `func` runs.
        eps: the size of the change of inputs.
        atol: the absolute tolerance.
        rtol: the tolerance relative to the finite differences.
        raise_exception: whether to raise a `GradcheckError` that describes the difference. Otherwise return False.
        nondet_tol: the permitted difference between two runs of the same backward.
        check_undefined_grad: whether to check that undefined gradients are treated as zeros.
        check_grad_dtypes: whether to check that gradients have the dtype of their inputs.
        check_batched_grad: whether to check that backward works on a batch of gradients, under `vmap`.
        check_batched_forward_grad: whether to check the same for forward mode.
        check_forward_ad: whether to check forward mode too.
        check_backward_ad: whether to check backward.
        fast_mode: whether to compare along only one random direction.
        masked: whether missing elements of sparse inputs stay zero and have no gradient.

    Returns:
        True if all derivatives agree.

    Raises:
        GradcheckError: if a derivative is wrong.
        ValueError: if no input requires grad, or if an output is sparse.
        RuntimeError: if an input is expanded, because changing one element would change several.

    >>> import adjoint as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.log, x)
    True
    """
    require(
        check_forward_ad or check_backward_ad,
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
    )
    require(
        not (check_batched_grad and not check_backward_ad),
        "Setting check_batched_grad=True requires check_backward_ad to be True",
    )
    require(
        not (check_batched_forward_grad and not check_forward_ad),
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
    )
    from . import derivative_checks as checks
    from .jacobians import Mapping, as_tuple

    options = checks.Options(eps, atol, rtol, nondet_tol, fast_mode)
    try:
        checks.check_inputs(as_tuple(inputs))
        mapping = Mapping(func, as_tuple(inputs))
        mapping.check_dtypes, mapping.masked = check_grad_dtypes, bool(masked)
        if any(type(output._array) is SparseArray for output in mapping.outputs):
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for "
                "gradcheck."
            )
        if not mapping.differentiable:
            checks.check_constant(mapping, options)
            return True
        if check_backward_ad:
            checks.check_backward(mapping, options)
        if check_forward_ad:
            checks.check_forward(mapping, options)
            if check_undefined_grad:
                checks.check_undefined_tangents(mapping)
            if check_batched_forward_grad:
                checks.check_batched_tangents(mapping)
        if check_backward_ad:
            if check_batched_grad:
                checks.check_batched_gradients(mapping)
            checks.check_linear(mapping)
            if check_undefined_grad:
                checks.check_undefined_gradients(mapping)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@ending_at_caller
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of the gradients of `func` with finite differences.

    Apply `gradcheck` to the function that maps `inputs` and `grad_outputs` to the gradients of the inputs that require
    grad.

    Args:
        func: as in `gradcheck`.
        inputs: as in `gradcheck`.
        grad_outputs: the gradients of the outputs. By default they are random numbers from -1 to 1, and require grad.
        gen_non_contig_grad_outputs: whether to make these random gradients non-contiguous.
        check_fwd_over_rev: whether to check the derivatives of gradients by forward mode.
        check_rev_over_rev: whether to check them by backward.
        eps, atol, rtol, raise_exception, nondet_tol, fast_mode, masked: as in `gradcheck`.
        check_undefined_grad, check_grad_dtypes, check_batched_grad: as in `gradcheck`.

    >>> import adjoint as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.log, x)
    True
    """
    require(
        check_fwd_over_rev or check_rev_over_rev,
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
    )
    require(
        not (check_undefined_grad and not check_rev_over_rev),
        "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
    )
    require(
        not (check_batched_grad and not check_rev_over_rev),
        "Setting check_batched_grad=True requires check_rev_over_rev to be True",
    )
    from ..autograd.backward import grad
    from .derivative_checks import random_gradient
    from .jacobians import as_tuple, is_source

    given = as_tuple(inputs)
    chosen = [number for number, value in enumerate(given) if is_source(value)]
    if grad_outputs is None:
        outputs = [output for output in as_tuple(func(*given)) if output.requires_grad]
        gradients = tuple(random_gradient(output, gen_non_contig_grad_outputs) for output in outputs)
    else:
        gradients = as_tuple(grad_outputs)

    def gradients_of(*arguments: Any) -> tuple[Tensor, ...]:
        arguments, vectors = arguments[: len(given)], arguments[len(given) :]
        for number in chosen:
            if not arguments[number].requires_grad:  # in forward mode
                arguments[number].requires_grad_()
        outputs = [output for output in as_tuple(func(*arguments)) if output.requires_grad]
        wanted = [arguments[number] for number in chosen]
        found = grad(outputs, wanted, vectors, create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in found if gradient is not None)

    return gradcheck(
        gradients_of,
        given + gradients,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


# --- deprecated public functions ------------------------------------------------------------------------------------


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """Return the Jacobians of the first output of `fn`, which takes a tuple, for `target` (`inputs` by default).

    Deprecated.

    A matrix has a row for each element of an input and a column for each element of the output.

    Raises:
        ValueError: if `grad_out` is not 1, or if the output is complex.
    """
    check_deprecated("get_numerical_jacobian", grad_out)
    from .jacobians import Mapping, as_tuple, complex_ones, numerical_by

    def packed(*arguments: Any) -> Any:
        return fn(arguments)

    mapping = Mapping(packed, as_tuple(inputs))
    if complex_ones(mapping.outputs):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return complex outputs."
        )
    moved = [each for each in as_tuple(inputs if target is None else target) if isinstance(each, Tensor)]
    return tuple(wrap(numerical_by(mapping, each, eps)[0]) for each in moved)


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """Yield the tensors in nested lists and tuples, or only those that require grad."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _iter_tensors(item, only_requiring_grad)


def _get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """Return the Jacobians of all outputs of `fn` for each tensor of `target` (`inputs` by default) that requires a gradient."""
    from .jacobians import Mapping, as_tuple, numerical_by

    mapping = Mapping(fn, as_tuple(inputs))
    wanted = _iter_tensors(inputs if target is None else target, only_requiring_grad=True)
    return [tuple(map(wrap, numerical_by(mapping, each, eps))) for each in wanted]


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Return the Jacobians of `output` for `inputs`, by backward. Deprecated.

    Returns:
        The Jacobians, whether two runs agree, and whether gradients have the sizes and the dtypes of their inputs.

    Raises:
        ValueError: if `grad_out` is not 1, or if the output is complex.
    """
    check_deprecated("get_analytical_jacobian", grad_out)
    from .jacobians import Mapping, as_tuple, backward_jacobians

    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex "
            "outputs."
        )
    mapping = Mapping(lambda *_: output, as_tuple(inputs))
    first, second = (backward_jacobians(mapping, 0) for _ in range(2))
    agree = all(bool((numpy.abs(a - b) <= nondet_tol).all()) for a, b in zip(first, second, strict=True))
    return tuple(map(wrap, first)), agree, True, True


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """Return the Jacobians of all outputs of `fn` for one tensor: `input`, or the tensor at `input_idx`.

    Raises:
        AssertionError: if both an output and the tensor are complex.
    """
    from .jacobians import Mapping, complex_ones, numerical_by

    source = inputs[input_idx] if input is None else input
    mapping = Mapping(fn, inputs)
    require(
        not (source.is_complex() and complex_ones(mapping.outputs)), "Expected ds_dx to be real-valued, not complex"
    )
    return tuple(map(wrap, numerical_by(mapping, source, eps)))


def check_deprecated(name: str, grad_out: float) -> None:
    """Warn that a function is deprecated, and refuse values of `grad_out` that it does not support any more."""
    warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
        "in a future version of PyTorch. If you have a specific use for this or feature request for this to be a stable API, "
        "please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
