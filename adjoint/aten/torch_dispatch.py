"""Operators that modes and tensor classes with `__torch_dispatch__` replace below autograd.

A mode of a thread is an interpreter outside of all transforms. Transforms therefore run first, as in PyTorch. The mode or class
receives the overload of PyTorch's dispatcher and its arguments (`calls`). Nothing is recorded during this time. Afterwards
the result is recorded as the result of the operator. Wrappers report calls of hand-written functions that are one operator in
PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self
from weakref import ref

from .._runtime.uninterrupted import uninterrupted
from ..device import preserve_format
from ..dispatch import plan
from ..dispatch.declaration import Operator
from ..dispatch.decorators import tensors
from ..dispatch.return_types import return_type
from ..dispatch.steps.change import check_change, record_change
from ..dispatch.steps.record import find_edges, recorded
from ..dispatch.wrappers import signature_of
from ..tape import modes
from ..tape.inference_tensors import mark_inference
from ..tape.interpreters import Interpreter, innermost, lower
from ..tape.node import NOWHERE
from ..tape.torch_dispatch import DISPATCHING, ask, dispatching_types
from ..tape.versions import bump, shared_counter
from ..tensor import LEAF, PLAIN_TYPES, Tensor, wrap
from . import profiled_functions
from .calls import Call, call_of_function, call_of_operator
from .compositions import COMPOSITIONS
from .forms import LEAVES
from .overloads import OpOverload
from .schemas import schema_of


class DispatchLevel(Interpreter):
    """The level of a mode that a thread has entered. The mode is an object with a method `__torch_dispatch__`."""

    is_mode = True

    def __init__(self, mode: Any) -> None:
        self.mode = mode

    @uninterrupted
    def enter(self) -> None:
        """Make this the innermost mode. Running transforms stay inside it."""
        self.number = profiled_functions.watch_leaves(ref(self))
        before = modes.STATE.interpreters
        count = sum(level.is_mode for level in before)
        self.outside = modes.STATE.stack
        modes.put({"stack": (*before[:count], self, *before[count:])})

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """A context that watches functions for the mode again."""
        number = profiled_functions.watch_leaves(ref(self))
        try:
            yield
        finally:
            profiled_functions.stop_watching_leaves(number)

    def wraps(self, tensor: Tensor) -> bool:
        """Return True, because the mode overrides operators on all tensors."""
        return True

    def process(self, call: plan.Call) -> Any:
        """Let the mode compute the operator, or the operators that PyTorch composes in its place."""
        composition = composition_of(call)
        if composition is not None:
            return composed(call, composition)
        with lower(self):
            return dispatched(call, self.mode)

    def process_inplace(self, operator: Any, args: tuple[Any, ...]) -> Tensor:
        """Let the mode change the first argument."""
        with lower(self):
            return dispatched_inplace(operator, args, self.mode)

    process_inplace_view = process_inplace

    def apply_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Apply a custom `Function`. The mode receives the operators inside."""
        return function.applied(args)[1]


class Entered:
    """The effect of `with` on a mode. Entries of the same mode may be nested."""

    _entered: Any = None

    def __enter__(self) -> Self:
        level = push_mode(self)
        self._entered = (level.outside, level.number, self._entered)
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        outside, number, self._entered = self._entered
        modes.put({"stack": outside})
        profiled_functions.stop_watching_leaves(number)


def levels() -> list[DispatchLevel]:
    """Return the modes that this thread has entered, with the innermost last."""
    return [level for level in modes.STATE.interpreters if isinstance(level, DispatchLevel)]


def push_mode(mode: Any) -> DispatchLevel:
    """Enter a mode in this thread. A mode is an object with a method `__torch_dispatch__`."""
    level = DispatchLevel(mode)
    level.enter()
    return level


