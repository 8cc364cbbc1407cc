"""The step of an optimizer in a program. The optimizer keeps its state, and the loops of its formula are looked up once."""

from __future__ import annotations

import itertools
import weakref
from array import array
from collections.abc import Iterator
from operator import is_
from sys import getrefcount
from typing import Any

import numpy
from numpy import ndarray

import adjoint as torch
from adjoint.optim.declared import Declared

from ..codegen.acceleration import LOOPS
from ..codegen.llvm.language import address, f32, f64, type_of
from ..codegen.llvm.launch import launch
from ..codegen.llvm.values import CompilationError
from ..kernels.compiled.nn.optimization import loop_of
from ..tape import origin
from ..tape.versions import count_changes


class Step:
    """A call of `step` of an optimizer. Cached loops apply the formula of a declared optimizer without hooks.

    `origin`: the instruction of the user's code that makes the call.
    """

    def __init__(self, owner: Any) -> None:
        frame = origin.user_frame(1)
        self.owner, self.origin = owner, (frame.f_code, frame.f_lasti)
        self.updates: dict[Any, Update] = {}
        self.steady: dict[int, Steady] = {}
        self.__name__ = "step"

    def __call__(self) -> None:
        """Take the step."""
        owner = self.owner
        own = vars(owner)
        if not self.is_plain(owner, own):
            owner.step()
            return
        if "step" in own:
            owner._opt_called = True
        for number, group in enumerate(own["param_groups"]):
            steady = self.steady.get(number)
            if steady is None or not steady.run(group):
                with torch.no_grad():
                    self.group(number, group)

    def is_plain(self, owner: Any, own: dict[str, Any]) -> bool:
        """Return whether the step only applies the formula."""
        return (
            isinstance(owner, Declared)
            and type(owner)._update_group is Declared._update_group
            and not (own["_optimizer_step_pre_hooks"] or own["_optimizer_step_post_hooks"])
            and ("step" not in own or hasattr(own["step"], "_noted_by_scheduler"))
            and not owner.defaults.get("differentiable", False)
        )

    def group(self, number: int, group: dict[str, Any]) -> None:
        """Update the parameters of a group."""
        owner = self.owner
        pairs = [(param, param._grad) for param in group["params"] if param._grad is not None]
        if not pairs or group.get("fused") or group.get("capturable") or group["differentiable"]:
            owner._update_group(group)
            return
        params, grads = [param for param, _ in pairs], [grad for _, grad in pairs]
        batches = list(owner._batches(params, grads, group))
        for position, (options, lists) in enumerate(batches):
            key = number, position
            update = self.updates.get(key)
            if update is None or not update.serves(lists, options):
                update = self.updates[key] = Update(owner, lists, options, self.origin)
            if update.loop is None or not update.run([grad._array for grad in lists[1]], update.loop.numbers(options)):
                self.otherwise(options, lists)
            elif len(batches) == 1 and len(lists) == 2 and Steady.serves(group):
                self.steady[number] = Steady(update, group, update.loop.numbers(options))

    def otherwise(self, options: Any, lists: list[list[Any]]) -> None:
        """Update as the optimizer itself does, because there are no loops."""
        owner = self.owner
        if torch._fused_update_(owner._update, options, lists, owner._rounds_once):
            return
        owner._check_layouts(lists[0], lists[1])
        for tensors in zip(*lists, strict=True):
            real = map(torch.view_as_real, tensors) if tensors[0].is_complex() else tensors
            owner._update(torch.Tensor, options, *real)


def params_of(optimizer: Any) -> Iterator[torch.Tensor]:
    """Return the parameters of an optimizer."""
    return itertools.chain.from_iterable([group["params"] for group in optimizer.param_groups])


def clears_as_usual(optimizer: Any) -> bool:
    """Return whether `zero_grad` is the method that all optimizers have."""
    return type(optimizer).zero_grad is torch.optim.Optimizer.zero_grad and "zero_grad" not in vars(optimizer)


def has_params(optimizer: Any, params: list[torch.Tensor]) -> bool:
    """Return whether `zero_grad` of an optimizer clears the gradients of these parameters."""
    found = list(params_of(optimizer))
    return len(found) == len(params) and all(map(is_, found, params)) and clears_as_usual(optimizer)


class Clear:
    """A call of `zero_grad`. It sets the gradients of `params` to None.

    Return the arrays of gradients that have no other reference, by the identities of their leaves. New gradients can
    then be written into the same memory. `reused`: the identities of the leaves whose new gradients are written in this
    way.
    """

    def __init__(self, params: list[torch.Tensor], reused: frozenset[int] = frozenset()) -> None:
        self.params, self.reused = params, reused
        self.__name__ = "zero_grad"

    def __call__(self) -> dict[int, Any]:
        """Clear the gradients."""
        taken = {}
        for param in self.params:
            grad = param._grad
            if grad is None:
                continue
            param._grad = None
            # The references are `grad`, and the attribute of `grad`; each call adds one.
            if id(param) in self.reused and getrefcount(grad) == 2 and grad._edge is None:
                array = grad._array
                del grad
                if getrefcount(array) == 2 and type(array) is ndarray and array.base is None:
                    taken[id(param)] = array
        return taken


