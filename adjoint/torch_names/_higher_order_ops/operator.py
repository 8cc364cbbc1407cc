"""`HigherOrderOperator`: operators of programs, whose arguments may be functions, with a rule for each level of transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import adjoint as torch
from adjoint.aten.python_kernels import is_below_autograd
from adjoint.aten.torch_dispatch import levels
from adjoint.tape import modes
from adjoint.tape.interpreters import Transform, lower
from adjoint.torch_names._C._dispatch_keys import DispatchKey
from adjoint.torch_names._C._functorch import TransformType, type_of
from adjoint.transforms import tree

__all__ = ["HigherOrderOperator"]

_Rule = TypeVar("_Rule", bound=Callable[..., Any])

_KEYS = (
    (DispatchKey.AutogradCPU, DispatchKey.Autograd),
    (
        DispatchKey.CPU,
        DispatchKey.CompositeExplicitAutograd,
        DispatchKey.CompositeImplicitAutograd,
    ),
)
"""The keys of tensors on the CPU above and below autograd, in the order in which rules are looked up."""


class HigherOrderOperator(ABC):
    """The base class of operators that a program defines with Python functions as rules.

    A call goes to the innermost function transform, then to the innermost dispatch mode, then to a class of its tensors
    with `__torch_dispatch__`, then to autograd, and then to the CPU. Each receives the call if the operator has a rule for
    it. A rule calls the operator again within `interpreter.lower()`, or within `torch._C._AutoDispatchBelowAutograd()`.

    >>> import adjoint as torch
    >>> class Twice(torch._ops.HigherOrderOperator):
    ...     def __call__(self, x):
    ...         return super().__call__(x)
    >>> twice = Twice("twice")
    >>> @twice.py_impl(torch._C.DispatchKey.CPU)
    ... def twice_cpu(x):
    ...     return x * 2
    >>> @twice.py_impl(torch._C.DispatchKey.Autograd)
    ... def twice_autograd(x):
    ...     with torch._C._AutoDispatchBelowAutograd():
    ...         return twice(x)
    >>> twice(torch.ones(2))
    tensor([2., 2.])
    """

    namespace = "higher_order"

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self._cacheable = cacheable
        self.py_kernels: dict[Any, Callable[..., Any]] = {}
        self.functorch_table: dict[Any, Callable[..., Any]] = {}
        self.passed_over: set[Any] = set()

    def name(self) -> str:
        """Return the name of the operator."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def cacheable(self) -> bool:
        """Return whether graphs that contain the operator may be cached."""
        return self._cacheable

    def py_impl(self, k: Any) -> Callable[[_Rule], _Rule]:
        """Return a decorator that registers a rule.

        Args:
            k: for whom: a type of transforms, a key of the dispatcher, a class of modes, or a class of tensors. The rule of a
                transform receives the interpreter first, and the rule of a mode the mode.
        """
        table = self.functorch_table if isinstance(k, TransformType) else self.py_kernels

        def registered(rule: _Rule) -> _Rule:
            table[k] = rule
            return rule

        return registered

    def py_autograd_impl(self, fn: _Rule) -> _Rule:
        """Register the rule for autograd."""
        return self.py_impl(DispatchKey.Autograd)(fn)

    def fallthrough(self, dispatch_key: Any) -> None:
        """Let calls pass a key, or a class of modes, for which the operator has no rule."""
        self.passed_over.add(dispatch_key)

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Return whether the operator has a rule for a key."""
        return k in self.py_kernels

    @abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator. A subclass names the parameters, and calls this method.

        Raises:
            NotImplementedError: if no rule takes the call.
        """
        leaves = [leaf for leaf in tree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if torch.overrides.has_torch_function(leaves):
            return torch.overrides.handle_torch_function(self, leaves, *args, **kwargs)
        transforms = modes.STATE.transforms
        if transforms:
            interpreter = _Interpreter(transforms[-1])
            return self.functorch_table[interpreter.key()](interpreter, *args, **kwargs)
        for level in reversed(levels()):
            rule = self._rule_of(type(level.mode))
            if rule is not None:
                with lower(level):
                    return rule(level.mode, *args, **kwargs)
        for leaf in leaves:
            rule = self._rule_of(type(leaf))
            if rule is not None:
                return rule(*args, **kwargs)
        above, below = _KEYS
        keys = below if is_below_autograd() else above
        for key in keys:
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        if keys is above and self.passed_over.intersection(above):
            with torch._C._AutoDispatchBelowAutograd():
                return self(*args, **kwargs)
        shown = keys[0] if leaves else DispatchKey.Undefined
        raise NotImplementedError(
            f"could not find kernel for HigherOrderOperator {self._name} at dispatch key {shown} (resolved from {shown})"
        )

    def _rule_of(self, kind: type) -> Callable[..., Any] | None:
        return next((self.py_kernels[each] for each in kind.__mro__ if each in self.py_kernels), None)


class _Interpreter:
    """A running transform, as a rule sees it."""

    def __init__(self, transform: Transform) -> None:
        self._transform: Any = transform

    def key(self) -> TransformType:
        """Return the type of the transform."""
        return type_of(self._transform)

    def level(self) -> int:
        """Return the number of the transform, counted from the outermost."""
        number: int = self._transform.number
        return number

    def batch_size(self) -> int:
        """Return the size of the batch of a `vmap`."""
        size: int = self._transform.size
        return size

    def randomness(self) -> str:
        """Return the randomness of a `vmap`."""
        return str(self._transform.randomness)

    @contextmanager
    def lower(self) -> Iterator[None]:
        """A context outside of the transform."""
        here = modes.STATE
        outside = here.transforms[: here.transforms.index(self._transform)]
        stack = here.stack
        if self._transform in here.interpreters:
            stack = here.interpreters[: here.interpreters.index(self._transform)]
        recording = here.grad_enabled and (self._transform.begun_recording or not self._transform.records)
        with modes.switched(stack=stack, transforms=outside, grad_enabled=recording):
            yield
