"""Forward mode: tensors that carry a tangent, and operators that propagate it.

Within a `dual_level`, `make_dual(primal, tangent)` returns a tensor that carries the tangent. All results that are computed
from it carry a tangent too: the Jacobian times the tangent (Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). At
the end of the level, tangents are removed.

>>> import adjoint as torch
>>> import adjoint.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
...     fwAD.unpack_dual(x * x).tangent
tensor([2., 0.])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

from .._runtime.extra import Tangents
from .._runtime.uninterrupted import uninterrupted
from ..aten.torch_dispatch import zeros_like
from ..autograd.grad_mode import _Mode, _Switch
from ..device import strided
from ..dispatch.arguments import require
from ..dispatch.declaration import ARRAYS, Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.plan import IN_PLACE, IN_PLACE_VIEW, Call
from ..dispatch.slow_path import call
from ..dispatch.steps.change import detached_copy
from ..operators.declaring.formulas import without_tangent
from ..operators.memory.changed_views import CopySlices
from ..tape import mode_switches, modes
from ..tape.interpreters import Interpreter, is_recorded, lower, tensors_in
from ..tape.node import own_hooks
from ..tape.torch_dispatch import DISPATCHING
from ..tensor import Tensor, can_require_grad
from .tangents import (
    TRANSPOSE,
    check_changed,
    check_layout,
    checked_tangents,
    empty_like,
    is_view_of_dual,
    laid_out_like,
    pending_like,
    recorded_grad,
    share_tangents,
    tangents,
    window,
    with_own_memory,
)

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


class JvpInterpreter(Interpreter):
    """One level of forward mode, for the tensors that carry its tangents. `in_inference`: also in inference mode."""

    in_inference = False

    def __init__(self) -> None:
        self.holders: set[ref[Tangents]] = set()  # the tables that hold tangents, which are removed at the end
        self.outdated: set[Tensor] = set()  # tangents that have been replaced; views compute new parts

    @uninterrupted
    def leave(self) -> None:
        """Leave the level and remove its tangents."""
        modes.put({"stack": self.outside})
        self.remove_tangents()

    def remove_tangents(self) -> None:
        """Remove the tangents of this level, which may be part of reference cycles."""
        for table in filter(None, [holder() for holder in list(self.holders)]):
            table.pop(self, None)
        self.holders.clear()
        self.outdated.clear()

    # --- the tangents -------------------------------------------------------------------------------------------

    def wraps(self, tensor: Tensor) -> bool:
        """Return whether `tensor`, or the base of this view, carries a tangent."""
        return self.tangent_of(tensor) is not None

    def tangent_of(self, tensor: Tensor) -> Tensor | None:
        """Return the tangent of `tensor`. The tangent of a view may have to be derived from the tangent of its base."""
        extra = tensor._extra
        if extra is not None and extra.tangents is not None and self in extra.tangents:
            stored = extra.tangents[self]
            if not self.outdated or stored is None or stored._base not in self.outdated:
                return stored
        base = tensor._base
        if base is None or base._extra is None or base._extra.tangents is None or not can_require_grad(tensor._array):
            return None
        whole = base._extra.tangents.get(self)
        if whole is None:
            return None
        with lower(self):
            found = window(whole, base, tensor)
        self.attach(tensor, found)
        return found

    def attach(self, tensor: Tensor, tangent: Tensor | None) -> None:
        """Set the tangent of `tensor`. None for a view means that the view has no tangent, even if its base has a tangent."""
        extra = tensor._own_extra()
        if extra.tangents is None:
            extra.tangents = Tangents()
        extra.tangents[self] = tangent
        self.holders.add(ref(extra.tangents, self.holders.discard))

    def overwrite(self, tensor: Tensor, tangent: Tensor | None) -> None:
        """Set the tangent of `tensor`, which was changed in place, so that its views and its base see the change."""
        present = self.tangent_of(tensor)
        if present is None:
            if tangent is None:
                return
            base = tensor._base
            if base is None:
                self.attach(tensor, laid_out_like(tangent, tensor))
                return
            whole = empty_like(base, tangent, base.dtype).zero_()
            present = self._renewed(tensor, whole)
        elif tangent is not None and not _accepts(present, tangent):
            base = tensor if tensor._base is None else tensor._base
            whole = empty_like(base, tangent, base.dtype)
            before = self.tangent_of(base)
            present = self._renewed(tensor, whole.zero_() if before is None else whole.copy_(before))
            self.outdated |= {before} if before is not None else set()
        if tangent is None:
            present.zero_()
        else:
            present.copy_(tangent)

    def _renewed(self, tensor: Tensor, whole: Tensor) -> Tensor:
        """Return the tangent of `tensor` after `whole` has become the tangent of its base."""
        base = tensor._base
        if base is None:
            self.attach(tensor, whole)
            return whole
        self.attach(base, whole)
        part = window(whole, base, tensor)
        self.attach(tensor, part)
        return part

    def forget(self, tensor: Tensor) -> None:
        """Remove the tangent of `tensor`."""
        if self.tangent_of(tensor) is not None:
            self.attach(tensor, None)

    def make_dual(self, tensor: Tensor, tangent: Tensor) -> Tensor:
        """Return a view of `tensor` with the tangent `tangent`."""
        _check_shape(tensor, tangent)
        if type(self) is _PublicInterpreter and self.tangent_of(tangent) is not None:
            raise RuntimeError(
                "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
            )
        if self.tangent_of(tensor) is not None:
            raise RuntimeError(
                "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
            )
        with lower(self):
            dual = tensor.view(tensor.shape) if tensor.layout is strided else operators.alias(tensor)
            if self.in_inference or not modes.STATE.inference:
                self.attach(dual, laid_out_like(tangent, dual))
        return dual

    def unpack(self, tensor: Tensor) -> UnpackedDualTensor:
        """Return the primal, as a view, and the tangent."""
        tangent = self.tangent_of(tensor) if self.propagates() else None
        with lower(self):
            primal = operators.forward_primal(tensor)
        self.attach(primal, None)
        return UnpackedDualTensor(primal, tangent)

    def without_tangent(self, tensor: Tensor) -> Tensor:
        """Return `tensor` as a view without a tangent."""
        if self.tangent_of(tensor) is None:
            return tensor
        with lower(self):
            primal: Tensor = operators.alias(tensor)
        self.attach(primal, None)
        return primal

    def propagates(self) -> bool:
        """Return whether operators propagate tangents in the current modes of this thread. Tangents of views are always known."""
        return modes.STATE.forward_enabled and (self.in_inference or not modes.STATE.inference)

    # --- operators ----------------------------------------------------------------------------------------------

    def process(self, call: Call) -> Any:
        """Apply the operator to the primals, and propagate the tangents."""
        operator, args = call.op, call.given
        if call.out is not None:
            raise NotImplementedError(
                f"Trying to use forward AD with {operator.function_name}_out that does not support it because it is an out= "
                "function"
            )
        given = self.given(operator, args)
        with lower(self):
            results = operator.apply(*args)
            outputs = tuple(results) if isinstance(results, (tuple, list)) else (results,)
            carried = self.carried(operator, args, given, outputs)
        for number, (output, tangent) in enumerate(zip(outputs, carried, strict=True)):
            if tangent is not None:
                self.attach(output, pending_like(tangent, output))
                self.remember(operator, output, number)
        return results

    def process_inplace(self, operator: Operator, args: tuple[Any, ...]) -> Tensor:
        """Apply the in-place variant, and overwrite the tangent like the tensor."""
        target: Tensor = args[0]
        if not self.propagates():
            with lower(self):
                call(operator, args, way=IN_PLACE)
            return target
        given = self.given(operator, args)
        with lower(self):
            if any(tangent is not None for tangent in given.values()):
                before = args
                moving = [item for each in given.values() for item in (each if isinstance(each, list) else (each,))]
                recorded = any(is_recorded(item) for item in (*tensors_in(args), *moving) if item is not None)
                if recorded:  # neither the old tangent nor the operands of the new one may change
                    copy = detached_copy(target)
                    before = tuple(copy if value is target else value for value in args)
                    given = self.given(operator, before)
                result = operator.apply(*before)
                (tangent,) = self.carried(operator, before, given, (result,))
            else:
                tangent = None
            call(operator, args, way=IN_PLACE)
            if can_require_grad(target._array):
                self.overwrite(target, tangent)
        self.remember(operator, target, 0)
        return target

    def process_inplace_view(self, operator: Operator, args: tuple[Any, ...]) -> Tensor:
        """Apply an operator that changes the tensor into another view."""
        target: Tensor = args[0]
        tangent = self.tangent_of(target)
        with lower(self):
            viewed = None if tangent is None else operator.apply(tangent, *args[1:])
            call(operator, args, way=IN_PLACE_VIEW)
        if viewed is not None:
            self.attach(target, viewed)
        return target

    def given(self, operator: Operator, args: tuple[Any, ...]) -> dict[str, Any]:
        """Return the tangents of the differentiable operands, by name."""
        given: dict[str, Any] = {}
        if not (operator.view or self.propagates()):
            return given
        moves = False
        for name, position in zip(operator.differentiable, operator.differentiable_positions, strict=True):
            value = args[position]
            tangent: Any = None
            if operator.kinds[name] == ARRAYS:
                tangent = [self.tangent_of(item) for item in value]
                tangent = None if all(item is None for item in tangent) else tangent
            elif isinstance(value, Tensor):
                tangent = self.tangent_of(value)
            else:
                continue
            given[name] = tangent
            moves = moves or tangent is not None
        return given if moves else {}

    def carried(
        self, operator: Operator, args: tuple[Any, ...], given: dict[str, Any], outputs: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Compute the tangents of the outputs."""
        nothing = (None,) * len(outputs)
        if not given:
            return nothing
        try:
            found = tangents(operator, args, given, outputs)
            if found is TRANSPOSE:
                found = transposed(operator, args, given)
        except RuntimeError as error:  # NotImplementedError is one
            refused = without_tangent(operator, error)
            if refused is None:
                raise
            raise refused from error
        if operator.tangent == "linear" and operator.nondifferentiable_outputs:
            found = tuple(
                None if name in operator.nondifferentiable_outputs else tangent
                for name, tangent in zip(operator.outputs, found, strict=True)
            )
        return tuple(
            [
                with_own_memory(tangent, output, given, operator)
                if tangent is not None and can_require_grad(output._array)
                else None
                for tangent, output in zip(found, outputs, strict=True)
            ]
        )

    def remember(self, operator: Operator, output: Tensor, number: int) -> None:
        """Attach the tangents of a result that the node saves without the tensor, so that unpacking restores them."""
        item = operator.outputs[number] if operator.outputs else "result"
        if item not in operator.saved_results:
            return
        edge = output._edge if output._base is None else output._base._edge
        node = edge[0] if type(edge) is tuple else None
        if type(node) is CopySlices:  # of the base, whose view was changed
            node = node.function
        if getattr(node, "operator", None) is operator:
            own_hooks(node).tangents[item] = output._own_extra().tangents  # type: ignore[assignment, arg-type]

    def apply_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Apply a custom `Function`, and its `jvp` to the tangents."""
        with lower(self):
            context, results = function.applied_with_context(args)
        if not self.propagates():
            return results
        given = [self.tangent_of(arg) if isinstance(arg, Tensor) else None for arg in args]
        own = given
        if context.materialize_grads:
            given = modes.run_outside(self, _with_zeros, args, given)
        versions = [None if tangent is None else tangent._version for tangent in given]
        context.in_jvp = True
        try:
            carried = modes.run_outside(self, function.jvp, context, *given)
        finally:
            context.in_jvp = False
        outputs = results if isinstance(results, tuple) else (results,)
        carried = checked_tangents(carried, len(outputs))
        for number, (output, tangent) in enumerate(zip(outputs, carried, strict=True)):
            if not isinstance(output, Tensor):
                continue
            if number in context.marked_dirty:
                place = next(place for place, arg in enumerate(args) if arg is output)
                check_changed(given[place], versions[place], tangent)
            if tangent is None:
                continue
            if number in context.marked_constant or not can_require_grad(output._array):
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {number}, but  the corresponding forward output is not a "
                    "differentiable Tensor.You should return None at that position instead."
                )
            is_view = False
            if number not in context.marked_dirty and type(output) is type(tangent) is Tensor:
                is_view = is_view_of_dual(output, tangent, args, own)
            _check_shape(output, tangent)
            if any(output is arg for arg in args):
                with modes.switched(transforms=()):
                    self.overwrite(output, tangent)
            elif is_view:
                check_layout(output, tangent)
                self.attach(output, pending_like(tangent, output))
            else:
                self.attach(output, laid_out_like(tangent, output))
            share_tangents(output)
        return results


def carry_tangents(tensor: Tensor, copy: Tensor) -> None:
    """Give `copy`, which represents `tensor`, the tangents of `tensor`."""
    for level in modes.STATE.interpreters:
        if isinstance(level, JvpInterpreter) and (tangent := level.tangent_of(tensor)) is not None:
            level.attach(copy, tangent)


def _accepts(tensor: Tensor, value: Tensor) -> bool:
    """Return whether `tensor` has every batch dimension, and a class that overrides changes, if `value`, written to it, has."""
    if type(value) in DISPATCHING and type(tensor) not in DISPATCHING:
        return False
    batches = [level for level in modes.STATE.interpreters if hasattr(level, "has")]
    return all(
        (level.has(tensor) or not level.has(value)) and (level.wraps(tensor) or not level.wraps(value))
        for level in batches
    )


def _with_zeros(args: Sequence[Any], given: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [
        zeros_like(arg.detach())
        if tangent is None and isinstance(arg, Tensor) and can_require_grad(arg._array)
        else tangent
        for arg, tangent in zip(args, given, strict=True)
    ]


def _check_shape(tensor: Tensor, tangent: Tensor) -> None:
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def transposed(operator: Operator, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Tensor | None, ...]:
    """Compute the tangents of the outputs by transposing the vector-Jacobian product.

    The product is linear in its vector, so its derivative with respect to the vector, at any point, is the Jacobian (J.
    Townsend, A new trick for calculating Jacobian vector products, 2017). The point is 1, because formulas may take the
    logarithm.
    """
    from .reverse import Reverse, tracked

    reverse = Reverse()
    tensors = [*tensors_in(args), *tensors_in(given.values())]
    recorded_outside = modes.is_grad_enabled() and any(is_recorded(tensor) for tensor in tensors)
    with modes.switched(saved_tensor_hooks=(), grad_enabled=True):  # values saved here belong to the transposition
        replaced, inputs, directions = list(args), [], []
        pairs: Any
        for name, tangent in given.items():
            position = operator.names.index(name)
            value = args[position]
            if operator.kinds[name] == ARRAYS:
                copies = [tracked(item, reverse) for item in value]
                replaced[position] = copies
                pairs = zip(copies, tangent or (), strict=bool(tangent))
            elif tangent is not None:
                replaced[position] = tracked(value, reverse)
                pairs = iter([(replaced[position], tangent)])
            else:
                continue
            for copy, direction in pairs:
                if direction is not None:
                    inputs.append(copy)
                    directions.append(direction)
        results = operator.apply(*replaced)
        outputs = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        differentiable = [output for output in outputs if output.requires_grad]
        vectors = [tracked(output.new_ones(output.shape), reverse) for output in differentiable]
        products = recorded_grad(differentiable, inputs, vectors, True)
        directions = [each if of is None else each.to(of.dtype) for of, each in zip(products, directions, strict=True)]
    derivatives = recorded_grad(products, vectors, directions, recorded_outside)
    found: dict[int, Any] = {}
    if any(value is not None for value in derivatives):
        found = {id(output): value for output, value in zip(differentiable, derivatives, strict=True)}
    return tuple(
        zeros_like(output.detach()) if output.requires_grad and id(output) not in found else found.get(id(output))
        for output in outputs
    )


# --- the public functions ---------------------------------------------------------------------------------------


def current_level() -> _PublicInterpreter | None:
    """Return the level that `enter_dual_level` has entered in this thread, or otherwise in another thread."""
    levels = [level for level in (*modes.FLAGS.levels, *modes.STATE.interpreters) if type(level) is _PublicInterpreter]
    return next((level for level in levels if level.thread == modes.STATE.number), levels[-1] if levels else None)


class _PublicInterpreter(JvpInterpreter):
    """One level of the functions of this module. Each thread enters one, whose tangents reach all threads."""

    @uninterrupted
    def enter(self) -> None:
        """Make this the innermost interpreter of all threads."""
        self.thread = modes.STATE.number
        if modes.STATE.stack is None:
            self.outside = None
            mode_switches.set_levels(lambda levels: (*levels, self))
        else:
            super().enter()

    @uninterrupted
    def leave(self) -> None:
        """Leave the level in all threads. Any thread may have entered it."""
        mode_switches.set_levels(lambda levels: tuple([level for level in levels if level is not self]))
        if self.thread == modes.STATE.number:
            super().leave()
        else:
            self.remove_tangents()


def enter_dual_level() -> int:
    """Enter a level of forward mode, and return its number, 0.

    Raises:
        RuntimeError: if the thread is already in a level. Only `func.jvp` nests.
    """
    _entered()
    return 0


def _entered() -> _PublicInterpreter:
    found = current_level()
    if found is not None and found.thread == modes.STATE.number:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = _PublicInterpreter()
    level.enter()
    return level


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level, and remove its tangents."""
    found = current_level()
    if found is None and (level is None or level < 0):
        raise RuntimeError("Dual level must be a positive number.")
    if found is None or (level is not None and level != 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    found.leave()


class dual_level(_Mode):
    """A context manager and decorator that enters a level of forward mode."""

    def __enter__(self) -> int:
        self.level = _entered()
        return 0

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        self.level.leave()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of `tensor`, the primal, that carries `tangent`, which has the same shape.

    Raises:
        RuntimeError: outside a `dual_level`, if the shapes differ, or if the tensor already has a tangent.
        ValueError: if the dtype of the primal or the tangent is neither floating point nor complex.
    """
    current = current_level()
    if current is None or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    check_floating(tensor, tangent)
    if level is not None and level != 0:
        raise RuntimeError("Invalid level given to _make_dual")
    return current.make_dual(tensor, tangent)


def check_floating(primal: Tensor, tangent: Tensor | None = None) -> None:
    """Raise ValueError if a primal or tangent is neither floating point nor complex."""
    for name, value in (("primal", primal), ("tangent", tangent)):
        if value is not None and not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the tensor without its tangent, as a view, and the tangent or None.

    Outside a `dual_level` no tensor has a tangent.
    """
    current = current_level()
    if current is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    require("Tensor", tensor, "_unpack_dual", "dual", 1)
    if level:
        return UnpackedDualTensor(operators.forward_primal(tensor), None)
    return current.unpack(tensor)


class _set_fwd_grad_enabled(_Switch):
    """Switch forward mode on or off in this thread."""

    flag = "forward_enabled"


def _is_fwd_grad_enabled() -> bool:
    return modes.STATE.forward_enabled


def shown_tangent(tensor: Tensor) -> Tensor | None:
    """Return the tangent of a tensor for its text."""
    current = current_level()
    return None if current is None else current.tangent_of(tensor)
