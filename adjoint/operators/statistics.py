"""How variables vary together: covariances and correlations of the rows of a matrix."""

from __future__ import annotations

from ..notices import warn
from ..tensor import Tensor
from .apart import is_readable
from .build import public, tensors


@public(method=True, numpy_names=True)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the rows of `input` (one variable each; one-dimensional: one variable), columns being observations.

    `fweights` says how often each observation was made, `aweights` how much it counts. `correction` is subtracted from their
    number, as in `numpy.cov`.

    >>> import adjoint as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("cov", input)
    if isinstance(correction, bool) or not hasattr(correction, "__index__"):
        raise TypeError(f"cov(): argument 'correction' must be int, not {type(correction).__name__}")
    if input._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.view((1, input._array.size)) if input._array.ndim < 2 else input
    count = rows._array.shape[1]
    weights = _weights(fweights, aweights, count)
    if weights is None:
        total, degrees = count, count - correction
        weighted = rows
    else:
        total = weights.sum()
        degrees = total - correction if aweights is None else _effective(total, weights, aweights, correction)
        weighted = rows * weights
    centered = rows - (weighted.sum(1) / total).unsqueeze(1)
    other = centered if weights is None else centered * weights
    if not (degrees if weights is None else degrees.item()) > 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        degrees = 0 if weights is None else degrees.zero_()
    return (tensors.mm(centered, other.t().conj()) / degrees).squeeze()


def _check_variables(name, input):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if input._array.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input._array.ndim} dimensions"
        )


def _effective(total, weights, aweights, correction):
    """The degrees of freedom of weighted observations."""
    if correction == 0:
        return total
    return total - tensors.mul_number((weights * aweights).sum(), correction) / total


def _weights(fweights, aweights, count):
    """The products of both kinds of weights, None where there are none."""
    for name, weights, kind, words in (
        ("fweights", fweights, "iu", "integral"),
        ("aweights", aweights, "fV", "floating point"),
    ):
        if weights is None:
            continue
        if not isinstance(weights, Tensor):
            raise TypeError(f"cov(): argument '{name}' must be Tensor, not {type(weights).__name__}")
        array = weights._array
        if array.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {array.ndim} dimensions"
            )
        if array.dtype.kind not in kind:
            raise RuntimeError(
                f"cov(): expected {name} to have {words} dtype but got {name} with {weights.dtype.scalar_type} dtype"
            )
        if array.size != count:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got {array.size} "
                f"!= {count}"
            )
        if count and is_readable(weights) and (array < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        weights = aweights if fweights is None else fweights
    else:
        weights = fweights * aweights
    if weights is not None and is_readable(weights) and not weights._array.sum():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    return weights


@public(method=True, numpy_names=True)
def corrcoef(input):
    """The correlation coefficients (Pearson) of the rows of `input`: covariances over both standard deviations.

    >>> import adjoint as torch
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("corrcoef", input)
    covariance = cov(input)
    if covariance._array.ndim == 0:
        return covariance / covariance
    variances = covariance.diagonal()
    deviations = tensors.sqrt(tensors.real(variances) if variances.is_complex() else variances)
    result = covariance / deviations.view((-1, 1)) / deviations.view((1, -1))
    if result.is_complex():
        return tensors.complex(tensors.real(result).clamp(-1, 1), tensors.imag(result).clamp(-1, 1))
    return result.clamp(-1, 1)
