"""`watch`: norms of gradients, weights and updates of a model during training, as a page or as a table in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, log10
from typing import Any, TextIO

import numpy

import adjoint as torch

from ..kernels.runtime.floating import unwarned
from ..tensor import Tensor
from .display import Display, filled
from .gradients import norm_of
from .names import is_module, pairs_of
from .palette import variables
from .tables import Table

QUANTITIES = {"gradient": "norm of the gradient", "update": "norm of the update", "ratio": "update / weight"}
MOST_COLUMNS = 160
"""A chart shows at most this many steps, evenly spread."""

NOTHING, NOT_FINITE = "#adb5bd", "#e03131"
COLD, WARM = (68, 1, 84), (253, 231, 37)
MIDDLE = ((59, 82, 139), (33, 145, 140), (94, 201, 98))


def watch(model: Any, every: int = 1, *, live: bool = False, output: TextIO | None = None) -> Watch:
    """Record the norms of each parameter's gradient, weight and update at every `every`-th step of its optimizer.

    Args:
        model: a Module, a dict of names and tensors, or an iterable of pairs.
        every: the interval between recorded steps.
        live: whether to write the table of the latest step to the terminal, in place of the previous table.
        output: the file for `live`; by default the standard error stream.

    The recording begins immediately, and ends with `close()` or at the end of a `with` block. A recorded step needs one
    copy of the parameters and one pass over them. Other steps cost one call.

    >>> import adjoint as torch
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> model.weight.data.fill_(1.0)
    tensor([[1., 1.]])
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with torch.inspect.watch(model) as watched:
    ...     for _ in range(3):
    ...         optimizer.zero_grad()
    ...         model(torch.tensor([[3.0, 4.0]])).sum().backward()
    ...         optimizer.step()
    >>> watched
    step 3
    parameter  gradient  weight  update  ratio
    weight            5   0.224     0.5   2.24
    >>> [round(record["weight"]["update"], 3) for record in watched.records]
    [0.5, 0.5, 0.5]
    """
    if every < 1:
        raise ValueError(f"watch(): expected every to be at least 1, but got {every}")
    pairs = list(model.named_parameters() if is_module(model) else pairs_of("model", model))
    return Watch(pairs, every, output or sys.stderr if live else None)


class Watch(Display):
    """The records of `watch`: the recorded `steps`, and in `records` the norms by parameter for each step."""

    forms = {".html": "html", ".json": "json", ".txt": "__str__"}

    def __init__(self, parameters: Sequence[tuple[str, Tensor]], every: int, output: TextIO | None) -> None:
        self.parameters = list(parameters)
        self.every = every
        self.output = output
        self.steps: list[int] = []
        self.records: list[dict[str, dict[str, float | None]]] = []
        self._count = 0
        self._before: dict[str, Any] | None = None
        self._lines = 0
        owned = {id(tensor) for _, tensor in self.parameters}

        def concerns(optimizer: Any) -> bool:
            return any(id(tensor) in owned for group in optimizer.param_groups for tensor in group["params"])

        def begin(optimizer: Any, *_: Any) -> None:
            if concerns(optimizer):
                self._begin()

        def finish(optimizer: Any, *_: Any) -> None:
            if concerns(optimizer):
                self._finish()

        hooks = torch.optim.optimizer
        self._handles = [
            hooks.register_optimizer_step_pre_hook(begin),
            hooks.register_optimizer_step_post_hook(finish),
        ]

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the recording. The records stay available."""
        for handle in self._handles:
            handle.remove()

    def _begin(self) -> None:
        self._count += 1
        if (self._count - 1) % self.every == 0:
            self._before = {name: tensor._array.copy() for name, tensor in self.parameters}

    def _finish(self) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        with unwarned():
            record = {name: _norms(tensor, before[name]) for name, tensor in self.parameters}
        self.steps.append(self._count)
        self.records.append(record)
        if self.output is not None:
            self._show(self.output)

    def _show(self, output: TextIO) -> None:
        text = str(self.table())
        up = f"\x1b[{self._lines}A\x1b[J" if self._lines and output.isatty() else ""
        output.write(f"{up}{text}\n")
        output.flush()
        self._lines = text.count("\n") + 1

    def table(self, place: int = -1) -> Table:
        """Return the norms at one recorded step, by default the latest step."""
        if not self.records:
            return Table("no step yet", COLUMNS, [])
        rows = [{"parameter": name, **norms} for name, norms in self.records[place].items()]
        return Table(f"step {self.steps[place]}", COLUMNS, rows)

    def __str__(self) -> str:
        return str(self.table())

    def json(self) -> str:
        """Return all records as JSON. Numbers that are not finite become null."""
        plain = [
            {name: {key: _finite(value) for key, value in norms.items()} for name, norms in each.items()}
            for each in self.records
        ]
        return json.dumps({"steps": self.steps, "records": plain})

    def html(self) -> str:
        """Return a self-contained page with a chart for each quantity.

        A chart has a row for each parameter and a column for each step.
        """
        charts = "".join(self._chart(key, words) for key, words in QUANTITIES.items())
        title = f"{len(self.parameters)} parameters over {self._count} steps"
        return filled("watch.html", title=title, colours=variables(), charts=charts)

    def _chart(self, quantity: str, words: str) -> str:
        chosen = _spread(len(self.records))
        values = [[self.records[at][name][quantity] for at in chosen] for name, _ in self.parameters]
        logs = [log10(value) for row in values for value in row if value and isfinite(value)]
        if not any(value is not None for row in values for value in row):
            return f"<section><h2>{escape(words)}</h2><p>nothing recorded</p></section>"
        low, high = _scale(logs)
        cells, names = [], []
        for row, (name, _) in enumerate(self.parameters):
            names.append(f'<div title="{escape(name)}"><bdi>{escape(name)}</bdi></div>')
            for column, value in enumerate(values[row]):
                told = "none" if value is None else f"{value:.3g}"
                hint = f"<title>{escape(name)}, step {self.steps[chosen[column]]}: {told}</title>"
                at = f'x="{column}" y="{row}" width="1.04" height="0.94"'
                cells.append(f'<rect {at} fill="{_colour(value, low, high)}">{hint}</rect>')
        words = escape(words)
        size = (
            f'viewBox="0 0 {len(chosen)} {len(names)}" preserveAspectRatio="none" style="height: {16 * len(names)}px"'
        )
        drawing = f'<svg {size} role="img" aria-label="{words} by parameter and step">{"".join(cells)}</svg>'
        ends = f"<p><span>step {self.steps[chosen[0]]}</span><span>{self.steps[chosen[-1]]}</span></p>"
        shades = ", ".join(_colour(10 ** (low + (high - low) * place / 19), low, high) for place in range(20))
        bar = f'<i style="background: linear-gradient(90deg, {shades})"></i>'
        scale = f"<p>{bar} {10**low:.2g} to {10**high:.2g}{_others(values)}</p>"
        sides = f'<div class="names">{"".join(names)}</div><div>{drawing}{ends}{scale}</div>'
        return f'<section><h2>{words}</h2><div class="chart">{sides}</div></section>'


