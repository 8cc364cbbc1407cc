"""The base of all transforms: calls with a cache for one value, inverses, and shapes."""

from __future__ import annotations

import weakref
from typing import Any

from adjoint import Tensor

from . import constraints
from .utils import formula

__all__ = ["Transform"]


class Transform:
    """A function from its `domain` to its `codomain`, with an inverse (`bijective`) or a right inverse.

    Subclasses define `_call`, `_inverse` and `log_abs_det_jacobian`. With `cache_size=1` the latest input and output
    are stored, so that `t.inv(t(x))` is `x` itself.
    """

    bijective: Any = False
    _given_names: tuple[str, ...] = ()  # the attributes that are arguments of the constructor
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # calls another base class, if a subclass has one, such as a module with parameters

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an argument, if arguments and values have the same number."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """Return the inverse. The inverse of the result is this transform."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 if the function increases, and -1 if it decreases, for bijections of numbers."""
        raise NotImplementedError

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor for an equal transform."""
        return {name: getattr(self, name) for name in self._given_names}

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform, or an equal transform with a cache of the given size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__ or self._arguments():
            return type(self)(**self._arguments(), cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Any) -> Any:
        """Return the value at `x`."""
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """Return the logarithm of the absolute value of the determinant of dy/dx, one for each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the value for an argument of `shape`."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the argument for a value of `shape`."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform. It keeps the transform alive."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    domain = formula(lambda self: self._inv.codomain)
    codomain = formula(lambda self: self._inv.domain)
    bijective = formula(lambda self: self._inv.bijective)
    sign = formula(lambda self: self._inv.sign)
    inv = formula(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


class _OfNumbers(Transform):
    """A transform of numbers without parameters. Two transforms of the same class are equal."""

    domain = constraints.real

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None
