"""Checkpointing: backward recomputes values instead of saving them, which trades computation for memory.

The module contains two implementations. Without reentrance (`use_reentrant=False`), the forward records as usual, but
its nodes save only placeholders. When backward first reads a saved tensor, the function runs again, and the tensors
saved in that run replace the placeholders. With reentrance, the function runs unrecorded as one node. The backward of
that node runs the function again with recording, and then runs backward through this recording.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint._runtime.uninterrupted import PutDuring, uninterrupted
from adjoint._runtime.weak_keys import WeakKeys

from .._runtime.tracebacks import end_functions_at_caller, ending_at_caller, warn
from .selective_checkpoint import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "GraphExecGroup",
    "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """The error for a recomputation that differs from the first run of a checkpointed function."""


class DefaultDeviceType:
    """The device type whose random state is stored in addition to the CPU's. Only the CPU exists."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the device type."""
        return DefaultDeviceType._default_device_type


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors on the same memory without history, with the same `requires_grad`, and other objects unchanged."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    results = []
    for value in inputs:
        if isinstance(value, Tensor):
            value, requires_grad = value.detach(), value.requires_grad
            value.requires_grad = requires_grad
        results.append(value)
    return tuple(results)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor in `inputs` requires grad."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the random states of the devices other than the CPU. No such devices exist."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set the random states of `devices`, which must be empty."""


def noop_context_fn() -> Contexts:
    """Return two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Chosen(threading.local):
    """The options that contexts of this thread set for the checkpoints inside them. None: each checkpoint decides."""

    early_stop: bool | None = None
    debug: bool | None = None


_chosen = _Chosen()


@uninterrupted
def _put_early_stop(value: bool | None) -> bool | None:
    before, _chosen.early_stop = _chosen.early_stop, value
    return before


@uninterrupted
def _put_debug(value: bool | None) -> bool | None:
    before, _chosen.debug = _chosen.debug, value
    return before


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Set whether recomputations inside this context stop as soon as backward has all values (the default)."""
    return PutDuring[bool | None](_put_early_stop, enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Set whether errors of checkpointed functions are explained. None leaves the choice to `checkpoint(debug=...)`."""
    return PutDuring(_put_debug, enabled)


class GraphExecGroup:
    """A context manager in which backwards share recomputed values. Each value is used by one backward.

    >>> import adjoint as torch
    >>> from adjoint.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> a, b = checkpoint(lambda x: (x.sin(), x.exp()), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     a.sum().backward()
    ...     b.sum().backward()
    """

    _local = threading.local()

    def __enter__(self) -> GraphExecGroup:
        if self._get_current_group() is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {self._get_current_group()}"
            )
        self._local.group = self
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        self._local.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return getattr(cls._local, "group", None)