class Update:
    """The formula of an optimizer for lists of parameters and state that are the same in each step."""

    def __init__(self, owner: Any, lists: list[list[Any]], options: Any, place: tuple[Any, int]) -> None:
        self.identities, self.change = self.identified(lists), (*place, "_fused_update_")
        self.loop: Any = None
        arrays = [[tensor._array for tensor in each] for each in lists]
        params = arrays[0]
        kind = params[0].dtype
        self.forms = [(each.shape, each.strides, each.dtype) for each in params]
        flat = [*params, *itertools.chain.from_iterable(arrays[2:])]
        plain = all(type(each) is ndarray and each.flags.c_contiguous and each.dtype is kind for each in flat)
        alone = len({address(each) for each in flat}) == len(flat) and all(each.base is None for each in flat)
        if not (LOOPS.available and kind.char in "fd" and plain and alone and self.fits(arrays[1])):
            return
        try:
            self.loop = loop_of(owner._update, options, len(lists), owner._rounds_once)
            self.kernel = self.loop.kernel.compiled(T=type_of(kind), C=f64 if kind.char == "d" else f32)
        except CompilationError:
            self.loop = None
            return
        self.bounds = numpy.array([0, *itertools.accumulate([param.size for param in params])])
        self.elements = int(self.bounds[-1])
        self.row_bytes = kind.itemsize * (len(lists) + 1)
        self.limits = address(self.bounds)
        self.before = [address(each) for each in params]
        self.behind = [address(each) for each in flat[len(params) :]]
        self.kept = flat
        self.changed = [*lists[0], *itertools.chain.from_iterable(lists[2:])]

    def identified(self, lists: list[list[Any]]) -> list[int]:
        """Return the arrays of parameters and state."""
        return [id(tensor._array) for each in (lists[0], *lists[2:]) for tensor in each]

    def fits(self, grads: list[Any]) -> bool:
        """Return whether gradients have the memory layout of their parameters."""
        for found, (shape, strides, dtype) in zip(grads, self.forms, strict=True):
            if (
                type(found) is not ndarray
                or found.shape != shape
                or found.strides != strides
                or found.dtype is not dtype
            ):
                return False
        return True

    def serves(self, lists: list[list[Any]], options: Any) -> bool:
        """Return whether this update applies to these lists with these options."""
        return self.identities == self.identified(lists) and (self.loop is None or self.loop.serves(options))

    def run(self, grads: list[Any], numbers: tuple[Any, ...]) -> bool:
        """Apply the formula to the arrays of these gradients.

        Return False if their memory layout differs from the parameters' layout.
        """
        if not self.fits(grads):
            return False
        self.launch(self.table(grads), numbers)
        return True

    def table(self, grads: list[Any]) -> Any:
        """Return the addresses of all arrays."""
        return array("q", [*self.before, *map(address, grads), *self.behind])

    def launch(self, table: Any, numbers: tuple[Any, ...]) -> None:
        """Apply the formula to the arrays of a table."""
        place, _ = table.buffer_info()
        launch(self.kernel, self.elements, self.row_bytes, place, self.limits, len(self.forms), *numbers)
        count_changes(self.changed, self.change)


class Steady:
    """The update of a group without state. Its numbers are the same as long as the options are the same.

    `latest`: a weak reference to each gradient, and the addresses of all arrays in the latest step. Most gradients keep
    their memory.
    """

    def __init__(self, update: Update, group: dict[str, Any], numbers: tuple[Any, ...]) -> None:
        self.update, self.numbers = update, numbers
        self.params, self.options = group["params"], tuple(group.values())
        self.parts = [(param, param._array) for param in group["params"]]
        self.latest: tuple[list[Any], Any] = [int] * len(self.parts), None

    @staticmethod
    def serves(group: dict[str, Any]) -> bool:
        """Return whether all options of a group are objects that never change."""
        return all(
            value is None or type(value) in (bool, int, float) for key, value in group.items() if key != "params"
        )

    def run(self, group: dict[str, Any]) -> bool:
        """Apply the formula. Return False if an object has changed."""
        params = group["params"]
        if params is not self.params or tuple(group.values()) != self.options or len(params) != len(self.parts):
            return False
        references, table = self.latest
        grads = []
        known = True
        for param, (same, held), reference in zip(params, self.parts, references):  # noqa: B905  (as long)
            if param is not same or param._array is not held or param._grad is None:
                return False
            grad = param._grad._array
            known &= grad is reference()
            grads.append(grad)
        if not known:
            if not self.update.fits(grads):
                return False
            table = self.update.table(grads)
            self.latest = list(map(weakref.ref, grads)), table
        self.update.launch(table, self.numbers)
        return True