@uninterrupted
def pop_mode() -> Any:
    """Leave the innermost mode of this thread, and return it, or raise an error if there is none."""
    found = levels()
    if not found:
        raise RuntimeError("trying to pop from empty mode stack")
    level = found[-1]
    left = tuple([each for each in modes.STATE.interpreters if each is not level])
    modes.put({"stack": None if left == modes.FLAGS.levels else left})
    profiled_functions.stop_watching_leaves(level.number)
    return level.mode


def modes_pushed() -> int:
    """Return the number of modes that this thread has entered."""
    return len(levels())


def mode_at(index: int) -> Any:
    """Return a mode that this thread has entered, counted from the outermost."""
    return levels()[index].mode


# --- operators --------------------------------------------------------------------------------------------------


def taken_over(call: plan.Call) -> Any:
    """Return the result of a call that a class of its tensors overrides."""
    composition = composition_of(call)
    if composition is not None:
        return composed(call, composition)
    if not call.in_place:
        return dispatched(call)
    check_change(call.op, call)
    return dispatched_inplace(call.op, call.given)


def dispatched(call: plan.Call, mode: Any = None) -> Any:
    """Return the result of a call, computed by a mode, or by the first class of its tensors that overrides it."""
    asked, out = call_of_operator(call.op, call.given, call.out), call.out
    if out is not None:
        _change(out if isinstance(out, (tuple, list)) else [out], call.op.function_name, asked, mode)
        return out
    return completed(call, results_of(call.op, asked[0], _call_override(asked, mode)))


def composed(call: plan.Call, composition: Callable[..., Any]) -> Any:
    """Return the result of a call, composed from PyTorch's operators, and recorded as the result of the declared operator."""
    with modes.switched(grad_enabled=False):
        results = composition(*call.given)
    return completed(call, results)


def completed(call: plan.Call, results: Any) -> Any:
    """Record the results of a call, and return them."""
    call.several = isinstance(results, (tuple, list))
    call.outputs = [_own(each, call.given) for each in (results if call.several else (results,))]
    recorded(call, on_tensors=True)
    if modes.STATE.inference and not call.op.view:
        for output in call.outputs:
            mark_inference(output)
    return call.result()


def results_of(op: Operator, overload: OpOverload, results: Any) -> Any:
    """Return the results that `op` has, among those of PyTorch's operator."""
    if not isinstance(results, (tuple, list)) or op.many:
        return results
    own, schema = op.outputs or ("result",), overload._schema
    names = [] if schema is None else [each.name for each in schema.returns]
    if len(names) == len(results) and names != list(own) and set(own) <= set(names):
        results = [results[names.index(name)] for name in own]
    return list(results[: len(own)]) if op.outputs else results[0]


def composition_of(call: plan.Call) -> Callable[..., Any] | None:
    """Return the function that composes the result of a call from PyTorch's operators, if PyTorch has not the operator."""
    return COMPOSITIONS.get(call.op.name) if call.way == plan.FUNCTION else None


def dispatched_inplace(op: Operator, args: tuple[Any, ...], mode: Any = None) -> Tensor:
    """Let a mode, or a class, change the first of `args`, and record the change as `op`."""
    target: Tensor = args[0]
    asked = call_of_operator(op, args, inplace=True)
    if target._base is None and not modes.is_recording():
        _change([target], f"{op.function_name}_", asked, mode)
        return target
    # The node is appended to the new history of the tensor.
    call = plan.Call(op, plan.IN_PLACE, args)
    find_edges(op, call)
    record_change(call, lambda: _uncounted(target, asked, mode), on_tensors=True)
    return target


def _change(targets: Any, name: str, asked: Call, mode: Any) -> None:
    """Let a mode or class change `targets`. Count the change if it was made to other tensors, for which these stand."""
    before = [_changes_of(target) for target in targets]
    _call_override(asked, mode)
    for target, count in zip(targets, before, strict=True):
        if _changes_of(target) == count:
            bump(target, name, depth=5)


