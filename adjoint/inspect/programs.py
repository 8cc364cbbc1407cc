"""Compiled functions as text and as a page: their programs, the numbers of their runs, or the reason why there is no program."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from .._runtime.tracebacks import ending_at_caller
from .program_page import counted, name_of, render, state_of, units_of


class Programs(str):
    """The programs that `torch.compile` has created for a function, as text. `html` and `save` convert them to a page."""

    __slots__ = ("found", "times")

    found: Any
    times: dict[int, Any]

    def html(self) -> str:
        """Return a self-contained page: instructions with their times, the memory of native runs, guards, source and LLVM IR."""
        return render(self.found, self.times)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file that ends in `.html`, or the text to any other file. Return the path."""
        path = Path(path)
        path.write_text(self.html() if path.suffix == ".html" else self, encoding="utf-8")
        return path


@ending_at_caller
def compiled(
    function: Any,
    source: bool = False,
    guards: bool = False,
    *,
    llvm: bool = False,
    run: tuple[Any, ...] | None = None,
) -> Programs:
    """Return the programs that `torch.compile` has created for a function or a module.

    The module may be compiled in place.

    For each program, show how often it has replaced the function, why it was captured, its instructions with their
    source lines, the sizes that may differ from call to call, and the native runs. A native run shows which
    instructions are joined, and the memory of their intermediate values. For a function that runs in Python, show the
    reason, and the same information about the functions and modules that it calls. The result is a string. Its method
    `save("program.html")` writes a page.

    Args:
        function: the result of `torch.compile`, or a module whose method `compile` was called.
        source: whether to show the generated source too.
        guards: whether to show the conditions under which each program replaces the function.
        llvm: whether to show the LLVM IR of the native runs.
        run: the arguments of one more call. This call runs a program and measures the time of each instruction and of
            each kernel.

    Raises:
        TypeError: if the argument is not compiled.
        ValueError: if no program fits a call with the arguments `run`.

    >>> import adjoint as torch
    >>> from adjoint import inspect
    >>> model = torch.compile(torch.nn.Sequential(torch.nn.ReLU()))
    >>> _ = model(torch.ones(2))
    >>> print(inspect.compiled(model).splitlines()[0])
    Sequential: 1 program
    """
    found: Any = getattr(getattr(function, "_compiled_call_impl", None) or function, "compiled", None)
    if not hasattr(found, "variants"):
        raise TypeError(f"inspect.compiled(): a compiled function or module is needed, not {type(function).__name__}")
    times = {} if run is None else measured(found, run)
    made = Programs("\n".join(described(found, source, guards, llvm, times)))
    made.found, made.times = found, times
    return made


def measured(found: Any, args: tuple[Any, ...]) -> dict[int, Any]:
    """Call the program that fits a call. Return the times of its instructions, by the identity of the program."""
    for variant in found.variants:
        times = variant.timed(args, {})
        if times is not None:
            return {id(variant): times}
    raise ValueError("inspect.compiled(): no program stands for a call with the arguments `run`")


def described(compiled: Any, source: bool, guards: bool, llvm: bool, times: dict[int, Any]) -> list[str]:
    """Return the lines for a compiled function."""
    lines = [f"{name_of(compiled)}: {state_of(compiled)}"]
    for number, variant in enumerate(compiled.variants, 1):
        body = variant.body  # fills the lists of loops and native runs
        count = counted(variant.calls, "time")
        lines += ["", f"program {number}, which has run {count} in place of the function:", *indented(variant.program)]
        if variant.sized is not None:
            lines.append(f"  for any sizes of {variant.sized}")
        lines += [f"  one loop: {each}" for each in variant.program.loops or getattr(variant.sized, "loops", ())]
        lines += [f"  {each}" for each in variant.program.natives or getattr(variant.sized, "natives", ())]
        lines += [f"  captured because an earlier program requires: {each}" for each in variant.because]
        if id(variant) in times:
            lines += ["  its time:", *(f"  {1e6 * seconds:10.1f} µs  {each}" for each, seconds in times[id(variant)])]
        if guards:
            lines += ["  it requires:", *(f"    {check.text}" for check in variant.checks if check.text)]
        if source:
            lines += ["  its source:", *indented(body.source)]
        if llvm:
            lines += [line for run in variant.program.natives for text in run.llvm for line in indented(text)]
    for unit in units_of(compiled):
        lines += ["", *(f"  {line}" for line in described(unit, source, guards, llvm, times))]
    return lines


def indented(text: Any) -> list[str]:
    """Return the lines of a text, indented."""
    return [f"  {line}" for line in str(text).splitlines()]
