"""A profiler of operators. It records counts, times, inputs and nesting, in forward and backward.

It costs nothing while it is off, and needs only the standard library.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Self, TypeVar

from .._runtime.tracebacks import warn
from .._runtime.uninterrupted import uninterrupted
from ..aten import profiled_functions
from ..codegen.observed_kernels import KERNELS
from ..tape import modes
from .communication import CommunicationInfo, length_within
from .events import EventList, FunctionEvent, FunctionEventAvg
from .recorder import USER, WAIT, Event, Recorder

__all__ = ["EventList", "FunctionEvent", "ProfilerActivity", "profile", "record_function"]

F = TypeVar("F", bound=Callable[..., Any])


_STEP = "ProfilerStep*"
"""The common name of all steps of a training loop. The name of a single step has a number in place of the asterisk."""


class ProfilerActivity(enum.Enum):
    """The activities that can be profiled. Only the CPU is supported."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5


class profile:
    """A context manager that records the operators of this thread, and the backwards that the thread starts.

    Args:
        enabled: if False, nothing is recorded.
        record_shapes: whether to also record the shapes of inputs.
        profile_memory: whether to also record the bytes of results.
        with_stack: whether to also record the user's stack frames.
        with_flops: whether to count the floating-point operations of matrix products, 2d convolutions, sums and
            products in forward. `torch.utils.flop_counter` counts more operators, and counts backward.
        use_cuda, use_device: another device to profile. Only the CPU is available, so these options give a warning.
        with_modules, use_kineto, use_cpu, experimental_config: accepted for compatibility with PyTorch.
        acc_events, custom_trace_id_callback, post_processing_timeout_s: accepted for compatibility with PyTorch.

    Raises:
        AssertionError: if `use_cpu` is False, because the CPU is the only device.

    >>> import adjoint as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     x.exp().sum().backward()
    >>> [event.name for event in prof.function_events if event.name.startswith("aten")]
    ['aten::exp', 'aten::sum']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if enabled and not use_cpu:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if use_cuda:
            warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
            )
            use_device = "cuda"
        if enabled and use_device == "cuda":
            warn("CUDA is not available, disabling CUDA profiling")
        elif enabled and use_device is not None:
            warn(f"The {use_device} is not a valid device option.")
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.entered = False
        self._events: EventList | None = None

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if modes.STATE.recorder is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        self.recorder = Recorder(self.record_shapes or self.with_flops, self.profile_memory, self.with_stack)
        try:
            profiled_functions.watch(self)
            KERNELS.observe(self.kernel)
            self.origin = perf_counter_ns()
            self.entered = True
            modes.put({"recorder": self.recorder})
        except BaseException:
            self._stop_watching()
            raise
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        if self.enabled and self.entered:  # an interrupt may have arrived before
            modes.put({"recorder": None})
            try:
                self._stop_watching()
            except BaseException:
                self._stop_watching()
                raise
            finally:
                self.recorder.close()

    def _stop_watching(self) -> None:
        KERNELS.stop_observing(self.kernel)
        profiled_functions.stop_watching(self)

    @contextmanager
    def kernel(self, name: str) -> Iterator[None]:
        """Record one call of a compiled kernel as an event, if the profile covers this thread."""
        if modes.STATE.recorder is not self.recorder:
            yield
            return
        event = self.recorder.begin(f"compiled::{name}")
        try:
            yield
        finally:
            self.recorder.finish(event)

    @property
    def function_events(self) -> EventList:
        """Return all events in the order in which they began. They are available after the profile has ended."""
        if not self.entered or modes.STATE.recorder is self.recorder:
            return EventList()
        if self._events is None:
            self._events = EventList(
                profile_memory=self.profile_memory, with_stack=self.with_stack, with_flops=self.with_flops
            )
            by_record: dict[Event, FunctionEvent] = {}
            for number, record in enumerate(self.recorder.events, start=1):
                event = by_record[record] = self._event(number, record)
                if record.parent is not None:
                    by_record[record.parent].append_cpu_child(event)
                self._events.append(event)
            for event in reversed(self._events):  # an event precedes the events that it encloses
                if event.cpu_parent is not None:
                    event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
        return self._events

    def _event(self, number: int, record: Event) -> FunctionEvent:
        return FunctionEvent(
            number,
            _STEP if record.scope == USER and record.name.startswith(_STEP[:-1] + "#") else record.name,
            record.thread,
            (record.start - self.origin) / 1000,
            (record.end - self.origin) / 1000,
            overload_name="",
            fwd_thread=record.forward_thread,
            input_shapes=record.shapes if self.record_shapes else [],
            flops=_operations(record) if self.with_flops else None,
            stack=record.stack,
            scope=record.scope,
            cpu_memory_usage=record.memory,
            sequence_nr=record.sequence,
            concrete_inputs=[],
            trace_name=record.name,
            is_user_annotation=record.scope == USER,
            is_async=record.communication is not None,
            communication=self._communication(record),
        )

    def _communication(self, record: Event) -> CommunicationInfo | None:
        """Return the data of a call between processes, with times in the units of events."""
        call = record.communication
        if call is None:
            return None
        spans = [(event.start, event.end) for event in self.recorder.events if event.name.endswith(WAIT)]
        waited = length_within(spans, record.start, record.end)
        return CommunicationInfo(
            call.name, call.group, call.ranks, call.number, call.nbytes, call.label, bool(call.ended), waited / 1000
        )

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return one entry for each name, with the number of calls and the total time."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, *args: Any, **keywords: Any) -> str:
        """Return all events as a table; see `EventList.table`."""
        return self.function_events.table(*args, **keywords)

    def total_average(self) -> FunctionEventAvg:
        """Return all events in one entry."""
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Write a trace for chrome://tracing and Perfetto; see `EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path, metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks in the format of flame graph tools; see `EventList.export_stacks`.

        Raises:
            AssertionError: if the profile was created without `with_stack`.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events in microseconds."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return str(self.function_events) if self.entered else "<unfinished torch.autograd.profile>"

    __repr__ = __str__


def _operations(record: Event) -> int | None:
    """Return the number of floating-point operations of an operator from its shapes, or None for an operator that is not counted.

    A multiplication and an addition in a matrix product or a convolution count as two operations.
    """
    name, shapes, result = record.name.removeprefix("aten::"), record.shapes, record.result_shape
    if name in ("add", "mul"):
        return math.prod(shapes[0])
    if name in ("mm", "bmm"):
        return 2 * math.prod(shapes[0]) * shapes[1][-1]
    if name in ("addmm", "baddbmm"):
        return 2 * math.prod(shapes[1]) * shapes[2][-1]
    if name == "conv2d":  # each position of the result is multiplied by the weight of its channel
        return 2 * math.prod(result) * math.prod(shapes[1][1:])
    return None


class record_function:
    """A context manager and decorator that marks a named section of the program in profiles.

    >>> import adjoint as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("preparation"):
    ...         x = torch.ones(3) * 2
    >>> [event.name for event in prof.function_events]
    ['preparation', 'aten::ones', 'aten::mul']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True

    def __enter__(self) -> Self:
        self.recorder = modes.STATE.recorder
        self.record = None if self.recorder is None else self.recorder.begin(self.name, USER)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.run_callbacks_on_exit:
            self._finish()

    def _finish(self) -> None:
        if self.record is not None:
            self.recorder.finish(self.record)

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """End the section when the future `fut` has a value, not at the end of the `with` block.

        Return a future of that value.

        Raises:
            RuntimeError: if it is called a second time.
        """
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False

        def end(done: Any) -> Any:
            self._finish()
            return done.value()

        return fut.then(end)

    def __call__(self, function: F) -> F:
        """Decorate `function`. Each call is a section."""

        @functools.wraps(function)
        def decorated(*args: Any, **keywords: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **keywords)

        return decorated  # type: ignore[return-value]


def _record_function_enter(name: str, args: str | None = None) -> record_function:
    """Begin a section, like `torch.ops.profiler._record_function_enter`. The returned object ends it."""
    return record_function(name, args).__enter__()


def _record_function_exit(handle: record_function) -> None:
    """End a section that `_record_function_enter` has begun."""
    handle.__exit__(None, None, None)
