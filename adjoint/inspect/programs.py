"""Compiled functions as text: which programs stand for a function, how often they ran, or why it runs as it is."""

from __future__ import annotations

from typing import Any

from .._runtime.tracebacks import ending_at_caller


@ending_at_caller
def compiled(function: Any, source: bool = False, guards: bool = False) -> str:
    """What `torch.compile` has made of a function, or of a module, also of one that is compiled in place.

    For each program: how often it has run in place of the function, why it was captured, its instructions with the lines that
    they come from, and the native runs: which instructions are joined, and the memory of their intermediate values. For a
    function that runs in Python: the reason, and the same for the functions and modules that it calls.

    Args:
        function: what `torch.compile` has returned, or a module of which `compile` was called.
        source: show the generated source too.
        guards: show the conditions under which each program stands for the function.

    Raises:
        TypeError: if it is not compiled.

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
    return "\n".join(described(found, source, guards))


def described(compiled: Any, source: bool, guards: bool) -> list[str]:
    """The lines for a compiled function."""
    wrapped = compiled.compiled_function
    name = getattr(wrapped, "__qualname__", type(wrapped).__name__)
    if compiled.reason is None:
        lines = [f"{name}: {counted(len(compiled.variants), 'program')}"]
    else:
        lines = [f"{name}: runs as it is: {compiled.reason}"]
    for number, variant in enumerate(compiled.variants, 1):
        times = counted(variant.calls, "time")
        lines += ["", f"program {number}, which has run {times} in place of the function:", *indented(variant.program)]
        lines += [f"  {each}" for each in variant.program.natives]
        lines += [f"  captured because an earlier program requires: {each}" for each in variant.because]
        if guards:
            lines += ["  it requires:", *(f"    {check.text}" for check in variant.checks if check.text)]
        if source:
            lines += ["  its source:", *indented(variant.source)]
    for unit in [] if compiled.units is None else compiled.units.units.values():
        if hasattr(unit, "variants"):
            lines += ["", *(f"  {line}" for line in described(unit, source, guards))]
    return lines


def counted(number: int, name: str) -> str:
    """A number of things."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def indented(text: Any) -> list[str]:
    """The lines of a text, moved to the right."""
    return [f"  {line}" for line in str(text).splitlines()]