_PASS_EXPLICITLY = (
    "{name}: the use_reentrant parameter should be passed explicitly. {version} use_reentrant=False is recommended, but if you "
    "need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)


@ending_at_caller
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)` without saving the values that its backward needs. Backward recomputes them.

    Args:
        use_reentrant: the implementation (see the module). False is recommended. It supports keyword arguments, nested
            structures and `autograd.grad`, and needs no input that requires grad.
        preserve_rng_state: whether the recomputation uses the random numbers of the first run. Default True.
        context_fn: a function that returns two contexts, one for the first run and one for the recomputation.
        determinism_check: "default" compares shapes and dtypes of the tensors saved in both runs, and "none" does not.
        debug: whether an error lists the tensors saved in both runs, with their lines.
        early_stop: whether to stop the recomputation as soon as backward has all values.

    Raises:
        CheckpointError: during backward, if the recomputation saves other tensors than the first run.

    >>> import adjoint as torch
    >>> from adjoint.utils.checkpoint import checkpoint
    >>> x = torch.tensor([0.0, 1.0], requires_grad=True)
    >>> checkpoint(lambda x: x.exp().exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([ 2.7183, 41.1936])
    """
    if use_reentrant is None:
        version = "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception."
        warn(_PASS_EXPLICITLY.format(name="torch.utils.checkpoint", version=version))
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not torch.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    frame = Frame(
        function,
        kwargs,
        args,
        RandomState(preserve),
        recompute_context,
        early_stop if _chosen.early_stop is None else _chosen.early_stop,
        determinism_check == "default",
        debug if _chosen.debug is None else _chosen.debug,
    )
    with frame.saving(), forward_context:
        result = function(*args, **kwargs)
    frame.finished = True
    return result


@ending_at_caller
def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Apply `functions`, a `Sequential` or a list, to `input` in `segments`, and checkpoint all except the last.

    >>> import adjoint as torch
    >>> layers = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(8)])
    >>> x = torch.ones(2, 4)
    >>> y = torch.utils.checkpoint.checkpoint_sequential(layers, 4, x, use_reentrant=False)
    >>> bool((y == layers(x)).all())
    True
    """
    if use_reentrant is None:
        version = "In version 2.9 we will raise an exception if use_reentrant is not passed."
        name = "torch.utils.checkpoint.checkpoint_sequential"
        warn(_PASS_EXPLICITLY.format(name=name, version=version))
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, torch.nn.Sequential):
        functions = list(functions.children())

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for function in functions[start:end]:
                value = function(value)
            return value

        return run

    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(segment(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return segment(end, len(functions))(input)


class RandomState:
    """The state of the random generator at the first run, for the recomputation."""

    def __init__(self, kept: bool) -> None:
        self.state = torch.get_rng_state() if kept else None

    def fork(self) -> contextlib.AbstractContextManager[None]:
        """A context manager that restores the current state of the generator at its end."""
        return torch.random.fork_rng(enabled=self.state is not None)

    def again(self) -> None:
        """Restore the state of the first run."""
        if self.state is not None:
            torch.set_rng_state(self.state)


# --- with reentrance ------------------------------------------------------------------------------------------


class CheckpointFunction(torch.autograd.Function):
    """A checkpointed function as one node."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function unrecorded, like the forward of every custom function, but with forward mode."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = RandomState(preserve_rng_state)
        ctx.inputs = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.tensor_indices = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*(args[index] for index in ctx.tensor_indices))
        with torch.autograd.forward_ad._set_fwd_grad_enabled(True):
            ctx.surroundings = _current_conditions()
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function again with recording, and run backward through this recording."""
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[index] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.random.fork():
            ctx.random.again()
            outputs = ctx.surroundings.run_again(ctx.run_function, *detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(value.grad if isinstance(value, Tensor) else None for value in detached))


# --- without reentrance ---------------------------------------------------------------------------------------


class Holder:
    """A placeholder in the graph for a tensor of the first run that is not saved."""

    __slots__ = ("__weakref__",)


class _StopRecomputationError(Exception):
    """An exception that ends a recomputation when all required values are available."""


class Inputs(torch.autograd.Function):
    """A node that saves the inputs of a function, so that hooks of an outer checkpoint receive them."""

    @staticmethod
    def forward(*tensors: Tensor) -> Tensor:
        """Return an empty tensor."""
        return torch.empty(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save all inputs except the first. The first input only ensures that the node requires grad."""
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Raise an error, because the output is not used."""
        raise AssertionError("Did not expect to backward on this graph")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        """Return None, because the output has no tangent."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, None]:
        """Return an empty batched tensor. The saved tensors have the batch dimension."""
        return torch.empty(0), None


_UNPACKED_ONCE = "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
_ASK_ONCE = (
    "If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details "
    "on your use case."
)


class Frame:
    """One call of a checkpointed function: its placeholders, and the means to run it again.

    `finished`: the call has returned. `recomputed_within`: whether a backward inside the function has recomputed the
    whole function. The numbers of saved tensors and of placeholders then differ.
    """

    finished = recomputed_within = False

    def __init__(
        self,
        function: Callable[..., Any],
        kwargs: dict[str, Any],
        args: tuple[Any, ...],
        random: RandomState,
        context: AbstractContextManager[Any],
        early_stop: bool,
        compare: bool,
        debug: bool,
    ) -> None:
        self.function, self.kwargs, self.random, self.context = function, kwargs, random, context
        self.early_stop, self.compare, self.debug = early_stop, compare, debug
        self.surroundings = _current_conditions()
        # A node would save tensors of a transform without the transform's data.
        saved = () if self.surroundings.wraps(args) else args
        self.positions = [index for index, arg in enumerate(saved) if isinstance(arg, Tensor)]
        self.others = [None if index in self.positions else arg for index, arg in enumerate(args)]
        dummy = torch.empty(0, requires_grad=True)
        self.inputs = Inputs.apply(dummy, *(args[index] for index in self.positions)).grad_fn
        self.holders: list[weakref.ref[Holder]] = []
        self.metadata: list[dict[str, Any]] = []
        self.saved_at: list[str] = []
        self.values: dict[int, WeakKeys[Holder, Tensor]] = {}
        self.of_group: WeakKeys[GraphExecGroup, WeakKeys[Holder, Tensor]] = WeakKeys()

    def saving(self) -> AbstractContextManager[Any]:
        """A context with the hooks of the first run."""
        return torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)

    def pack(self, tensor: Tensor) -> Holder:
        """Store only the properties of `tensor` in a placeholder."""
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        self.metadata.append(_metadata(tensor))
        if self.debug:
            self.saved_at.append(_user_line())
        return holder

    def unpack(self, holder: Holder) -> Tensor:
        """Return the value of the placeholder `holder`. Recompute the function first, unless this backward has done so."""
        group = GraphExecGroup._get_current_group()
        if group is not None:
            return self.unpack_in(group, holder)
        task = torch.autograd.graph.current_task_id()
        values = self.values.get(task)
        if values is None or task < 0:
            values = self.recompute()
            if task >= 0:
                # If this backward retains the graph, another backward recomputes again.
                self.values = {task: values}
        value = values.pop(holder, None)
        if value is None:
            raise CheckpointError(f"{_UNPACKED_ONCE}{_ASK_ONCE}")
        return value

    def unpack_in(self, group: GraphExecGroup, holder: Holder) -> Tensor:
        """Return the value of `holder` for the backwards of `group`. They recompute once, and unpack every value once."""
        if group not in self.of_group:
            self.of_group[group] = self.recompute()
        value = self.of_group[group].pop(holder, None)
        if value is None:
            raise CheckpointError(
                f"{_UNPACKED_ONCE}Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
                f"{_ASK_ONCE}"
            )
        return value

    def recompute(self) -> WeakKeys[Holder, Tensor]:
        """Run the function again, and assign its saved tensors to the remaining placeholders."""
        run = Recomputation(self)
        args = list(self.others)
        for index, tensor in zip(self.positions, self.inputs.saved_tensors, strict=True):
            args[index] = tensor

        def again() -> None:
            with contextlib.suppress(_StopRecomputationError), run.saving(), self.context:
                self.function(*args, **self.kwargs)

        with self.random.fork():
            self.random.again()
            self.surroundings.run_again(again)
        self.check(run)
        return run.values

    def check(self, run: Recomputation) -> None:
        """Raise an error if the recomputation saved other tensors than the first run."""
        if self.recomputed_within:
            return
        count = len(run.metadata)
        if count != len(self.holders):
            raise self.error(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {count}.",
                run,
            )
        if not self.compare:
            return
        differing = [
            f"tensor at position {index}:\nsaved metadata: {saved}\nrecomputed metadata: {again}\n"
            for index, (saved, again) in enumerate(zip(self.metadata, run.metadata, strict=True))
            if saved != again
        ]
        if differing:
            raise self.error(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                f"the forward pass.\n{''.join(differing)}.",
                run,
            )

    def error(self, message: str, run: Recomputation) -> CheckpointError:
        """Return the error. In debug mode, it lists the tensors that both runs saved, and their lines."""
        if not self.debug:
            return CheckpointError(
                f"{message}\n\nTip: To see a more detailed error message, either pass `debug=True` to\n`torch.utils.checkpoint."
                "checkpoint(...)` or wrap the code block\nwith `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` "
                "to\nenable checkpoint-debug mode globally."
            )
        return CheckpointError(
            " An error happened while unpacking tensors; dumping logs of latest computation\nbecause you passed `debug=True` to "
            "`torch.utils.checkpoint.checkpoint()`.\nYou are seeing this error because you passed `debug=True` to checkpoint.\n\n"
            f"{message}\n\nThe original forward saved\n{_listing(self.metadata, self.saved_at)}\nthe recomputation\n"
            + _listing(run.metadata, run.saved_at)
        )


