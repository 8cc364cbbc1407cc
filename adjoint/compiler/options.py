"""Settings of `torch.compile` that programs may change, as attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

from ..autograd.grad_mode import Decorating

STANCE = ContextVar("stance", default="default")
"""How compiled functions of this thread run (see `torch.compiler.set_stance`)."""


STRICT = ContextVar("strict", default=False)
"""Whether the end of a capture is an error in this thread (see `error_on_graph_break`)."""


class error_on_graph_break(Decorating):
    """A context manager or decorator: whether `torch.compile` raises an error where it cannot capture a function."""

    _given = ("is_error",)

    def __init__(self, error_on_graph_break: bool) -> None:
        self.is_error = error_on_graph_break

    def __enter__(self) -> None:
        self.before = STRICT.set(self.is_error)

    def __exit__(self, *exception: object) -> None:
        STRICT.reset(self.before)


def graph_break(msg: str = "") -> None:
    """End a graph for a backend. Without a backend, the calling function runs without a program."""


class Settings(SimpleNamespace):
    """Settings. Names that exist only in PyTorch may be set too, without effect."""

    @contextmanager
    def patch(self, name: str | dict[str, Any] | None = None, value: Any = None, **settings: Any) -> Iterator[None]:
        """A context, or a decorator, in which one or more settings have other values."""
        if name is not None:
            settings.update(name if isinstance(name, dict) else {name: value})
        before = {**vars(self)}
        vars(self).update(settings)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)


config = Settings(
    cache_size_limit=8,
    recompile_limit=8,
    error_on_recompile=False,
    suppress_errors=False,
    accumulated_cache_size_limit=256,
    accumulated_recompile_limit=256,
    allow_rnn=False,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_size_limit_per_function=8,
    capture_dynamic_output_shape_ops=False,
    capture_func_transforms=True,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    dynamic_shapes=True,
    fail_on_recompile_limit_hit=False,
    fake_tensor_cache_crosscheck_enabled=False,
    fake_tensor_cache_enabled=True,
    force_parameter_static_shapes=True,
    guard_nn_modules=True,
    inline_inbuilt_nn_modules=True,
    optimize_ddp=True,
    specialize_float=False,
    specialize_int=False,
    verbose=False,
)
"""`torch._dynamo.config`. The first four settings have an effect.

`cache_size_limit`, `recompile_limit`: the maximum number of programs for one function. A call that fits none of them then
runs without a program. `error_on_recompile`: whether a second capture raises an error. `suppress_errors`: whether a function
runs without its backend if the backend raises an error.
"""

compiler_config = Settings(
    cache_key_tag="",
    dynamic_sources="",
    force_disable_caches=False,
    job_id=None,
    unbacked_sources="",
    enable_autograd_cache=True,
)
"""`torch.compiler.config`. Its settings have no effect."""
