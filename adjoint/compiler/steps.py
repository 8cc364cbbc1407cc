"""The step of an optimizer in a program. The step is one native call while parameters and state remain the same objects."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import accumulate, chain, cycle
from operator import attrgetter, itemgetter
from types import SimpleNamespace
from typing import Any

import numpy

import adjoint as torch
from adjoint.optim import SGD
from adjoint.optim.declared import Declared
from adjoint.optim.optimizer import Optimizer, _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from ..codegen.llvm import language
from ..codegen.llvm.calls import addresses
from ..codegen.llvm.external import apart, built_in, float_of, function_of_python
from ..codegen.llvm.language import (
    WrittenLoops,
    address,
    f32,
    f64,
    i64,
    type_of,
)
from ..codegen.llvm.launch import launch
from ..kernels.compiled.nn.optimization import Loop, loop_of
from ..kernels.runtime.costs import PARALLEL_BYTES
from ..tape import origin
from ..tape.modes import FLAGS
from ..tape.versions import shared_counter
from .guards import Guards
from .known import is_plain, own_name
from .objects import ELEMENTS, at_once, elements_of, fitting, identical, native, note_changes, words

USUAL_STEP = Optimizer.step
array_of, grad_of = map(attrgetter, ("_array", "_grad"))
params_in = itemgetter("params")


class Step:
    """A call of `step` of an optimizer. A native call applies the formula of a declared optimizer without hooks.

    `plain`: whether a step of the class only applies the formula. `steady`: for each group, the object that takes its steps, or
    None. `origin`: the instruction of the user's code that makes the call.
    """

    of_host, args = True, ()

    def __init__(self, owner: Any) -> None:
        frame, kind = origin.user_frame(1), type(owner)
        self.owner, self.origin = owner, (frame.f_code, frame.f_lasti)
        self.plain = isinstance(owner, Declared) and kind._update_group is Declared._update_group and bool(words())
        self.steady: list[Steady | None] = []
        self.__name__ = "step"

    def __call__(self) -> None:
        """Take the step."""
        own = self.owner.__dict__
        if (
            not self.plain
            or type(self.owner).step is not USUAL_STEP
            or own["_optimizer_step_pre_hooks"]
            or own["_optimizer_step_post_hooks"]
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
            or FLAGS.special
            or not ("step" not in own or self.is_noted(own))
        ):
            self.owner.step()
            return
        groups, steady = own["param_groups"], self.steady
        if len(groups) != len(steady):
            steady = self.steady = [None] * len(groups)
        for number, group in enumerate(groups):
            known = steady[number]
            if known is None or not known.run(group, own["state"]):
                with torch.no_grad():
                    self.owner._update_group(group)
                steady[number] = Steady(self.owner, group, self.origin) if Steady.serves(self.owner, group) else None

    def is_noted(self, own: dict[str, Any]) -> bool:
        """Notify the schedule that has replaced the method. Return False if other code has replaced the method."""
        if hasattr(own["step"], "_wrapped_by_lr_sched"):
            own["_opt_called"] = True
            return True
        return False


def params_of(optimizer: Any) -> Iterator[torch.Tensor]:
    """Return the parameters of an optimizer."""
    return chain.from_iterable(map(params_in, optimizer.param_groups))


def keep_step(guards: Guards, optimizer: Any) -> bool:
    """Require that a step calls the same functions. Return whether some of these functions are functions of the user."""
    step, own = type(optimizer).step, vars(optimizer)
    hooks = [own["_optimizer_step_pre_hooks"], own["_optimizer_step_post_hooks"]]
    hooks += [_global_optimizer_pre_hooks, _global_optimizer_post_hooks]
    guards.guard(("step", id(optimizer)), "type({0}).step is {1}", optimizer, step)
    if not any(hooks):
        guards.guard(("step hooks", id(optimizer)), "not ({0} or {1} or {2} or {3})", *hooks)
    replaced = "step" in own and not hasattr(own["step"], "_wrapped_by_lr_sched")
    return any(hooks) or replaced or own_name(step.__module__).partition(".")[0] != "adjoint"


def clears_as_usual(optimizer: Any) -> bool:
    """Return whether `zero_grad` is the method of the base class."""
    return type(optimizer).zero_grad is Optimizer.zero_grad and "zero_grad" not in vars(optimizer)


def require_usual_clearing(guards: Guards, optimizer: Any) -> None:
    """Require that `zero_grad` of an optimizer only clears the gradients of the same parameters."""
    lists = [*map(params_in, optimizer.param_groups)]  # `load_state_dict` replaces the groups, but not these lists
    guards.guard(("method", id(optimizer)), "type({0}).zero_grad is {1}", optimizer, Optimizer.zero_grad)
    guards.guard(("no own method", id(optimizer)), "'zero_grad' not in {0}", vars(optimizer))
    same = "{1}(*map({2}, {0}.param_groups))"
    guards.guard(("groups", id(optimizer)), same, optimizer, identical(lists), params_in)
    for params in lists:
        guards.guard(("params", id(params)), "{1}(*{0})", params, identical(params))


class Steady:
    """Takes the steps of a group after the first, while parameters and the tensors of their state are the same objects.

    `params`: the parameters with gradients. `others`: the other parameters. `changed`: `params` and the state that the formula
    changes, list by list. `counts`: the step counts of `params`. `place`: the instruction of the user's code.
    """

    def __init__(self, owner: Any, group: dict[str, Any], place: tuple[Any, int]) -> None:
        self.owner, self.options = owner, tuple(group.values())
        self.same_group, self.same_options = at_once(identical(group["params"])), at_once(identical(self.options))
        self.stateless, self.same_state = not owner.state, at_once(identical(objects_in(owner.state)))
        self.others = [param for param in group["params"] if param._grad is None]
        self.params, states, self.counts, self.first = parts_of(owner, group)
        self.changed = [*self.params, *states]
        self.lists = 1 + len(self.changed) // len(self.params)
        self.update, self.counting = (*place, "_fused_update_"), (*place, "_count_steps_")
        self.tensors = [*self.counts, *self.changed]
        for tensor in self.tensors:
            shared_counter(tensor)
        self.fits: Any = at_once(fitting(self.tensors, self.params, whole=False))
        self.note = native("note", None)
        self.bounds = [0, *accumulate([param._array.size for param in self.params])]
        self.loop: Any = None
        if self.counts:
            self.count = native(f"count_{self.counts[0]._array.dtype.name}", None)
        else:
            self.numbers = self.numbers_at(group, 0)

    @staticmethod
    def serves(owner: Any, group: dict[str, Any]) -> bool:
        """Return whether one loop updates all parameters of a group. Its numbers may depend only on options and the step."""
        usual = type(owner)._batches in (Declared._batches, SGD._batches) and not owner._own_numbers
        usual = usual and not group["differentiable"]
        options = [value for name, value in group.items() if name != "params"]
        if not (usual and all(map(is_simple, options)) and {dict}.issuperset(map(type, owner.state.values()))):
            return False
        try:
            params, states, counts, _ = parts_of(owner, group)
        except KeyError:
            return False
        tensors = [*params, *map(grad_of, params), *states]
        if not params or not all(map(is_plain, (*tensors, *counts))):
            return False
        kind, steps = params[0]._array.dtype, [*map(array_of, counts)]
        return (
            kind.char in "fd"
            and all(each.ndim == 0 and each.dtype is steps[0].dtype and each.dtype.char in "fd" for each in steps)
            and all(
                array.dtype is kind
                and array.shape == like.shape
                and array.strides == like.strides
                and array.flags.c_contiguous
                for array, like in zip(map(array_of, tensors), cycle(map(array_of, params)))
            )
        )

    def run(self, group: dict[str, Any], state: dict[Any, Any]) -> bool:
        """Take a step. Return False if an object has changed."""
        try:
            if not (
                (self.same_options(*group.values()) or self.adapts(group))
                and self.same_group(*group["params"])
                and ((not state and self.stateless) or self.same_state(*objects_in(state)))
            ):
                return False
        except TypeError:  # the state contains another object
            return False
        if self.others and any(param._grad is not None for param in self.others):
            return False
        if not self.fits():
            return False
        if self.counts:
            step = self.count(*self.counts)
            if step is None:
                return False
            self.numbers = self.numbers_at(group, step)
            self.note(self.counting, *self.counts)
        self.launch(self.update, *self.numbers, *self.tensors)
        return True

    def adapts(self, group: dict[str, Any]) -> bool:
        """Use the new options if only numbers of the formula have changed, such as the learning rate. Otherwise return False."""
        options = tuple(group.values())
        if len(options) != len(self.options) or not all(
            new is old or (type(new) is type(old) and type(new) is not list and (new == old or type(new) is float))
            for new, old in zip(options, self.options, strict=True)
        ):
            return False
        self.options, self.same_options = options, at_once(identical(options))
        if not self.counts:
            self.numbers = self.numbers_at(group, 0)
        return True

    def numbers_at(self, group: dict[str, Any], step: float) -> Any:
        """Return the numbers of the formula in a step."""
        options = SimpleNamespace(**self.owner._numbers(group, step, self.first))
        if self.loop is None or not self.loop.serves(options):
            self.loop = loop_of(self.owner._update, options, self.lists, self.owner._rounds_once)
            self.launch = self.launcher(len(self.loop.numbers(options)))
        return self.loop.numbers(options)

    def launcher(self, numbers: int) -> Any:
        """Return the function that applies the formula. The function takes this many numbers, and the tensors."""
        kind, count, elements = self.params[0]._array.dtype, len(self.params), self.bounds[-1]
        types = {"T": type_of(kind), "C": f64 if kind.char == "d" else f32}
        first, row_bytes = 1 + numbers + len(self.counts), kind.itemsize * (self.lists + 1)
        if elements * row_bytes < PARALLEL_BYTES:
            own = numpy.array([count, first, len(self.changed), elements, *self.bounds])
            return built_in("step", step_of(self.loop, numbers, elements <= FEW, **types).code.address, own)
        kernel, bounds = self.loop.kernel.compiled(**types), numpy.array(self.bounds)

        def run(change: Any, *given: Any) -> None:
            tensors = [*self.params, *map(grad_of, self.params), *self.changed[count:]]
            table = addresses([*map(array_of, tensors)])
            launch(kernel, elements, row_bytes, address(table), address(bounds), count, *given[:numbers])
            self.note(change, *self.changed)

        return run


def is_simple(option: Any) -> bool:
    """Return whether an option is None, a number or a tuple of numbers. Such an option cannot change in place."""
    parts = option if type(option) is tuple else (option,)
    return all(each is None or type(each) in (bool, int, float) for each in parts)


def objects_in(state: dict[Any, Any]) -> Iterator[Any]:
    """Return the objects in the state of an optimizer."""
    parts = state.values()
    return chain(parts, chain.from_iterable(map(dict.values, parts)))


def parts_of(owner: Any, group: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any], dict[str, Any]]:
    """Return the parameters with gradients, their state list by list, their step counts, and the state of the first parameter."""
    params = [param for param in group["params"] if param._grad is not None]
    states = [owner.state.get(param, {}) for param in params]
    lists = [state[name] for name in owner._state_names(group) for state in states]
    return params, lists, [state["step"] for state in states] if owner._counts_steps else [], next(iter(states), {})


FEW = 256
"""The maximum number of elements that a loop without vectors updates, about a microsecond."""


@functools.cache
def step_of(loop: Loop, numbers: int, inlined: bool, **types: Any) -> Any:
    """Return the kernel that calls the loop of a formula, or contains it if `inlined`, which takes less time to compile.

    Its arguments are a change, `numbers` numbers, and tensors. Its own array contains the number of parameters, the position
    of the first tensor that is changed, the number of these tensors, and the bounds of the loop.
    """
    given = "".join(f"C(float_of(objects[{number}])), " for number in range(1, numbers + 1))
    source = f"""def step(own: Int, objects: Pointer[i64], given: Int, T: Static, C: Static) -> i64:
    told = as_pointer(as_pointer(own, i64)[ELEMENTS], i64)
    count, tensors, changed = told[0], objects + told[1], told[2]
    place = allocate(8 * (changed + count))
    if place == 0:
        return no_memory()
    table = as_pointer(place, i64)
    for k in range(changed):
        table[k if k < count else k + count] = elements_of(tensors[k], ARRAY)
    for k in range(count):
        table[count + k] = elements_of(as_pointer(tensors[k], i64)[GRAD], ARRAY)
    update(as_pointer(place, Pointer[u8]), told + 4, count, {given}0, told[3])
    release(place)
    return note_changes(objects[0], tensors, changed, COUNTER)
"""
    places = {name.strip("_").upper(): word for name, word in words().items()}
    update = (
        WrittenLoops("update", loop.kernel.text, {**vars(language), **types})
        if inlined
        else apart(loop.kernel, **types)
    )
    names = {**vars(language), **NAMES, **places, "update": update}
    return WrittenLoops("step", source, names, noalias=False, explicit=True, plain=True).compiled(**types)


NAMES = {
    "elements_of": elements_of,
    "note_changes": note_changes,
    "ELEMENTS": ELEMENTS,
    "float_of": float_of,
    "allocate": function_of_python("PyMem_RawMalloc", i64, i64),
    "release": function_of_python("PyMem_RawFree", None, i64),
    "no_memory": function_of_python("PyErr_NoMemory", i64),
}
"""The names in the text of `step_of` that are not in the language of kernels."""
