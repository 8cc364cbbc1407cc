"""Keyword arguments of modules for the functions that create their parameters."""

from __future__ import annotations

from typing import Any

from ..tracebacks import ending_at_caller


@ending_at_caller
def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments `device`, `dtype` and `memory_format` among these, for functions such as `torch.empty`.

    They may also stand in an argument `factory_kwargs`, where the module has an argument of its own of such a name.

    Raises:
        TypeError: if there are others, or one is given twice.

    >>> import adjoint as torch
    >>> torch.nn.factory_kwargs({"dtype": torch.float64})
    {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if unknown := kwargs.keys() - {*known, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    if unknown := found.keys() - known:
        raise TypeError(f"unexpected factory_kwargs {unknown}")
    for name in ("device", "dtype", "memory_format"):
        if name in kwargs:
            if name in found:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = kwargs[name]
    return found
