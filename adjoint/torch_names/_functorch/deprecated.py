"""The functions of `functorch`. They warn that `torch.func` has replaced them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint import func
from adjoint._runtime.tracebacks import warn

from . import make_functional as modules

_TRANSFORMS = ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp")

__all__ = ["combine_state_for_ensemble", *_TRANSFORMS, "make_functional", "make_functional_with_buffers", "vmap"]


def _deprecated(function: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """Return `function`, with a warning at each call that names the replacement."""
    message = (
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{function.__name__}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= "
        f"2.3. Please use `{instead}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration guide for "
        "more details https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def warning(*args: Any, **keywords: Any) -> Any:
        warn(message, FutureWarning)
        return function(*args, **keywords)

    warning.__module__ = __name__
    return warning


vmap = _deprecated(func.vmap, "torch.vmap")
globals().update({name: _deprecated(getattr(func, name), f"torch.func.{name}") for name in _TRANSFORMS})
make_functional, make_functional_with_buffers = (
    _deprecated(function, "torch.func.functional_call")
    for function in (modules.make_functional, modules.make_functional_with_buffers)
)
combine_state_for_ensemble = _deprecated(modules.combine_state_for_ensemble, "torch.func.stack_module_state")
