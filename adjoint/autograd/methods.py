"""The methods of tensors that concern the graph: `backward`, hooks, `retain_grad`, `requires_grad_`."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from .._runtime.extra import OWN
from .._runtime.tracebacks import ending_at_caller, shorten, warn
from .._runtime.type_names import type_name
from ..dtypes import C_NAMES, dtype
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.hook_handles import HookDict, RemovableHandle
from ..tape.node import Node, own_hooks
from ..tensor import Tensor, can_require_grad, history, is_recorded
from .backward import backward_of


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradient of this tensor into the `.grad` of the leaves of its graph.

    `gradient` is the vector of the vector-Jacobian product. It has the shape of this tensor, and may be omitted for a
    scalar. For the other arguments, see `adjoint.autograd.backward`.
    """
    try:
        backward_of(self, gradient, retain_graph, create_graph, inputs)
    except Exception as error:
        shorten(error)
        raise


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook(grad)` whenever the gradient of this tensor is computed. A returned tensor replaces the gradient."""
    try:
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        extra = self._own_extra()
        if extra.hooks is None:
            # The dictionary is tied to the current node: after an in-place operation, its hooks stay with the old value.
            edge = edge_of(self) if self._base is None else history(self)
            extra.hooks = HookDict()
            if type(edge) is tuple:
                own_hooks(edge[0]).tensor.setdefault(edge[1], []).append(extra.hooks)
        return extra.hooks.register(hook)
    except Exception as error:
        shorten(error)
        raise


@ending_at_caller
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` after the gradient of this leaf has been added to its `.grad`."""
    if self._base is not None:
        history(self)
    edge = edge_of(self)
    if edge is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if is_recorded(edge):
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extra = self._own_extra()
    if extra.post_hooks is None:
        extra.post_hooks = HookDict()
    return extra.post_hooks.register(hook)


@ending_at_caller
def retain_grad(self: Tensor) -> None:
    """Store the gradient of this tensor, which is not a leaf, in its `.grad` during backward."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if modes.STATE.transforms:
        raise _error_in_transform("retain_grad()")
    if is_recorded(self._edge):
        edge = self._edge if self._base is None else history(self)
        own_hooks(edge[0]).retained[edge[1]] = weakref.ref(self)


