"""`torch.utils.flop_counter`: the floating-point operations of products and convolutions, counted by their shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import adjoint as torch

__all__ = ["FlopCounterMode"]


def _product(result: torch.Tensor, *args: torch.Tensor) -> int:
    return 2 * result.numel() * args[0].shape[-1]


def _added_product(result: torch.Tensor, added: Any, first: torch.Tensor, *args: Any) -> int:
    return 2 * result.numel() * first.shape[-1]


def _convolution(result: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, *args: Any) -> int:
    return 2 * result.numel() * weight[0].numel()


def _transposed_convolution(result: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, *args: Any) -> int:
    return 2 * input.numel() * weight[0].numel()


def _attention(result: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *args: Any) -> int:
    scores = query.numel() // query.shape[-1] * key.shape[-2]
    return 2 * scores * (query.shape[-1] + value.shape[-1])


FORMULAS: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("mm", "bmm", "matmul", "linear", "__matmul__", "mv"), _product),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added_product),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed_convolution),
    "scaled_dot_product_attention": _attention,
}
"""The number of operations by the name of the function, from its result and its arguments."""


class FlopCounterMode(torch.overrides.TorchFunctionMode):
    """A context that counts the operations of products and convolutions that are called in it, forward only.

    Args:
        mods, depth, custom_mapping: accepted, without effect.
        display: whether the counts are printed at the end.

    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        self.display = display
        self.flop_counts: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        formula = FORMULAS.get(name)
        if formula is not None and isinstance(result, torch.Tensor):
            self.flop_counts[name] += formula(result, *args, *(kwargs or {}).values())
        return result

    def get_total_flops(self) -> int:
        """All operations."""
        return self.flop_counts.total()

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The operations of the whole program, by function."""
        return {"Global": dict(self.flop_counts)}

    def get_table(self, depth: int | None = None) -> str:
        """The operations as text."""
        return "\n".join(
            f"{name}: {count}" for name, count in [*self.flop_counts.items(), ("all", self.get_total_flops())]
        )

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self.display:
            print(self.get_table())
