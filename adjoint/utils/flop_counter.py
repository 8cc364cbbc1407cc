"""`torch.utils.flop_counter`: floating-point operations of products, convolutions and attention, from their shapes.

A multiplication and an addition count as two operations. `flop_registry` lists the formulas by dispatcher operator, as
in PyTorch. Other operators are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Self

import adjoint as torch

from . import _pytree
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = torch.ops.aten
tree: Any = _pytree
Shape = Sequence[int]
Formula = Callable[..., int]

flop_registry: dict[Any, Formula] = {}
"""The functions that count operations, by operator (`torch.ops.aten.mm`)."""


def get_shape(value: Any) -> Any:
    """Return the shape of a tensor, or another value unchanged."""
    return value.shape if isinstance(value, torch.Tensor) else value


def _of_shapes(formula: Formula) -> Formula:
    """Convert a formula of shapes to a function of values."""

    @wraps(formula)
    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree.tree_map(get_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return count


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Return a decorator. The decorated function counts the operations of these operators.

    Args:
        targets: an operator such as `torch.ops.aten.mul`, or a list of them.
        get_raw: whether the function receives the arguments, and the result as `out_val=`. Otherwise it receives the
            shapes of tensors, and `out_shape=`.

    Raises:
        ValueError: if a target is not an operator.
        RuntimeError: if an operator already has a formula.

    >>> import adjoint as torch
    >>> @register_flop_formula(torch.ops.aten.cosh)
    ... def cosh_flop(shape, *args, out_shape=None, **kwargs):
    ...     return 4 * shape.numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(5).cosh()
    >>> counter.get_total_flops()
    20
    """

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            if not hasattr(target, "overloads"):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    f"JitFunction, or HigherOrderOperator, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


# Formulas


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Count a product of matrices (m, k) and (k, n): 2mkn."""
    return math.prod(a_shape) * b_shape[1] * 2


@register_flop_formula(aten.addmm)
def addmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Count a matrix product. The addition is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Count the matrix products of a batch."""
    return math.prod(a_shape) * b_shape[2] * 2


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Count matrix products. The addition is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Count a convolution: each pixel of the result (of the input if transposed) uses the weight of its group once."""
    pixels = (x_shape if transposed else out_shape)[2:]
    return x_shape[0] * math.prod(pixels) * math.prod(w_shape) * 2


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count a convolution with any number of dimensions."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Sequence[bool],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the gradients of a convolution by input and weight. Each needs as many operations as the convolution."""
    return sum(map(bool, output_mask[:2])) * conv_flop_count(x_shape, w_shape, grad_out_shape, transposed)


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Count attention: the product of queries and keys, and the product of scores and values."""
    scores = math.prod(query_shape[:-1]) * key_shape[-2]
    return 2 * scores * (query_shape[-1] + value_shape[-1])


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Count attention. A mask does not reduce the count."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Count the gradients of attention: the scores again, and the gradients of values, scores, queries and keys."""
    scores = math.prod(query_shape[:-1]) * key_shape[-2]
    return 2 * scores * (3 * query_shape[-1] + 2 * value_shape[-1])


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the gradients of attention."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# The calls of the dispatcher's operators

Call = tuple[Any, tuple[Any, ...], Any]
"""An operator, its arguments, and its result: values or shapes."""


def _forward_call(name: str, inputs: tuple[Any, ...], result: Any) -> Call | None:
    """Return the call of an operator. Formulas of gradients use other names and orders of arguments."""
    if name == "blocked_attention":
        return aten._scaled_dot_product_flash_attention_for_cpu, inputs, result
    if name in ("conv_input_grad", "conv_weight_grad"):
        to_weight = name == "conv_weight_grad"
        x, w, grad = (inputs[1], result, inputs[0]) if to_weight else (result, inputs[1], inputs[0])
        mask = (not to_weight, to_weight, False)
        return aten.convolution_backward, (grad, x, w, None, *inputs[3:6], False, (0,), inputs[6], mask), result
    if name == "recurrent_layer":
        first, second = _recurrent_product(inputs)
        return aten.mm, (first, second), None
    packet = getattr(aten, name, None)
    return None if packet is None else (packet, inputs, result)


def _backward_calls(name: str, inputs: tuple[Any, ...], out: Shape, needed: tuple[bool, ...]) -> list[Call]:
    """Return the products that a node has computed, from the shapes of the operator's inputs and result."""
    if name == "recurrent_layer":
        states, weight = _recurrent_product(inputs)
        return _backward_calls("mm", (states, weight), (states[0], weight[1]), (True, True))
    if name in ("mm", "addmm", "bmm", "baddbmm"):
        a, b = inputs[name in ("addmm", "baddbmm") :][:2]
        packet = aten.bmm if "bmm" in name else aten.mm
        calls = [(packet, (out, _transposed(b)), a), (packet, (_transposed(a), out), b)]
        return [call for call, wanted in zip(calls, needed[-2:], strict=True) if wanted]
    if name == "convolution":
        return [(aten.convolution_backward, (out, *inputs, needed), inputs[:3])]
    if name == "blocked_attention":
        return [(aten._scaled_dot_product_flash_attention_for_cpu_backward, (out, *inputs[:3]), inputs[:3])]
    return []