class Recomputation:
    """One run of a checkpointed function during backward."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.values: WeakKeys[Holder, Tensor] = WeakKeys()
        self.metadata: list[dict[str, Any]] = []
        self.saved_at: list[str] = []

    def saving(self) -> AbstractContextManager[Any]:
        """A context with the hooks of this run. They keep saved tensors, because the run itself may be differentiated."""
        return torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)

    def pack(self, tensor: Tensor) -> Tensor:
        """Assign `tensor` to the next placeholder, and stop after the last one."""
        frame, index = self.frame, len(self.metadata)
        self.metadata.append(_metadata(tensor))
        if frame.debug:
            self.saved_at.append(_user_line())
        if index >= len(frame.holders):
            if not frame.finished:
                frame.recomputed_within = True
                return tensor.detach()
            raise frame.error(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
                "pass.",
                self,
            )
        value = tensor.detach() if tensor.requires_grad else tensor
        if (holder := frame.holders[index]()) is not None:
            self.values[holder] = value
        if frame.early_stop and index + 1 == len(frame.holders):
            raise _StopRecomputationError
        return value


def _current_conditions() -> Any:
    """Return the conditions under which this code runs, without the hooks of enclosing checkpoints."""
    found, ours = torch.autograd.graph.surroundings(), (Frame, Recomputation)
    hooks = found.modes["saved_tensor_hooks"]
    found.modes["saved_tensor_hooks"] = tuple(
        each for each in hooks if not isinstance(getattr(each[0], "__self__", 0), ours)
    )
    return found


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_PACKAGE = str(Path(torch.__file__).parent)


def _user_line() -> str:
    """Return the innermost line of user code that is running."""
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith((_PACKAGE, "<adjoint")):
            return f'File "{frame.filename}", line {frame.lineno}, in {frame.name}\n        {frame.line}'
    return "an unknown line"


def _listing(metadata: list[dict[str, Any]], lines: list[str]) -> str:
    items = [
        f"  {index}: {list(each['shape'])} {each['dtype']} at {line}"
        for index, (each, line) in enumerate(zip(metadata, lines, strict=True))
    ]
    return "\n".join(items) if items else "  nothing"


end_functions_at_caller(globals(), but=("noop_context_fn",))
