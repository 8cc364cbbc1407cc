"""The step of an optimizer in a program: its own bookkeeping, with the loops of its formula found once."""

from __future__ import annotations

import itertools
from array import array
from typing import Any

import numpy
from numpy import ndarray

import adjoint as torch
from adjoint.optim.declared import Declared

from ..codegen.acceleration import LOOPS
from ..codegen.llvm.language import address, f32, f64, type_of
from ..codegen.llvm.launch import launch
from ..codegen.llvm.values import CompilationError
from ..kernels.compiled.nn.optimization import Loop
from ..tape import modes
from ..tape.versions import bump_all


class Step:
    """A call of `step` of an optimizer; the formula of a declared one without hooks is applied by loops that are kept."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.updates: dict[Any, Update] = {}
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
        before = modes.STATE.grad_enabled
        modes.set_grad(False)
        try:
            for number, group in enumerate(owner.param_groups):
                self.group(number, group)
        finally:
            modes.set_grad(before)

    def is_plain(self, owner: Any, own: dict[str, Any]) -> bool:
        """Whether the step does nothing but apply the formula."""
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
        for position, (options, lists) in enumerate(owner._batches(params, grads, group)):
            key = number, position
            update = self.updates.get(key)
            if update is None or not update.serves(lists, options):
                update = self.updates[key] = Update(owner, lists, options)
            if not update.run(lists, options):
                self.otherwise(options, lists)

    def otherwise(self, options: Any, lists: list[list[Any]]) -> None:
        """Update where there are no loops, as the optimizer itself does."""
        owner = self.owner
        if torch._fused_update_(owner._update, options, lists, owner._rounds_once):
            return
        owner._check_layouts(lists[0], lists[1])
        for tensors in zip(*lists, strict=True):
            real = map(torch.view_as_real, tensors) if tensors[0].is_complex() else tensors
            owner._update(torch.Tensor, options, *real)


class Update:
    """The formula of an optimizer for lists of parameters and state that are the same in each step."""

    def __init__(self, owner: Any, lists: list[list[Any]], options: Any) -> None:
        self.identities = self.identified(lists)
        self.loop: Any = None
        arrays = [[tensor._array for tensor in each] for each in lists]
        params = arrays[0]
        kind = params[0].dtype
        self.forms = [(each.shape, each.strides, each.dtype) for each in params]
        flat = [*params, *itertools.chain.from_iterable(arrays[2:])]
        plain = all(type(each) is ndarray and each.flags.c_contiguous and each.dtype is kind for each in flat)
        alone = len({address(each) for each in flat}) == len(flat) and all(each.base is None for each in flat)
        if not (LOOPS.available and kind.char in "fd" and plain and alone and self.fits(lists[1])):
            return
        try:
            self.loop = Loop(owner._update, options, len(lists), owner._rounds_once)
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
        """The arrays of parameters and state."""
        return [id(tensor._array) for each in (lists[0], *lists[2:]) for tensor in each]

    def fits(self, grads: list[Any]) -> bool:
        """Whether the gradients lie in memory as the parameters do."""
        for grad, (shape, strides, dtype) in zip(grads, self.forms, strict=True):
            found = grad._array
            if (
                type(found) is not ndarray
                or found.shape != shape
                or found.strides != strides
                or found.dtype is not dtype
            ):
                return False
        return True

    def serves(self, lists: list[list[Any]], options: Any) -> bool:
        """Whether this is the update of these lists under these options."""
        return self.identities == self.identified(lists) and (self.loop is None or self.loop.serves(options))

    def run(self, lists: list[list[Any]], options: Any) -> bool:
        """Apply the formula; False if there are no loops for it."""
        if self.loop is None or not self.fits(lists[1]):
            return False
        table = array("q", [*self.before, *[address(grad._array) for grad in lists[1]], *self.behind])
        place, _ = table.buffer_info()
        numbers = self.loop.numbers(options)
        launch(self.kernel, self.elements, self.row_bytes, place, self.limits, len(self.forms), *numbers)
        bump_all(self.changed, "_fused_update_", depth=2)
        return True
