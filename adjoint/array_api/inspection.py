"""What the namespace can do: devices, dtypes and capabilities."""

from __future__ import annotations

from typing import Any, cast

import adjoint as torch

from .data_types import DTYPES

__all__ = ["__array_namespace_info__"]


class __array_namespace_info__:
    """The inspection functions of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and shapes that depend on values work; the arrays are NumPy's, of at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> torch.device:
        """The device of new tensors."""
        place: Any = torch.get_default_device()
        return cast(torch.device, place)

    def devices(self) -> list[torch.device]:
        """The devices."""
        return [torch.device("cpu"), torch.device("meta")]

    def default_dtypes(self, *, device: Any = None) -> dict[str, torch.dtype]:
        """The dtypes of new tensors, by kind."""
        real = torch.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": torch.complex128 if real is torch.float64 else torch.complex64,
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, torch.dtype]:
        """The dtypes of the standard by name, of all kinds or of these."""
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for each in kinds:
            if each not in DTYPES:
                raise ValueError(f"unsupported kind: {each!r}")
        return {name: getattr(torch, name) for each in kinds for name in DTYPES[each]}
