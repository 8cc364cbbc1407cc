"""The contents of profiles: events, their averages, and tables and traces of events."""

from __future__ import annotations

import enum
import gzip
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from .communication import CommunicationInfo
from .recorder import BACKWARD, MEMORY

__all__ = ["DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval"]

MEMORY_EVENT_NAME = MEMORY


class DeviceType(enum.Enum):
    """The device of an event. It is always the CPU."""

    CPU = 0

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class Interval:
    """A time interval, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Return the length of the interval."""
        return self.end - self.start


class FormattedTimesMixin:
    """The times of an event as text in suitable units, in total and per call."""

    cpu_time_total: float
    self_cpu_time_total: float
    count: int
    device_time = device_time_total = self_device_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    device_type = DeviceType.CPU
    use_device: str | None = None
    overload_name: str | None = None
    communicates = False
    communicated_bytes = 0
    communication_wait = 0.0

    @property
    def overlap(self) -> float:
        """For a call between processes, the part of its time in which the program did not wait for any call."""
        return 1 - self.communication_wait / self.cpu_time_total if self.cpu_time_total else 0.0

    @property
    def cpu_time(self) -> float:
        """The time of one call, in microseconds."""
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count

    @property
    def cpu_time_str(self) -> str:
        """The time of one call, as text."""
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The time of all calls, as text."""
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The time of all calls, without the time of enclosed events, as text."""
        return _format_time(self.self_cpu_time_total)

    @property
    def device_time_str(self) -> str:
        """The time of one call on another device. It is always empty, because only the CPU is supported."""
        return _format_time(self.device_time)

    device_time_total_str = self_device_time_total_str = device_time_str


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, one run of a node in backward, or one section of the user's program.

    `time_range` is in microseconds from the start of the profile. `sequence_nr` is the same number for an operator and
    for the node that the operator has recorded. The memory is the number of bytes of the results, minus the memory that
    was released during the event. Parameters that have no meaning here are accepted for compatibility with PyTorch.

    >>> from adjoint.autograd.profiler_util import EventList, FunctionEvent
    >>> outer = FunctionEvent(1, "outer", thread=0, start_us=0, end_us=10)
    >>> inner = FunctionEvent(2, "inner", thread=0, start_us=2, end_us=5)
    >>> outer.append_cpu_child(inner)
    >>> outer.self_cpu_time_total, outer.cpu_time_total
    (7, 10)
    """

    count = 1
    kernels: tuple[Any, ...] = ()

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: Any = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: Any = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
        communication: CommunicationInfo | None = None,
    ) -> None:
        self.communication = communication
        if communication is not None:
            self.communicates = True
            self.communicated_bytes, self.communication_wait = communication.nbytes, communication.waited
        self.id, self.node_id = id, node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.input_shapes, self.concrete_inputs, self.kwinputs = input_shapes, concrete_inputs, kwinputs
        self.stack = stack
        self.scope = scope
        self.use_device, self.device_type, self.device_index = use_device, device_type, device_index
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.is_user_annotation = is_user_annotation
        self.sequence_nr = sequence_nr
        self.flops = flops
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def key(self) -> str:
        """The key by which averages are grouped."""
        return self.name

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Record that `child` ran inside this event."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """The time in microseconds."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """The time in microseconds, without the time of enclosed events."""
        return 0 if self.is_async else self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The memory in bytes, without the memory of enclosed events."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} "
            f"{device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The average of all events with one name (optionally also with the same shapes or the same line)."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: Any = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] | None = None
        self.flops: int | None = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.node_id = -1

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or another average with the same key, to this average."""
        if self.key is None:
            self.key = other.key
            self.input_shapes, self.stack, self.scope = other.input_shapes, other.stack, other.scope
            self.cpu_parent, self.is_user_annotation = other.cpu_parent, other.is_user_annotation
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.flops = (self.flops or 0) + (other.flops or 0)
        self.communicates |= other.communicates
        self.communicated_bytes += other.communicated_bytes
        self.communication_wait += other.communication_wait
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_cuda_time={self.self_device_time_total_str} cuda_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"cuda_memory_usage={self.device_memory_usage}>"
        )


_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