def _recurrent_product(inputs: tuple[Any, ...]) -> tuple[Shape, Shape]:
    """Return the shapes of the states of all steps of a recurrent layer, and the shape of their weight."""
    projected, weight = get_shape(inputs[0]), get_shape(inputs[3])
    return (projected[0] * projected[1], weight[1]), _transposed(weight)


def _transposed(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


# The counter


class FlopCounterMode:
    """A context that counts the operations of products, convolutions and attention, in forward and backward.

    Args:
        mods: accepted, but without effect, because modules are detected when they are called.
        depth: the depth to which the table shows modules.
        display: whether the table is printed at the end.
        custom_mapping: formulas by operator. They extend or replace `flop_registry`.

    The operations of a gradient count for the module of its operator.

    >>> import adjoint as torch
    >>> model = torch.nn.Linear(3, 4)
    >>> with FlopCounterMode() as counter:
    ...     model(torch.ones(2, 3)).sum().backward()
    Module          FLOP    % Total
    ------------  ------  ---------
    Linear            96    100.00%
    - aten.addmm      48     50.00%
    - aten.mm         48     50.00%
    >>> counter.get_total_flops()
    96
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Formula] | None = None
    ) -> None:
        self.depth = depth
        self.display = display
        own = {key: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
               for key, formula in (custom_mapping or {}).items()}  # fmt: skip
        self.flop_registry = {**flop_registry, **own}
        self.flop_counts: dict[str, dict[Any, int]] = {"Global": {}}
        self.mod_tracker = ModuleTracker()
        self._calls = torch.autograd.profiler.OperatorCalls(self)

    def __enter__(self) -> Self:
        self.flop_counts = {"Global": {}}
        self._calls.__enter__()
        self.mod_tracker.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._calls.__exit__(*exception)
        self.mod_tracker.__exit__(*exception)
        if self.display:
            print(self.get_table(self.depth))

    def place(self) -> frozenset[str]:
        """Return the modules whose calls are running."""
        return frozenset(self.mod_tracker.parents)

    def forward(self, name: str, inputs: tuple[Any, ...], result: Any, place: frozenset[str]) -> None:
        """Count the call of an operator."""
        call = _forward_call(name, inputs, result)
        if call is not None:
            self._count(call, place)

    def backward(
        self, name: str, inputs: tuple[Any, ...], result: Any, needed: tuple[bool, ...], place: frozenset[str]
    ) -> None:
        """Count the operations of a node."""
        for call in _backward_calls(name, inputs, result, needed):
            self._count(call, place)

    def _count(self, call: Call, place: frozenset[str]) -> None:
        packet, args, result = call
        formula = self.flop_registry.get(packet)
        if formula is None:
            return
        count = formula(*args, out_val=result)
        for path in place:
            counts = self.flop_counts.setdefault(path, {})
            counts[packet] = counts.get(packet, 0) + count

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the operations by operator, for each path of a module, and for the whole model as "Global"."""
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the operations as a table.

        It contains the modules down to `depth`, and the whole model unless one module has all operations.
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = get_suffix_str(total)
        shown = [path for path in sorted(self.flop_counts) if path != "Global" and path.count(".") < depth]
        if not any(sum(self.flop_counts[path].values()) >= total for path in shown):
            shown.insert(0, "Global")
        rows = [("Module", "FLOP", "% Total")]
        for path in shown:
            counts = self.flop_counts[path]
            lines = [(path, sum(counts.values())), *((f"- {packet}", count) for packet, count in counts.items())]
            rows += [
                (name, convert_num_with_suffix(count, unit), convert_to_percent_str(count, total))
                for name, count in lines
            ]
        columns = zip(*rows, strict=True)
        widths = [max(len(first) + 2, *map(len, rest)) for first, *rest in columns]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        return "\n".join(
            f"{name:<{widths[0]}}  {count:>{widths[1]}}  {share:>{widths[2]}}" for name, count, share in rows
        )


_UNITS = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """Return the unit in which a number has at least two digits: "", "K", "M", "B" or "T"."""
    return _UNITS[max(0, min(len(_UNITS) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """Return the number in the unit of `get_suffix_str`, as text."""
    return f"{number / 1000 ** _UNITS.index(suffix):.3f}{suffix}" if suffix else str(number)


def convert_to_percent_str(num: int, denom: int) -> str:
    """Return the share in percent, as text."""
    return f"{num / denom:.2%}" if denom else "0%"
