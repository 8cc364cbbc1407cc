"""Profiles of selected steps of a training loop, built on `autograd.profiler`."""

from __future__ import annotations

import enum
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from .._runtime.platform import socket
from .._runtime.tracebacks import warn
from .._runtime.uninterrupted import uninterrupted
from . import itt as itt
from . import recording
from .events import DeviceType, EventList
from .recording import ProfilerActivity, record_function

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """The action of a profile during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule for `profile`. After `skip_first` steps it repeats three phases: wait, warm up, record.

    Args:
        wait, warmup, active: the number of steps of each phase.
        repeat: the number of repetitions. 0 repeats until the end.
        skip_first_wait: whether the first repetition omits the waiting phase. 0 means no.

    Raises:
        AssertionError: if a number is negative, or if `active` is 0.

    >>> import adjoint as torch
    >>> steps = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [steps(number).name for number in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step >= 0 and skip_first_wait:
            step += wait
        if step < 0 or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a handler for `on_trace_ready` of `profile`.

    It writes each trace to a file in `dir_name`, where TensorBoard finds it.
    """

    def write(profiled: profile) -> None:
        Path(dir_name).mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".gz" if use_gzip else ""
        name = f"{worker}.{time.time_ns()}.pt.trace.json{ending}"
        profiled.export_chrome_trace(str(Path(dir_name, name)))

    return write


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be profiled: the CPU."""
    return {ProfilerActivity.CPU}


class profile:
    """A context manager that profiles this thread. With a `schedule`, it profiles only the selected steps.

    Args:
        activities: the activities to profile. Only the CPU is available.
        schedule: a function from the number of a step to a `ProfilerAction`. A call of `step()` ends a step. By default
            everything is recorded.
        on_trace_ready: a function that is called with this object after a recording.
        record_shapes, profile_memory, with_stack, with_flops: as in `autograd.profiler.profile`.
        with_modules, experimental_config, execution_trace_observer: accepted for compatibility with PyTorch.
        custom_trace_id_callback, post_processing_timeout_s: accepted for compatibility with PyTorch.
        acc_events: whether to keep the events of earlier cycles of the schedule.

    Raises:
        AssertionError: if `activities` is empty.

    >>> import adjoint as torch
    >>> seen = []
    >>> steps = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
    >>> ready = lambda prof: seen.extend(event.name for event in prof.events())
    >>> with torch.profiler.profile(schedule=steps, on_trace_ready=ready) as prof:
    ...     for _ in range(5):
    ...         x = torch.ones(3).exp()
    ...         prof.step()
    >>> seen
    ['ProfilerStep*', 'aten::ones', 'aten::exp']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        if not any(isinstance(activity, ProfilerActivity) for activity in self.activities):
            raise AssertionError("No valid profiler activities found")
        if use_cuda or ProfilerActivity.CUDA in self.activities:
            warn("CUDA is not available, disabling CUDA profiling")
        if ProfilerActivity.CPU not in self.activities:
            raise AssertionError("No activities specified for the profiler")
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops = with_flops
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = ProfilerAction.RECORD if schedule is None else schedule(0)
        self.profiler: recording.profile | None = None
        self._section: record_function | None = None
        self._earlier: list[Any] = []
        self._metadata: dict[str, Any] = {}
        self._running = False

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            if self._running:
                self._stop_recording()
            raise
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        try:
            self.stop()
        finally:
            if self._running:  # an interrupt arrived before the end
                self._stop_recording()

    def start(self) -> None:
        """Begin the first step."""
        if self.current_action in _RECORDING:
            self._begin()
        self._begin_step()

    def stop(self) -> None:
        """End the last step and the profile."""
        try:
            self._end_step()
        finally:
            if self._running:
                self._end()

    def step(self) -> None:
        """End a step. The schedule determines the action during the next step."""
        if self.schedule is None:
            self.step_num += 1
            return
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if self._running and (before is ProfilerAction.RECORD_AND_SAVE or self.current_action not in _RECORDING):
            self._end()
        if self.current_action in _RECORDING and not self._running:
            self._begin()
        self._begin_step()

    def _begin(self) -> None:
        if self.acc_events and self.profiler is not None:
            self._earlier += self.profiler.function_events
        profiler = recording.profile(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
        )
        self.profiler, self._running = profiler, True  # before it runs, so that an interrupt finds it
        profiler.__enter__()

    def _end(self) -> None:
        self._stop_recording()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    @uninterrupted
    def _stop_recording(self) -> None:
        self._initialized("stopping trace").__exit__(None, None, None)
        self._running = False

    def _begin_step(self) -> None:
        if self.schedule is not None and self._running:
            self._section = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self) -> None:
        if self._section is not None:
            self._section.__exit__(None, None, None)
            self._section = None

    # --- recorded data ------------------------------------------------------------------------------------------

    def _initialized(self, before: str) -> recording.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {before}")
        return self.profiler

    def events(self) -> EventList:
        """Return all recorded events in the order in which they began."""
        events: EventList = self._initialized("accessing events").function_events
        if not self._earlier:
            return events
        return EventList([*self._earlier, *events], profile_memory=self.profile_memory, with_stack=self.with_stack)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return one entry for each name, with the number of calls and the total time."""
        self._initialized("getting key averages")
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace for chrome://tracing and Perfetto. It is compressed if the name of the file ends in `.gz`."""
        self._initialized("exporting chrome trace")
        self.events().export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks for flame graph tools. The profile must be created with `with_stack`."""
        self._initialized("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Write `key` and the string `value` to the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write `key` and the value of the JSON text `value` to the trace."""
        self._metadata[key] = json.loads(value)


def kineto_available() -> bool:
    """Return whether PyTorch's library for device traces exists.

    The answer is always False. Profiles of operators do not need it.
    """
    return False
