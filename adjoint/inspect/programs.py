"""Compiled functions as text: which programs stand for a function, how often they ran, or why it runs as it is."""

from __future__ import annotations

from typing import Any

from .._runtime.tracebacks import ending_at_caller


@ending_at_caller
def compiled(function: Any, source: bool = False) -> str:
    """What `torch.compile` has made of a function, or of a module, also of one that is compiled in place.

    For each program: how often it has run in place of the function, and its instructions, with the lines that they come from.

    Args:
        function: what `torch.compile` has returned, or a module of which `compile` was called.
        source: show the generated source too, which begins with the conditions under which the program stands for the function.

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
    wrapped = found.compiled_function
    name = getattr(wrapped, "__qualname__", type(wrapped).__name__)
    if found.reason is not None:
        return f"{name}: runs as it is: {found.reason}"
    count = len(found.variants)
    lines = [f"{name}: {count} program{'' if count == 1 else 's'}"]
    for number, variant in enumerate(found.variants, 1):
        times = f"{variant.calls} time{'' if variant.calls == 1 else 's'}"
        lines += ["", f"program {number}, which has run {times} in place of the function:", *indented(variant.program)]
        if source:
            lines += ["  its source:", *indented(variant.source)]
    return "\n".join(lines)


def indented(text: Any) -> list[str]:
    """The lines of a text, moved to the right."""
    return [f"  {line}" for line in str(text).splitlines()]
