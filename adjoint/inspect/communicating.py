"""`communication` shows the data that processes exchange in a part of a program, as tables for each rank and as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from time import perf_counter_ns, time_ns
from typing import Any

import adjoint as torch

from .names import is_module
from .tables import Table
from .timeline import Bar, Rank, draw

ENGINE = "autograd::engine::evaluate_function"


def communication(model: Any = None, optimizer: Any = None) -> Communication:
    """Record the collectives and messages of this thread in a `with` block.

    Args:
        model: a module. The tables show its parameters and gradients. For a `DistributedDataParallel` they also show
            buckets.
        optimizer: an optimizer. The tables show its state.

    Raises:
        RuntimeError: if this thread is already being profiled.

    >>> import adjoint as torch
    >>> model = torch.nn.Linear(3, 2)
    >>> with torch.inspect.communication(model) as seen:
    ...     model(torch.ones(4, 3)).sum().backward()
    >>> [(row["parameter"], row["gradient"]) for row in seen.parameters]
    [('weight', 24), ('bias', 8)]
    >>> len(seen.calls)  # a process alone sends nothing
    0
    """
    return Communication(model, optimizer)


class Communication:
    """The records of `communication`: the records of this rank and, after `gather()`, the records of all ranks.

    They are displayed as the table of ranks, and in a notebook as the picture of the last backward.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.model, self.optimizer = model, optimizer
        self.gathered: list[Rank] = []
        self._named = dict(model.named_parameters()) if is_module(model) else {}
        self._profile = torch.autograd.profiler.profile()
        self._arrivals: list[tuple[str, int]] = []
        self._handles: list[Any] = []

    def __enter__(self) -> Communication:
        self._profile.__enter__()
        self._wall = time_ns() - perf_counter_ns() + self._profile.origin
        for name, parameter in self._named.items():
            if parameter.requires_grad:
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._note(name)))
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._profile.__exit__(*exception)
        self.gathered = [self._own()]

    def _note(self, name: str) -> Any:
        arrivals = self._arrivals
        return lambda _: arrivals.append((name, perf_counter_ns()))

    def _own(self) -> Rank:
        """Return the records of this rank as plain data."""
        distributed, events = torch.distributed, self._profile.function_events
        reducer: Any = getattr(self.model, "reducer", None)
        buckets = [list(bucket.numbers) for bucket in reducer.buckets] if reducer is not None else []
        bucket_of = {reducer.parameters[number]: i for i, numbers in enumerate(buckets) for number in numbers}
        engine = [event.time_range for event in events if event.name.startswith(ENGINE)]
        return Rank(
            number=distributed.get_rank() if distributed.is_initialized() else 0,
            began=self._wall,
            calls=[_call(event) for event in events if event.communication is not None],
            waits=[Bar.of(event) for event in events if event.name.endswith(" (wait)")],
            nodes=[(each.start, each.end) for each in engine],
            arrivals=[(name, (at - self._profile.origin) / 1000) for name, at in self._arrivals],
            parameters=[
                {
                    "parameter": name,
                    "bytes": parameter._array.nbytes,
                    "gradient": 0 if parameter.grad is None else parameter.grad._array.nbytes,
                    "bucket": bucket_of.get(parameter),
                }
                for name, parameter in self._named.items()
            ],
            buckets=len(buckets),
            state=_state_bytes(self.optimizer),
        )

    def gather(self, group: Any = None) -> Communication:
        """Gather the records of all ranks. Call it on all ranks after the `with` block."""
        distributed = torch.distributed
        if distributed.is_initialized() and distributed.get_world_size(group) > 1:
            everyone: list[Any] = [None] * distributed.get_world_size(group)
            distributed.all_gather_object(everyone, self.gathered[0].plain(), group)
            self.gathered = [Rank.read(each) for each in everyone]
        return self

    @property
    def own(self) -> Rank:
        """Return the records of this rank.

        Raises:
            RuntimeError: before the end of the `with` block.
        """
        if not self.gathered:
            raise RuntimeError("communication(): the recording has not ended")
        number = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        return next((rank for rank in self.gathered if rank.number == number), self.gathered[0])

    @property
    def calls(self) -> Table:
        """Return the collectives and messages of this rank in the order in which they started, with times in milliseconds."""
        columns = ("call", "group", "for", "bytes", "began", "took", "waited", "hidden")
        return Table("", columns, self.own.calls, {"bytes": _bytes, "hidden": _percent})

    @property
    def parameters(self) -> Table:
        """Return the parameters of the model in this rank: bytes, gradient bytes, bucket, and arrival time of the gradient."""
        came = {name: at / 1000 for name, at in self.own.arrivals}
        rows = [{**row, "came": came.get(row["parameter"])} for row in self.own.parameters]
        columns = ("parameter", "bytes", "gradient", "bucket", "came")
        return Table("", columns, rows, {"bytes": _bytes, "gradient": _bytes})

    @property
    def ranks(self) -> Table:
        """Return the memory of each gathered rank, and the number, bytes and times of each kind of call."""
        rows = []
        for rank in self.gathered or [self.own]:
            held: dict[str, Any] = {
                "rank": rank.number,
                "parameters": sum(row["bytes"] for row in rank.parameters),
                "gradients": sum(row["gradient"] for row in rank.parameters),
                "state": rank.state,
                "buckets": rank.buckets,
            }
            for name in dict.fromkeys(call["call"] for call in rank.calls):
                calls = [call for call in rank.calls if call["call"] == name]
                sums = {column: sum(call[column] for call in calls) for column in ("bytes", "took", "waited")}
                hidden = 1 - sums["waited"] / sums["took"] if sums["took"] else 0.0
                rows.append({**held, "call": name, "calls": len(calls), **sums, "hidden": hidden})
                held = {"rank": rank.number}
            if not rank.calls:
                rows.append(held)
        columns = ("rank", "parameters", "gradients", "state", "buckets")
        more = ("call", "calls", "bytes", "took", "waited", "hidden")
        formats = dict.fromkeys(("parameters", "gradients", "state", "bytes"), _bytes)
        return Table("", columns + more, rows, {**formats, "hidden": _percent})

    def __repr__(self) -> str:
        return str(self.ranks) if self.gathered else "<communication that is being recorded>"

    def svg(self, **options: Any) -> str:
        """Return the last backward as a picture; see `save`."""
        return draw(self.gathered or [self.own], **options)

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | PathLike[str], *, title: str = "") -> None:
        """Write the picture of the last backward as SVG: gradients, buckets, collectives and waits of each rank, over time.

        Raises:
            ValueError: if the name does not end in `.svg`, or if no gradient of the model has been computed.
        """
        if Path(path).suffix != ".svg":
            raise ValueError(f"save(): expected a name that ends in .svg, but got {str(path)!r}")
        Path(path).write_text(self.svg(title=title), encoding="utf-8")


def _call(event: Any) -> dict[str, Any]:
    about = event.communication
    return {
        "call": about.name,
        "group": about.group,
        "for": about.label,
        "bytes": about.nbytes,
        "began": event.time_range.start / 1000,
        "took": event.cpu_time_total / 1000,
        "waited": about.waited / 1000,
        "hidden": event.overlap,
    }


def _state_bytes(optimizer: Any) -> int:
    """Return the bytes of the tensors in the state of an optimizer. For a sharded state, return the bytes of this rank."""
    optimizer = getattr(optimizer, "optim", optimizer)

    def tensors(value: Any) -> Iterable[Any]:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, dict):
            for each in value.values():
                yield from tensors(each)

    return sum(each._array.nbytes for each in tensors(dict(optimizer.state))) if optimizer is not None else 0


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _percent(share: float) -> str:
    return f"{share:.0%}"