def _uncounted(target: Tensor, asked: Call, mode: Any) -> None:
    """Let a mode or class change `target`. The caller counts the change, as one."""
    before = _changes_of(target)
    try:
        _call_override(asked, mode)
    finally:
        if _changes_of(target) != before:
            target._counter[0] = before  # type: ignore[index]


def _changes_of(tensor: Tensor) -> Any:
    return tensor._counter[0] if type(tensor._counter) is list else 0


def _call_override(call: Call, mode: Any) -> Any:
    """Return the result of the mode or class. Nothing is recorded during this time."""
    with modes.switched(grad_enabled=False):
        return ask(mode, *call)


def _own(result: Any, args: tuple[Any, ...]) -> Any:
    """Return a result as a tensor that may get a history. An argument gets another tensor on its memory."""
    if result is None:
        return None
    if not isinstance(result, Tensor):
        raise RuntimeError(f"Unable to cast {result!r} to Tensor")
    if result._base is None and result._edge is None and not any(result is arg for arg in args):
        return result
    if result._base is not None and (result._edge is None or result._edge is NOWHERE):  # a view created below autograd
        result._base = result._edge = None
        return result
    made = result.detach() if type(result) in DISPATCHING else wrap(result._array)
    made._counter = shared_counter(result)
    return made


# --- functions written by hand ----------------------------------------------------------------------------------


