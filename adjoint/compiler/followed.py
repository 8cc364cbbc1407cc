"""Functions of this package that a capture follows in their own way.

They call functions of the user, or change objects that the function has not made. A program calls some of these
functions again.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import adjoint as torch
from adjoint.optim.lr_scheduler import LRScheduler
from adjoint.optim.swa_utils import AveragedModel
from adjoint.utils.checkpoint import checkpoint, checkpoint_sequential

from .._runtime.sequence import watchers
from ..autograd.function import Function, FunctionCtx
from ..func.modules import _merged, replaced
from ..nn.modules.call import all_have_hooks, has_hooks
from ..tensor import Tensor
from .known import CALL, Changing, Method, is_constant, is_ours, is_plain
from .program import Constant
from .steps import Step, keep_step, params_of, require_usual_clearing
from .transforms import inner

if TYPE_CHECKING:
    from .observer import Observer

GradScaler = torch.amp.GradScaler
DISTRIBUTIONS = (torch.distributions.Distribution, torch.distributions.Transform)


@contextmanager
def unseen(observer: Observer) -> Iterator[None]:
    """Run code that is neither captured nor observed."""
    sys.setprofile(None)
    observer.tracer.__exit__()
    try:
        yield
    finally:
        observer.tracer.__enter__()
        sys.setprofile(observer.entered)


def host(observer: Observer, owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method that the program calls too: the step of an optimizer, with its schedules and hooks."""
    tracer, method = observer.tracer, getattr(owner, name)
    if args or any(value is not None and type(value) is not bool for value in kwargs.values()):
        observer.stop("a step has a closure")
    of_user = name == "step" and keep_step(observer, owner)
    if observer.stopped:
        return method(*args, **kwargs)
    if isinstance(owner, torch.nn.Module):
        observer.tree(owner)
        params: list[Any] = list(torch.nn.Module.parameters(owner))
    else:
        params = [*params_of(owner)]
        if name == "zero_grad":
            require_usual_clearing(observer, owner)
    with unseen(observer):
        result = method(**kwargs)
        if of_user:
            observer.after_others()
    if name == "zero_grad" and kwargs.get("set_to_none", True):
        tracer.program.grads_known.update({id(param): param for param in params})
    for param in params:
        number = tracer.program.by_tensor.get(id(param))
        if number is not None and name == "step":
            tracer.program.changes.setdefault(number, 0)  # which it counts itself
    if name == "zero_grad" and kwargs.get("set_to_none", True):
        tracer.program.clear_grads(params)
    else:
        function = Step(owner) if name == "step" else Method(owner, name, (), kwargs)
        tracer.program.append(name, function, [], [], keeps=True)
    return result


