"""The page of a compiled function: instructions, joined instructions, times, and the memory of native runs."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from .display import filled
from .palette import variables

WIDTH, ROW = 880, 22


def render(found: Any, times: dict[int, Any]) -> str:
    """Return the page of a compiled function, with the times of the measured program."""
    title = escape(f"compiled {name_of(found)}")
    return filled("programs.html", title=title, colours=variables(), body="\n".join(section(found, times)))


def section(found: Any, times: dict[int, Any]) -> list[str]:
    """Return the parts of the page for a compiled function, and for the functions that it calls if it runs in Python."""
    parts = [f"<p>{escape(state_of(found))}</p>"]
    for number, variant in enumerate(found.variants, 1):
        body = variant.body  # fills the lists of loops and native runs
        parts.append(
            f"<h2>Program {number}</h2><p>It has run {counted(variant.calls, 'time')} in place of the function.</p>"
        )
        parts += [f"<p>Captured because an earlier program requires: {escape(each)}</p>" for each in variant.because]
        parts.append(instructions(variant.program))
        if id(variant) in times:
            parts.append(measured(times[id(variant)]))
        parts += [memory(number, run) for number, run in enumerate(variant.program.natives, 1)]
        guards = [check.text for check in variant.checks if check.text]
        parts.append(folded(f"{counted(len(guards), 'guard')}", "\n".join(guards)))
        parts.append(folded("Source", body.source))
        for number, run in enumerate(variant.program.natives, 1):
            parts.append(folded(f"LLVM of native run {number}", "\n\n".join(run.llvm)))
    for unit in units_of(found):
        parts += [f"<h2>{escape(name_of(unit))}</h2>", *section(unit, times)]
    return parts


def instructions(program: Any) -> str:
    """Return the table of instructions with their source lines. Instructions of native runs and of loops are marked."""
    runs = {
        id(each): f"native run {number}" for number, run in enumerate(program.natives, 1) for each in run.instructions
    }
    for number, loop in enumerate(program.loops, 1):
        runs |= {id(each): f"loop {number}" for each in loop.function.instructions}
    rows = []
    for position, each in enumerate(program.instructions):
        run = runs.get(id(each))
        kind = " ".join(
            ["joined"] * (run is not None) + ["turn"] * (position == program.boundary and bool(program.seeds))
        )
        what = f' title="{run}"' if run is not None else ""
        file, line = each.line
        rows.append(
            f'<tr class="{kind}"><td class="native"{what}></td><td class="code">{escape(str(each))}</td>'
            f'<td class="line">{escape(Path(file).name)}:{line}</td></tr>'
        )
    return f"<table>{''.join(rows)}</table>"


def measured(times: list[tuple[str, float]]) -> str:
    """Return the table of executed steps and of their kernels, with times."""
    longest = max((seconds for _, seconds in times), default=0) or 1
    rows = [
        f'<tr><td class="code">{escape(each)}</td><td class="line"><span class="bar" '
        f'style="width:{160 * seconds / longest:.0f}px"></span>{1e6 * seconds:.1f} µs</td></tr>'
        for each, seconds in times
    ]
    return f"<p>One call, instruction by instruction:</p><table>{''.join(rows)}</table>"


def memory(number: int, run: Any) -> str:
    """Return the picture of the arena of a native run, with blocks from left to right and memory from top to bottom."""
    bytes_in_all, steps = max(run.arena, 1), max(run.blocks, 1)
    places = sorted({span.offset for span in run.spans.values()})
    height = max(len(places), 1) * ROW
    parts = []
    for value, span in run.spans.items():
        x, width = WIDTH * span.first / steps, WIDTH * (span.last + 1 - span.first) / steps
        y, tall = height * span.offset / bytes_in_all, height * span.size / bytes_in_all
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{tall:.1f}" rx="3">'
            f"<title>%{value}: {span.size} bytes, blocks {span.first} to {span.last}</title></rect>"
        )
        if tall > 11 and width > 30:
            parts.append(f'<text x="{x + 5:.1f}" y="{y + tall / 2 + 4:.1f}">%{value}</text>')
    caption = (
        f"Native run {number}: {counted(run.blocks, 'block')}, left to right; {counted(run.values, 'value')} in "
        f"{run.arena} bytes, top to bottom ({run.apart} if none shared memory)."
    )
    picture = f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture if run.spans else ''}</figure>"


def folded(title: str, text: str) -> str:
    """Return text that is shown on request."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def name_of(compiled: Any) -> str:
    """Return the name of a function, or of the class of a module."""
    wrapped = compiled.compiled_function
    return getattr(wrapped, "__qualname__", type(wrapped).__name__)


def state_of(compiled: Any) -> str:
    """Return the number of programs, or the reason why the function runs without a program."""
    if compiled.reason is None:
        return counted(len(compiled.variants), "program")
    return f"runs as it is: {compiled.reason}"


def units_of(compiled: Any) -> list[Any]:
    """Return the compiled functions that a function calls if it runs in Python."""
    units = [] if compiled.units is None else compiled.units.units.values()
    return [unit for unit in units if hasattr(unit, "variants")]


def counted(number: int, name: str) -> str:
    """Return a count with its noun."""
    return f"{number} {name}{'' if number == 1 else 's'}"