def function_called(name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call a watched function. The mode or class receives an operator if the function is an operator in PyTorch."""
    form = LEAVES.get(name)
    if form is None:
        return function(*args, **keywords)
    interpreters = modes.STATE.interpreters
    level = innermost((*args, *keywords.values())) if interpreters else None
    if level is None:
        level = next((each for each in reversed(interpreters) if isinstance(each, DispatchLevel)), None)
    if level is not None and not isinstance(level, DispatchLevel):
        if hasattr(level, "shared_by_all") or not (name.startswith("new_") or name.endswith("_like")):
            return function(*args, **keywords)
        with lower(level):  # a new tensor has no tangent
            return function_called(name, function, args, keywords)
    if level is None and not (DISPATCHING and dispatching_types(args)):
        if not DISPATCHING:
            profiled_functions.settle()
        return function(*args, **keywords)
    try:
        bound = signature_of(function).bind(*args, **keywords)
        bound.apply_defaults()
    except TypeError:
        return function(*args, **keywords)
    values = dict(bound.arguments)
    first = next(iter(values.values()))
    if name in ("item", "is_nonzero") and first.numel() != 1:
        return function(*args, **keywords)
    out, requires_grad = values.pop("out", None), values.pop("requires_grad", False)
    formed = form(values)
    if formed is None:
        return function(*args, **keywords)
    call = call_of_function(*formed, out)
    if level is None:
        result = _call_override(call, None)
    else:
        with lower(level):
            result = _call_override(call, level.mode)
    if requires_grad:
        result._edge = LEAF
    if name == "detach":
        result = _detached(result, first)
    schema = call[0]._schema
    if isinstance(result, (tuple, list)) and schema is not None and all(each.name for each in schema.returns):
        result = return_type(name, *[each.name for each in schema.returns])(result)
    return bool(result) if name == "is_nonzero" else result


def overload_called(
    overload: Any, kernel: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], cached: bool
) -> Any:
    """Call an operator of a program. A mode, a class, a checkpoint (if `cached`) or the kernel answers."""
    level = next((each for each in reversed(modes.STATE.interpreters) if isinstance(each, DispatchLevel)), None)
    if level is not None:
        with lower(level):
            return _call_override((overload, args, keywords), level.mode)
    if DISPATCHING and dispatching_types((*args, *keywords.values())):
        return _call_override((overload, args, keywords), None)
    cache = modes.STATE.result_cache
    return cache.call(overload, kernel, args, keywords) if cached and cache is not None else kernel(*args, **keywords)


class _GradientOperators:
    """PyTorch's operators for gradients, by name. A mode or a class computes their results."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *values: self._called(name, values)

    def _called(self, name: str, values: tuple[Any, ...]) -> Any:
        schema = schema_of(name, "default")
        assert schema is not None
        named = dict(zip((each.name for each in schema.arguments), values, strict=False))
        overload, args, keywords = call_of_function(name, {key: _as_list(value) for key, value in named.items()})
        return overload_called(overload, overload, args, keywords, cached=False)


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


_GRADIENT_OPERATORS = _GradientOperators()


def gradient_operators(*tensors: Tensor | None) -> _GradientOperators | None:
    """Return the operators for gradients if a mode or the class of a tensor receives them.

    If they are recorded, the operators of the formulas are recorded instead, because these have derivatives.
    """
    if not is_watched(*tensors):
        return None
    if modes.is_recording() and any(each is not None and each.requires_grad for each in tensors):
        return None
    return _GRADIENT_OPERATORS


def _detached(result: Tensor, source: Tensor) -> Tensor:
    """Return a tensor without history that shares its version counter with `source`."""
    if type(result) is Tensor and result._base is None:
        result._counter = shared_counter(source)
    return result


def is_watched(*tensors: Tensor | None) -> bool:
    """Return whether a mode of this thread, or the class of one of the tensors, overrides operators on them."""
    interpreters = modes.STATE.interpreters
    if interpreters and isinstance(interpreters[-1], DispatchLevel):
        return True
    return bool(DISPATCHING) and any(type(each) in DISPATCHING for each in tensors)


def ones_like(tensor: Tensor) -> Any:
    """Return ones in the shape of a tensor, created by the modes and the tensor's class."""
    if not is_watched(tensor):
        return tensors.ones_like(tensor)
    return function_called("ones_like", tensors.ones_like, (tensor,), {"memory_format": preserve_format})


def zeros_like(tensor: Tensor, requires_grad: bool = False) -> Any:
    """Return zeros in the shape of a tensor, created by the modes and the tensor's class."""
    if not is_watched(tensor):
        return tensors.zeros_like(tensor, requires_grad=requires_grad)
    keywords = {"memory_format": preserve_format, "requires_grad": requires_grad}
    return function_called("zeros_like", tensors.zeros_like, (tensor,), keywords)


# --- classes ----------------------------------------------------------------------------------------------------


def class_defined(cls: type[Tensor]) -> None:
    """Send operators on tensors of a class with `__torch_dispatch__` to the slow path, which calls the class."""
    PLAIN_TYPES.discard(cls)
    if not DISPATCHING:
        profiled_functions.watch_leaves(lambda: DISPATCHING or None)  # while such a class exists
    DISPATCHING.add(cls)
    cls.without_history = _without_history  # type: ignore[attr-defined]
    if cls.data is Tensor.data:
        cls.data = property(Tensor.detach, Tensor.data.fset, Tensor.data.fdel)  # type: ignore[assignment, attr-defined]
    for name in ("numpy", "tolist"):
        if getattr(cls, name) is getattr(Tensor, name):
            setattr(cls, name, _refusing(name))


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Tensor, *args: Any, **keywords: Any) -> Any:
        which = "" if name == "numpy" else f", got {type(self).__name__}"
        raise RuntimeError(f".{name}() is not supported for tensor subclasses{which}.")

    return refuse


def _without_history(self: Tensor, copy: bool = False) -> Tensor:
    """Return another tensor for a node to save in place of a result. This tensor does not refer to the node."""
    level = innermost((self,)) if modes.STATE.interpreters else None
    if level is not None and not isinstance(level, DispatchLevel):
        with lower(level):
            return _without_history(self, copy)
    if copy:
        return self.detach().clone()
    return self.detach() if modes.STATE.asks_dispatching else wrap(self._array)


Tensor._takes_operators_over = classmethod(class_defined)
Tensor._gradient_operators = staticmethod(gradient_operators)