def driven(observer: Observer, owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a schedule or a scaler. The program calls it too, and then uses no value that was read earlier."""
    program, method, kind = observer.tracer.program, getattr(owner, name), type(owner)
    of_scaler = isinstance(owner, GradScaler)
    if (
        kwargs
        or name in vars(owner)
        or len(args) != (of_scaler and name == "step")
        or not all(isinstance(each, torch.optim.Optimizer) for each in args)
    ):
        observer.stop(f"{name}() of an object of class {kind.__name__} is called in an unusual way")
    observer.guard(("method", id(owner), name), f"type({{0}}).{name} is {{1}}", owner, getattr(kind, name))
    observer.guard(("no own method", id(owner), name), "{1} not in {0}", vars(owner), name)
    if observer.stopped:
        return method(*args, **kwargs)
    if of_scaler and not observer.attribute(owner, "_enabled"):
        return host(observer, args[0], name) if name == "step" else None
    with unseen(observer):
        result = method(*args)
        observer.after_others()
    for tensor in [*chain.from_iterable(map(params_of, args)), getattr(owner, "_scale", None)]:
        if (number := program.by_tensor.get(id(tensor))) is not None:
            program.changes.setdefault(number, 0)  # which the method counts itself
    program.append(name, Method(owner, name, args, {}), [], [], keeps=True)
    return result


DRIVEN = {LRScheduler: ("step",), GradScaler: ("step", "update")}
"""The methods of schedules and scalers that `driven` calls."""


def is_driven(owner: Any, name: str) -> bool:
    """Return whether `driven` calls a method."""
    return any(isinstance(owner, kind) and name in names for kind, names in DRIVEN.items())


def scaled(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Multiply a loss by the scale of a scaler, which exists before the program runs."""
    scaler, outputs = args if len(args) == 2 else (None, None)
    if type(scaler) is not GradScaler or not isinstance(outputs, Tensor):
        observer.stop("a loss is scaled in an unusual way")
        return given(*args[1:], **kwargs)
    if not observer.attribute(scaler, "_enabled"):
        return outputs
    with unseen(observer):
        scaler._current()
    return outputs * observer.attribute(scaler, "_scale")


def change_grads(observer: Observer, params: list[Any]) -> None:
    """Record that a function changes the gradients of parameters in place, and counts the changes itself."""
    tracer = observer.tracer
    for param in params:
        observer.seen(param)
        grad = observer.grad_of(param)
        number = None if grad is None else tracer.values.get(id(grad._array))
        if number in tracer.program.inputs:
            tracer.program.changes.setdefault(number, 0)


def unscaled(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Divide gradients by the scale of a scaler. The program calls the method again."""
    scaler, optimizer = args if len(args) == 2 else (None, None)
    if type(scaler) is not GradScaler or not isinstance(optimizer, torch.optim.Optimizer):
        observer.stop("gradients are unscaled in an unusual way")
    elif not observer.attribute(scaler, "_enabled"):
        return None
    else:
        change_grads(observer, [*params_of(optimizer)])
    if observer.stopped:
        return given(*args[1:], **kwargs)
    with unseen(observer):
        given(optimizer)
    observer.tracer.program.append("unscale_", Method(scaler, "unscale_", (optimizer,), {}), [], [], keeps=True)
    return None


def averaged(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add the parameters of a model to their averages. The program calls the method again."""
    program = observer.tracer.program
    owner, *others = args
    with unseen(observer):
        result = given(*others, **kwargs)
        if any(each is not None and not is_ours(each) for each in (owner.avg_fn, owner.multi_avg_fn)):
            observer.after_others()
    for tensor in chain(torch.nn.Module.parameters(owner), torch.nn.Module.buffers(owner)):
        if (number := program.by_tensor.get(id(tensor))) is not None:
            program.changes.setdefault(number, 0)  # which the method counts itself
    if any(map(observer.is_inside, (owner, *others, *kwargs.values()))):
        observer.stop("a model that the function has made is averaged")
    program.append(given.__name__, Method(owner, given.__name__, tuple(others), kwargs), [], [], keeps=True)
    return result


def call_module(observer: Observer, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module."""
    unusual = module._backward_hooks or module._backward_pre_hooks or module._forward_hooks_always_called
    if unusual or all_have_hooks() or type(module).__call__ is not CALL:
        observer.stop("a module has backward hooks, or hooks of all modules")
        return module(*args, **kwargs)
    hooks, hooked = module._call_hooks, has_hooks(module)
    if hooked:
        observer.elements(hooks)
    else:
        observer.guard(("hooks", id(hooks)), "len({0}) == 1" if hooks else "not {0}", hooks)
    observer.guard("hooks of all modules", "not ({0} and {1}())", watchers, all_have_hooks)
    observer.guard(("call", id(type(module))), "{0}.__call__ is {1}", type(module), CALL)
    if hooked:
        return with_hooks(observer, module, args, kwargs)
    return observer.call(observer.attribute(module, "forward"), *args, **kwargs)


def with_hooks(observer: Observer, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module, and its hooks around the call."""
    for name in ("_forward_pre_hooks", "_forward_hooks"):
        observer.elements(vars(module)[name])
        observer.elements(vars(module)[f"{name}_with_kwargs"])
    for number, hook in module._forward_pre_hooks.items():
        with_kwargs = number in module._forward_pre_hooks_with_kwargs
        found = observer.call(hook, module, args, kwargs) if with_kwargs else observer.call(hook, module, args)
        if with_kwargs and found is not None:
            args, kwargs = found
        elif found is not None:
            args = found if isinstance(found, tuple) else (found,)
    result = observer.call(observer.attribute(module, "forward"), *args, **kwargs)
    for number, hook in module._forward_hooks.items():
        given = (args, kwargs) if number in module._forward_hooks_with_kwargs else (args,)
        found = observer.call(hook, module, *given, result)
        result = result if found is None else found
    return result


def keep_parameters(observer: Observer, value: Any) -> None:
    """Require that a distribution or a transform from outside, and their parts, keep their attributes."""
    if isinstance(value, (list, tuple)):
        for each in value:
            keep_parameters(observer, each)
    if not isinstance(value, DISTRIBUTIONS) or observer.is_inside(value):
        return
    if not is_ours(type(value)):
        observer.stop("a distribution of the user is used")
    observer.elements(vars(value))
    keep_parameters(observer, [*vars(value).values()])


def distributed(observer: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a class, a function or a method of `distributions`, which reads only its arguments and its object."""
    keep_parameters(observer, (getattr(function, "__self__", None), *args, *kwargs.values()))
    base, known = torch.distributions.Distribution, torch.distributions.kl._KL_REGISTRY
    observer.guard("validation", "{0}._validate_args is {1}", base, base._validate_args)
    observer.guard("divergences", "len({0}) == {1}", known, len(known))
    return observer.trusted(function, args, kwargs)


def clipped(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function that changes the gradients of parameters. The program calls it again."""
    tracer = observer.tracer
    first, *numbers = args or (None,)
    observer.read(first)
    if first is None or not all(is_constant(each) for each in (*numbers, *kwargs.values())):
        observer.stop(f"{given.__name__}() is called in an unusual way")
        return given(*args, **kwargs)
    params = [first] if isinstance(first, Tensor) else list(first)
    change_grads(observer, params)
    tracer.__exit__()
    try:
        result = given(params, *numbers, **kwargs)
    finally:
        tracer.__enter__()
    results = [tracer.name(result._array)] if isinstance(result, Tensor) and not observer.stopped else []
    operands = [Constant(each) for each in (params, *numbers)]
    tracer.program.append(given.__name__, Changing(given, kwargs), operands, results, keeps=True)
    return result


def functional(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module with other parameters and buffers. The module's own parameters and buffers must stay the same objects."""
    bound = inspect.signature(inner(given)).bind(*args, **kwargs)
    bound.apply_defaults()
    module, dicts, positional, keywords, tie, strict = bound.arguments.values()
    positional = () if positional is None else positional if isinstance(positional, tuple) else (positional,)
    for each in [dicts] if isinstance(dicts, dict) else dicts:
        if not all(isinstance(value, Tensor) and is_plain(value) for value in each.values()):
            observer.made(each)  # by a transform
    observer.contents(dicts)
    observer.contents(positional)
    observer.contents(keywords)
    observer.tree(module)
    replacement = replaced(module, _merged(dicts), tie, strict)
    if any(holder is vars(module) or name not in holder for holder, name, _ in replacement.places):
        observer.stop("a tensor that is neither parameter nor buffer is replaced")
    with replacement:
        return observer.call(module, *positional, **(keywords or {}))


def checkpointed(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function without saving values. The passes of a program choose which values it saves."""
    if kwargs.get("use_reentrant") is not False or not kwargs.keys().isdisjoint(("context_fn", "debug")):
        observer.stop("checkpoint() is reentrant, or has unusual options")
        return given(*args, **kwargs)
    options = ("use_reentrant", "preserve_rng_state", "determinism_check", "early_stop")
    result = observer.call(*args, **{name: value for name, value in kwargs.items() if name not in options})
    # A checkpoint saves no result, so that results may be changed in place.
    return result.clone() if isinstance(result, Tensor) and result.requires_grad else result


def checkpointed_in_parts(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call functions one after another."""
    if (
        len(args) != 3
        or kwargs.get("use_reentrant") is not False
        or not kwargs.keys() <= {"use_reentrant", "preserve_rng_state"}
    ):
        observer.stop("checkpoint_sequential() is reentrant, or has unusual options")
        return given(*args, **kwargs)
    functions, _, value = args
    observer.contents(functions)
    for function in functions.children() if isinstance(functions, torch.nn.Module) else functions:
        value = observer.call(function, value)
    return value


def applied(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a function with its own derivative. The methods of the user are followed, also in the backward."""
    kind, *values = args
    observer.fix(values)
    methods: dict[str, Any] = {}
    for name in ("forward", "setup_context", "backward", "vjp", "jvp", "vmap"):
        declared = inspect.getattr_static(kind, name)
        observer.of_class(kind, name, declared)
        if declared is not vars(Function)[name]:
            methods[name] = staticmethod(following(observer, getattr(kind, name)))
    if kwargs or kind.boxed_grads_call or kind.clear_saved_tensors_on_access or type(kind) is not type(Function):
        observer.stop("a custom function has unusual options")
    if observer.stopped:
        return given(*args[1:], **kwargs)
    own: Any = type(kind.__name__, (kind,), methods)
    own._argument_count = kind._argument_count
    return own.apply(*values)


def following(observer: Observer, function: Any) -> Any:
    """Return a method of a custom function that is followed when the engine calls it."""

    @functools.wraps(function)
    def method(*args: Any) -> Any:
        if args and isinstance(args[0], FunctionCtx):
            observer.made(args[0])
        if observer.stopped or sys.getprofile() is not None:
            return observer.call(function, *args)
        tracer = observer.tracer
        tracer.rehearsing = len(tracer.program.shapes)
        sys.setprofile(observer.entered)
        try:
            return observer.call(function, *args)
        finally:
            sys.setprofile(None)
            tracer.rehearsing = None

    return method


def hooked(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Register a hook of a tensor that the function has made. The captured backward contains what it computes."""
    tensor, *hooks = args
    tracer = observer.tracer
    outside = id(tensor) in tracer.program.by_tensor or id(tensor) in tracer.aliases or tensor._edge is tensor
    if outside or len(hooks) != 1 or kwargs or observer.stopped:
        observer.stop("a hook of a tensor that the function has not made is registered")
        return given(*hooks, **kwargs)
    return observer.made(given(following(observer, *hooks)))


def noted(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of the context of a custom function."""
    return given(*args[1:], **kwargs)


def constant_result(observer: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function whose result programs contain (see `assume_constant_result`)."""
    observer.fix((*args, *kwargs.values()))
    with unseen(observer):
        result = function(*args, **kwargs)
    if not is_constant(result):
        observer.stop(f"{function.__name__} is marked as constant, but returns no constant")
    return result


def answered(observer: Observer, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function whose answer is the same in every capture."""
    return given(*args, **kwargs)


FOLLOWED: dict[Any, Callable[..., Any]] = {
    torch.nn.utils.clip_grad_norm_: clipped,
    torch.nn.utils.clip_grad_value_: clipped,
    torch.func.functional_call: functional,
    checkpoint: checkpointed,
    checkpoint_sequential: checkpointed_in_parts,
    GradScaler.scale: scaled,
    GradScaler.unscale_: unscaled,
    AveragedModel.update_parameters: averaged,
    vars(Function)["apply"].__func__: applied,
    torch.compiler.is_compiling: answered,
    torch.Tensor.register_hook: hooked,
    FunctionCtx.save_for_backward: noted,
    FunctionCtx.mark_non_differentiable: noted,
    FunctionCtx.set_materialize_grads: noted,
}
"""How the observer calls these functions."""