COLUMNS = ("parameter", "gradient", "weight", "update", "ratio")


def _norms(tensor: Tensor, before: Any) -> dict[str, float | None]:
    weight, update = norm_of(tensor._array), norm_of(numpy.subtract(tensor._array, before))
    gradient = None if tensor._grad is None else norm_of(tensor._grad._array)
    return {"gradient": gradient, "weight": weight, "update": update, "ratio": update / weight if weight else None}


def _finite(value: float | None) -> float | None:
    return value if value is None or isfinite(value) else None


def _spread(count: int) -> list[int]:
    """Return at most `MOST_COLUMNS` evenly spaced positions out of `count`, including the last one."""
    step = -(-count // MOST_COLUMNS) if count else 1
    return list(range(count - 1, -1, -step))[::-1]


def _scale(logs: Sequence[float]) -> tuple[float, float]:
    """Return the limits of the scale.

    The scale spans at least a factor of two, so that rounding errors do not look like changes.
    """
    low, high = min(logs, default=0.0), max(logs, default=0.0)
    missing = max(log10(2) - (high - low), 0.0) if logs else 0.0
    return low - missing / 2, high + missing / 2


def _others(values: Sequence[Sequence[float | None]]) -> str:
    """Return the meaning of the colours that are not on the scale, if there are any."""
    every = [value for row in values for value in row]
    kinds = {
        NOTHING: ("zero or none", any(not value for value in every)),
        NOT_FINITE: ("not finite", any(value and not isfinite(value) for value in every)),
    }
    return "".join(
        f' <i class="other" style="background: {fill}"></i> {words}'
        for fill, (words, occurs) in kinds.items()
        if occurs
    )


def _colour(value: float | None, low: float, high: float) -> str:
    """Return the colour of a value on a logarithmic scale: grey for zero or a missing value, red if it is not finite."""
    if not value:
        return NOTHING
    if not isfinite(value):
        return NOT_FINITE
    stops: Iterable[tuple[int, int, int]] = (COLD, *MIDDLE, WARM)
    colours = list(stops)
    place = 0.5 if high <= low else (log10(value) - low) / (high - low)
    place = min(max(place, 0.0), 1.0) * (len(colours) - 1)
    number = min(int(place), len(colours) - 2)
    part = place - number
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(colours[number], colours[number + 1], strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"