@ending_at_caller
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` in place and return this tensor."""
    if requires_grad is not True and requires_grad is not False:
        raise TypeError(
            f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}"
        )
    if modes.STATE.transforms:
        raise _error_in_transform("requires_grad_()", " (or perhaps using torch.autograd.functional.* APIs)")
    if requires_grad and not can_require_grad(self._array):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if not requires_grad or not is_recorded(self._edge):
        self.requires_grad = requires_grad
    return self


def _error_in_transform(method: str, also: str = "") -> RuntimeError:
    """Return the error inside a function transform, where only the transform chooses the differentiated inputs."""
    return RuntimeError(
        f"You are attempting to call Tensor.{method}{also} inside of a function being transformed by a functorch transform. This "
        "is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
        f"{method} outside of a function being transformed instead."
    )


@ending_at_caller
def retains_grad(self: Tensor) -> bool:
    """Whether the gradient of this tensor, which is not a leaf, is stored in its `.grad` during backward."""
    edge = self._edge
    if type(edge) is not tuple or edge[0]._hooks is None:
        return False
    reference = edge[0]._hooks.retained.get(edge[1])
    return reference is not None and reference() is self


def grad_dtype(self: Tensor) -> dtype | None:
    """The dtype of the `.grad` of a leaf: the dtype of the leaf, a dtype that was set, or None, which allows any dtype.

    >>> import adjoint as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> w.grad_dtype = torch.float64
    >>> (w * 2).sum().backward()
    >>> w.grad
    tensor([2., 2.], dtype=torch.float64)
    """
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype if self._extra is None or self._extra.grad_dtype is OWN else self._extra.grad_dtype


def set_grad_dtype(self: Tensor, value: dtype | None) -> None:
    """Set `grad_dtype`, unless a gradient of another dtype exists."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if value is not None and self._grad is not None and self._grad.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.scalar_type}' because there is already a gradient with dtype "
            f"'{C_NAMES[self._grad.dtype]}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the "
            "new grad_dtype matches the existing gradient's dtype."
        )
    self._own_extra().grad_dtype = value


def set_backward_hooks(self: Tensor, hooks: Any) -> None:
    """Replace the hooks of this tensor, or remove them (None)."""
    own = self._own_extra()
    if own.hooks is not None:
        own.hooks.clear()
    if hooks is not None:
        own.hooks = own.hooks if own.hooks is not None else HookDict()
        own.hooks.update(hooks)


def volatile(self: Tensor) -> bool:
    """Always False, because `no_grad` has replaced this property."""
    warn("volatile was removed (Variable.volatile is always False)", UserWarning)
    return False


def set_volatile(self: Tensor, value: bool | None = None) -> None:
    """Warn that `volatile` has no effect."""
    warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", UserWarning)


def _use_count(self: Tensor) -> int:
    """Return the number of owners that the tensor has in PyTorch: the program, and its `AccumulateGrad` if a graph needs one."""
    edges = [each for each in gc.get_referrers(self) if type(each) is tuple]
    return 1 + any(isinstance(each, Node) for each in gc.get_referrers(*edges))


def _kept(name: str, advice: str) -> Callable[[Tensor], None]:
    """Return a function that refuses to delete an attribute."""

    def keep(self: Tensor) -> None:
        raise RuntimeError(f"Deletion of {name} not allowed{advice}!")

    return keep


def _hooks(name: str) -> Callable[[Tensor], HookDict | None]:
    """Return a function that returns hooks, or None before the first is registered."""
    return lambda self: None if self._extra is None else getattr(self._extra, name)


def check_new_grad(tensor: Tensor, grad: Any) -> None:
    """Raise an error unless `grad` may become the `.grad` of `tensor`."""
    if type(grad) is Tensor and tensor._extra is None and grad is not tensor:
        new, own = grad._array, tensor._array
        if new.dtype is own.dtype and new.shape == own.shape and type(new) is type(own) is ndarray:
            return
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type_name(type(grad))}")
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad._array.shape != tensor._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._array.shape)}' to a tensor of size "
            f"'{list(tensor._array.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )
    if grad.device != tensor.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device}' to a tensor with device type '{tensor.device}'. "
            "Please ensure that the gradient and the tensor are on the same device"
        )
    wanted = tensor.dtype if tensor._extra is None or tensor._extra.grad_dtype is OWN else tensor._extra.grad_dtype
    if wanted is not None and grad.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{C_NAMES[grad.dtype]}' to a tensor with grad_dtype "
            f"'{wanted.scalar_type}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can "
            "set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
            "caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match."
        )


def install() -> None:
    """Make these functions methods of `Tensor`."""
    for function in (
        backward, register_hook, register_post_accumulate_grad_hook, requires_grad_, retain_grad, _use_count,
    ):  # fmt: skip
        function.__module__, function.__qualname__ = Tensor.__module__, f"Tensor.{function.__name__}"
        setattr(Tensor, function.__name__, function)
    for name, accessors in (
        ("_backward_hooks", (_hooks("hooks"), set_backward_hooks, _kept("_backwards_hooks", ""))),
        ("_grad_fn", (lambda tensor: tensor.grad_fn, None, _kept("_grad_fn", ". Detach tensor instead"))),
        ("_post_accumulate_grad_hooks", (_hooks("post_hooks"),)),
        ("grad_dtype", (grad_dtype, set_grad_dtype)),
        ("retains_grad", (retains_grad,)),
        ("volatile", (volatile, set_volatile, set_volatile)),
    ):
        setattr(Tensor, name, property(*accessors))


install()
Tensor._check_new_grad = check_new_grad