class EventList(list[Any]):
    """Events, or averages of events."""

    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        with_stack: bool = False,
    ) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory
        self._with_stack = with_stack
        self._with_flops = with_flops

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def _populate_cpu_children(self) -> None:
        """Derive the nesting of the events of each thread from their times."""
        by_thread: dict[int, list[FunctionEvent]] = defaultdict(list)
        for event in self:
            if not event.is_async:
                by_thread[event.thread].append(event)
        for events in by_thread.values():
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda each: (each.time_range.start, -each.time_range.end)):
                times = event.time_range
                while around and (times.start >= around[-1].time_range.end or times.end > around[-1].time_range.end):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                around.append(event)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return one entry per name. Optionally, return one entry per name and input shapes, or one entry per name and line."""
        found: dict[Any, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = (
                event.key,
                event.is_user_annotation,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple((event.stack or ())[:group_by_stack_n]),
            )
            found[key].add(event)
        averages = EventList(
            found.values(),
            profile_memory=self._profile_memory,
            with_stack=self._with_stack,
            with_flops=self._with_flops,
        )
        for average in averages:
            average.stack = (average.stack or [])[:group_by_stack_n]
            average.input_shapes = average.input_shapes if group_by_input_shapes else ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Sum all entries into one entry with the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return the list as text, with a row for each entry and the sum of the times.

        Args:
            sort_by: an attribute of the entries, such as "self_cpu_time_total", "count", "cpu_memory_usage". The
                largest comes first.
            row_limit: the number of rows, or -1 for all rows.
            top_level_events_only: whether to omit enclosed events.
            time_unit: "us", "ms" or "s" for all times. By default, each time has a suitable unit.
        """
        if not self:
            return ""
        rows = (
            sorted(self, key=lambda event: getattr(event, sort_by), reverse=True) if sort_by is not None else list(self)
        )
        if top_level_events_only:
            rows = [event for event in rows if event.cpu_parent is None]
        rows = rows if row_limit < 0 else rows[:row_limit]
        columns = self._columns(rows, max_name_column_width, max_shapes_column_width, max_src_column_width, time_unit)
        line = "".join("-" * width + "  " for _, width, _ in columns)
        text = []
        if header is not None:
            text += ["=" * len(line.rstrip()), header]
        if top_level_events_only:
            text += ["=" * len(line.rstrip()), "This report only display top-level ops statistics"]
        text += [line, "".join(f"{title:>{width}}  " for title, width, _ in columns), line]
        text += [
            "".join(f"{_shortened(show(event), width):>{width}}  " for _, width, show in columns) for event in rows
        ]
        text += [line, f"Self CPU time total: {_format_time(self.self_cpu_time_total, time_unit)}", ""]
        return "\n".join(text)

    def _columns(
        self, rows: list[Any], name_width: int, shapes_width: int, source_width: int, unit: str | None
    ) -> list[Any]:
        """Return the title and the width of each column, and a function that returns the text of an event."""
        total = self.self_cpu_time_total

        def share(time: float) -> str:
            return _format_time_share(time, total)

        columns: list[Any] = [
            ("Name", min(max(len(event.key) for event in self) + 4, name_width), lambda event: event.key),
            ("Self CPU %", 12, lambda event: share(event.self_cpu_time_total)),
            ("Self CPU", 12, lambda event: _format_time(event.self_cpu_time_total, unit)),
            ("CPU total %", 12, lambda event: share(event.cpu_time_total)),
            ("CPU total", 12, lambda event: _format_time(event.cpu_time_total, unit)),
            ("CPU time avg", 12, lambda event: _format_time(event.cpu_time, unit)),
        ]
        if self._profile_memory:
            columns += [
                ("CPU Mem", 12, lambda event: _format_memory(event.cpu_memory_usage)),
                ("Self CPU Mem", 12, lambda event: _format_memory(event.self_cpu_memory_usage)),
            ]
        columns.append(("# of Calls", 12, lambda event: str(event.count)))
        if any(event.communicates for event in self):
            columns += [
                (
                    "Comm bytes",
                    12,
                    lambda event: _format_memory(event.communicated_bytes) if event.communicates else "",
                ),
                (
                    "Comm wait",
                    12,
                    lambda event: _format_time(event.communication_wait, unit) if event.communicates else "",
                ),
                ("Overlap", 12, lambda event: f"{event.overlap:.0%}" if event.communicates else ""),
            ]
        shapes = [str(event.input_shapes) for event in self]
        if any(event.input_shapes for event in self):
            columns.append(
                ("Input Shapes", min(max(map(len, shapes)) + 4, shapes_width), lambda event: str(event.input_shapes))
            )
        if self._with_stack and any(event.stack for event in self):
            width = min(max(len(_source(event)) for event in self) + 4, source_width)
            columns.append(("Source Location", width, _source))
        counted = [event.flops for event in self if event.flops]
        if self._with_flops and counted:
            thousands = min(int(math.log10(min(counted)) / 3), len(_FLOPS) - 1)
            columns.append(
                (
                    f"Total {_FLOPS[thousands]}",
                    12,
                    lambda event: f"{event.flops / 1000**thousands:.3f}" if event.flops else "--",
                )
            )
        return columns

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Write the events to `path` as JSON for chrome://tracing and Perfetto. Arrows lead from forward to backward.

        Args:
            path: the file. It is compressed if its name ends in `.gz`.
            metadata: additional values to write.
        """
        trace = {"schemaVersion": 1, **(metadata or {}), "displayTimeUnit": "ms", "traceEvents": trace_of(self)}
        text = json.dumps(trace).encode()
        Path(path).write_bytes(gzip.compress(text) if str(path).endswith(".gz") else text)

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics of `export_stacks`."""
        return list(_STACK_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the stacks to `path`, in the format of flame graph tools. The profile must be created with `with_stack`.

        Each event gives one line. The line contains the frames, starting with the outermost, and `metric`
        (`"self_cpu_time_total"`) in whole microseconds.

        Raises:
            ValueError: if the metric is not supported.
        """
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {list(_STACK_METRICS)}")
        measured = "self_cpu_time_total" if metric == "self_cpu_time_total" else "self_device_time_total"
        with Path(path).open("w", encoding="utf-8") as file:
            for event in self:
                time = int(getattr(event, measured))
                if event.stack and time > 0:
                    frames = ";".join(frame.translate(_IN_STACKS) for frame in reversed(event.stack))
                    file.write(f"{frames} {time}\n")


_STACK_METRICS = tuple(f"self_{device}_time_total" for device in ("cpu", "cuda", "xpu", "privateuse1"))
_IN_STACKS = str.maketrans(" ;\t\n", "____")


def trace_of(events: list[FunctionEvent]) -> list[dict[str, Any]]:
    """Return the events in Chrome's format, with an arrow from each operator to the node that it recorded."""
    trace = []
    started = {}
    for event in events:
        place = {"pid": "CPU functions", "tid": event.thread, "ts": event.time_range.start}
        arguments: dict[str, Any] = {"External id": event.id}
        if event.sequence_nr >= 0:
            arguments["Sequence number"] = event.sequence_nr
        if event.name == MEMORY_EVENT_NAME:
            arguments["Bytes"] = event.cpu_memory_usage
            trace.append(
                {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": event.name, "args": arguments, **place}
            )
            continue
        if event.input_shapes:
            arguments["Input Dims"] = event.input_shapes
        if event.stack:
            arguments["Call stack"] = ";".join(event.stack)
        if event.communication is not None:  # on a separate track below the threads
            arguments |= event.communication.arguments()
            place["tid"] = f"communication, group {event.communication.group}"
        category = "user_annotation" if event.is_user_annotation else "cpu_op"
        trace.append(
            {
                "ph": "X",
                "cat": category,
                "name": event.trace_name,
                "dur": event.cpu_time_total,
                "args": arguments,
                **place,
            }
        )
        arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, **place}
        if event.sequence_nr < 0 or event.name.startswith("autograd::engine"):
            continue
        if event.scope != BACKWARD:
            started[event.sequence_nr] = {"ph": "s", **arrow}
        elif event.sequence_nr in started:
            trace += [started.pop(event.sequence_nr), {"ph": "f", "bp": "e", **arrow}]
    return trace


def _source(event: Any) -> str:
    return event.stack[0].splitlines()[0] if event.stack else ""


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _format_time(microseconds: float, unit: str | None = None) -> str:
    """Return a time as text, in seconds, milliseconds or microseconds."""
    if unit == "s" or (unit is None and microseconds >= 1e6):
        return f"{microseconds / 1e6:.3f}s"
    if unit == "ms" or (unit is None and microseconds >= 1e3):
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _format_time_share(time: float, total: float) -> str:
    """Return a part of the total time as text, in percent."""
    return f"{time * 100 / total:.2f}%" if total else "NaN"


def _format_memory(count: int) -> str:
    """Return a number of bytes as text, in a suitable unit."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"
