"""`torch.export`: programs for inference, which run without the module from which they were exported.

An exported program serves the sizes of its example arguments.
"""

from __future__ import annotations

from typing import Any

import adjoint.compiler as compiler
from adjoint.compiler.errors import Unsupported
from adjoint.compiler.exported import ExportedProgram, load, save

__all__ = ["ExportedProgram", "export", "load", "save"]


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:
    """Call a module once without recording gradients, and return its operations as a program, like `torch.compiler.export`.

    Args:
        mod: a module.
        args, kwargs: the arguments of the module.
        strict, preserve_module_call_signature: accepted, but without effect.

    Raises:
        torch._dynamo.exc.Unsupported: if the call cannot be captured as one program, or if `dynamic_shapes` is given.

    >>> import adjoint as torch
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> program.module()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if dynamic_shapes:
        raise Unsupported("dynamic shapes are not supported: export a program for each shape")
    return compiler.export(mod, args, kwargs)
