"""Modules of unused libraries, with attributes that programs read and set, also temporarily.

Modules without other contents are created here: `torch.backends.miopen`, `mha`, `nnpack` and others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

from adjoint._runtime.first_use import further_names


def flags_of(module: str, **defaults: Any) -> Callable[..., AbstractContextManager[None]]:
    """Return the function `flags` of a module, which is a context in which the module's options have other values."""

    @contextmanager
    def flags(*args: Any, **names: Any) -> Iterator[None]:
        """A context that sets options, which have no effect."""
        wanted = {**defaults, **dict(zip(defaults, args, strict=False)), **names}
        switches = vars(sys.modules[module])
        before = {name: switches.get(name) for name in wanted}
        switches.update(wanted)
        try:
            yield
        finally:
            switches.update(before)

    return flags


def set_flags_of(module: str, *names: str) -> Callable[..., tuple[Any, ...]]:
    """Return the function `set_flags` of a module, which sets the given options and returns the previous values."""

    def set_flags(*args: Any, **given: Any) -> tuple[Any, ...]:
        """Set options, which have no effect. Return the previous values."""
        switches = vars(sys.modules[module])
        before = tuple(switches.get(name) for name in names)
        wanted = {**dict(zip(names, args, strict=False)), **{name.removeprefix("_"): v for name, v in given.items()}}
        switches.update({name: value for name, value in wanted.items() if value is not None})
        return before

    return set_flags


def never() -> bool:
    """Return whether the library is used. The answer is always False."""
    return False


def version() -> None:
    """Return the version of the library, which is None."""


def get_opt_einsum() -> None:
    """Return the package in use, which is None."""


def get_fastpath_enabled() -> bool:
    """The switch."""
    return mha._fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Set the option, which has no effect."""
    vars(mha)["_fastpath"] = value


def _library(name: str, about: str, flags: dict[str, Any] | None = None, **contents: Any) -> ModuleType:
    """Create the module `torch.backends.<name>`. `flags`: its options, and their values within the context `flags()`."""
    made = ModuleType(f"{__package__}.{name}", f"`torch.backends.{name}`: {about}.")
    if flags is not None:
        contents |= {"flags": flags_of(made.__name__, **flags), "set_flags": set_flags_of(made.__name__, *flags)}
    vars(made).update(contents)
    further_names(__package__, {name: made})
    return made


_UNUSED = "a library that is not used"
cusparselt = _library("cusparselt", _UNUSED, version=version)
mha = _library(
    "mha",
    "the switch of attention's fast path, which has no effect",
    _fastpath=True,
    get_fastpath_enabled=get_fastpath_enabled,
    set_fastpath_enabled=set_fastpath_enabled,
)
miopen = _library("miopen", "switches of MIOpen, which is not used", {"immediate": False}, immediate=False)
nnpack = _library("nnpack", _UNUSED, {"enabled": False}, enabled=True, is_available=never)
openmp = _library("openmp", f"{_UNUSED}; threads are counted by `torch.get_num_threads`", is_available=never)
opt_einsum = _library(
    "opt_einsum",
    "the order of products in `torch.einsum`: from left to right. The switches have no effect",
    {"enabled": None, "strategy": None},
    enabled=False,
    strategy=None,
    is_available=never,
    get_opt_einsum=get_opt_einsum,
)
quantized = _library(
    "quantized", "quantized tensors, which there are none of", engine="none", supported_engines=["none"]
)
xnnpack = _library("xnnpack", _UNUSED, enabled=False)
