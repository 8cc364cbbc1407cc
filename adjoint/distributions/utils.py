"""Functions for implementing distributions: broadcasting of parameters, probabilities and log-odds, lazy properties."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, TypeVar

import adjoint as torch
from adjoint import Size, Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

T = TypeVar("T")

EULER = 0.57721566490153286
"""The Euler-Mascheroni constant."""


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers to a common shape. Numbers get the dtype and device of the first tensor.

    Raises:
        ValueError: if an argument is neither a tensor nor a number.

    >>> import adjoint as torch
    >>> broadcast_all(1.0, torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(isinstance(value, Real) or hasattr(value, "__torch_function__") for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
    for value in values:
        if isinstance(value, Tensor):
            options = {"dtype": value.dtype, "device": value.device}
            break
    tensors = [torch.tensor(value, **options) if isinstance(value, Real) else value for value in values]
    return tuple(torch.broadcast_tensors(*tensors))


def _standard_normal(shape: Any, dtype: torch.dtype | None, device: Any) -> Tensor:
    return torch.randn(tuple(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Return the sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(*value.shape[: value.dim() - dim], -1).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return probabilities.

    If `is_binary`, compute them from log-odds, otherwise from unnormalized logarithms along the last dimension.
    """
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities clamped away from 0 and 1, so that their logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log-odds of probabilities if `is_binary`, otherwise their logarithms."""
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


def formula(read: Callable[[Any], T], doc: str | None = None) -> T:
    """Return a property with a value that `read` computes from the distribution or the transform."""
    value = property(read)
    value.__doc__ = doc
    return value  # type: ignore[return-value]  # what it is on an instance


class lazy_property(property):
    """A property that is computed on first access, with gradients recorded, and then stored as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        super().__init__(wrapped)
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        values = vars(instance)
        if self.name not in values:
            with torch.enable_grad():
                values[self.name] = self.wrapped(instance)
        return values[self.name]

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = value

    def __delete__(self, instance: Any) -> None:
        vars(instance).pop(self.name, None)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements on and below a diagonal of a square matrix, row by row. Batches are allowed.

    Raises:
        ValueError: if the diagonal does not exist.
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the square matrix with `vec` on and below a diagonal, row by row, and 0 above. Batches are allowed.

    Raises:
        ValueError: if no such matrix has as many entries as `vec`.
    """
    size = vec.shape[-1]
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * size + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    rows, columns = torch.tril_indices(n, n, diag)
    if len(rows) != size:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower triangular part of a square D x D "
            "matrix."
        )
    matrix = torch.zeros(*vec.shape[:-1], n, n, dtype=vec.dtype, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix


class ProbsOrLogits:
    """A mixin for distributions with a parameter `probs` or `logits`."""

    is_binary: ClassVar[bool] = True
    """Whether each number is the probability of a separate event, and not of one of several outcomes along the last dimension."""

    _given: str

    def _choose(self, probs: Any, logits: Any) -> Any:
        """Return the parameter that was given, if it is the only one."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"
        return logits if probs is None else probs

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds or, for categories, the normalized logarithms of probabilities."""
        return probs_to_logits(self.probs, is_binary=self.is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self.is_binary)

    @property
    def _param(self) -> Tensor:
        return getattr(self, self._given)

    @property
    def param_shape(self) -> Size:
        """The shape of the given parameter."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
