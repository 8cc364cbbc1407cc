"""A custom `Function` applied to a whole batch (`generate_vmap_rule`) through a `Function` of unwrapped tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..autograd.function import Function
from ..tape import modes
from ..tensor import Tensor
from .vmap_interpreter import BatchedTensor, VmapInterpreter


def mapped(function: Any, is_batched: tuple[bool, ...], size: int, randomness: str) -> Any:
    """Apply `function` to arguments, some of which have the batch dimension first. All outputs have it."""
    made = vars(function).get("_mapped")
    if made is None:
        made = function._mapped = functools.lru_cache(maxsize=256)(functools.partial(_mapped, function))
    return made(is_batched, size, randomness)


def _mapped(function: Any, is_batched: tuple[bool, ...], size: int, randomness: str) -> Any:
    level = VmapInterpreter(size, randomness)
    level.number = 1

    def wrapped(values: Sequence[Any]) -> list[Any]:
        return [
            BatchedTensor(value, 0, level) if has and isinstance(value, Tensor) else value
            for value, has in zip(values, is_batched, strict=True)
        ]

    class Mapped(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*values: Any) -> Any:
            with _within(level):
                return _whole(level, function.forward(*wrapped(values)))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            shapes = [value.shape[has:] if isinstance(value, Tensor) else None for value, has in _pairs(inputs)]
            setattr(ctx, f"shapes_{id(level)}", shapes)
            several = isinstance(output, tuple)
            outputs = [
                BatchedTensor(value, 0, level) if isinstance(value, Tensor) else value
                for value in (output if several else (output,))
            ]
            with _within(level):
                function.setup_context(
                    _Context(ctx, level), tuple(wrapped(inputs)), tuple(outputs) if several else outputs[0]
                )

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            own = [None if grad is None else BatchedTensor(grad, 0, level) for grad in grads]
            with _within(level):
                results = function.backward(_Context(ctx, level), *own)
                results = results if isinstance(results, tuple) else (results,)
                results = [
                    result.sum_to_size(shape)
                    if isinstance(result, Tensor) and _is_larger(result.shape, shape)
                    else result
                    for result, shape in zip(
                        results, _filled(getattr(ctx, f"shapes_{id(level)}"), len(results)), strict=True
                    )
                ]
            return tuple([
                result if not isinstance(result, Tensor)
                else level.expanded(result) if has
                else level.first(result).sum(0) if level.has(result) else level.first(result)
                for result, has in zip(results, _filled(is_batched, len(results)), strict=True)
            ])  # fmt: skip

    def _pairs(values: Sequence[Any]) -> Any:
        return zip(values, is_batched, strict=True)

    if function.jvp is not Function.jvp:

        def jvp(ctx: Any, *tangents: Any) -> Any:
            with _within(level):
                return _whole(level, function.jvp(_Context(ctx, level), *wrapped(tangents)))

        Mapped.jvp = staticmethod(jvp)  # type: ignore[method-assign]
    Mapped._backward_cls.__name__ = f"Vmapped{function.__name__}Backward"
    return Mapped


def _whole(level: VmapInterpreter, output: Any) -> Any:
    """Unwrap an output, or a tuple of outputs: return tensors of the whole batch."""
    if isinstance(output, tuple):
        return tuple([_whole(level, each) for each in output])
    return level.expanded(output) if isinstance(output, Tensor) else output


def _filled(values: Sequence[Any], count: int) -> list[Any]:
    """Return `values`, extended by None. The node itself raises an error if the number of values is wrong."""
    return [*values, *[None] * (count - len(values))][:count]


def _is_larger(shape: Any, wanted: Any) -> bool:
    """Return whether `shape` is larger than `wanted` because the tensor of shape `wanted` was broadcast."""
    return wanted is not None and shape != wanted and len(shape) >= len(wanted)


def _within(level: VmapInterpreter) -> modes.switched:
    """Return a context inside an interpreter that has ended, for the backward of operations recorded there."""
    return modes.switched(stack=(*modes.STATE.interpreters, level))


class _Context:
    """The `ctx` for batched tensors, which wraps and unwraps the tensors of the `ctx` for the whole batch."""

    def __init__(self, whole: Any, level: VmapInterpreter) -> None:
        vars(self).update(whole=whole, level=level)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.whole, name, value)

    def _values(self, tensors: Sequence[Any]) -> list[Any]:
        return [tensor.value if self.level.wraps(tensor) else tensor for tensor in tensors]

    def _note(self, what: str, tensors: Sequence[Any]) -> None:
        places = [tensor.bdim if self.level.wraps(tensor) else None for tensor in tensors]
        setattr(self.whole, f"places_{what}_{id(self.level)}", places)

    def save_for_backward(self, *tensors: Any) -> None:
        self._note("backward", tensors)
        self.whole.save_for_backward(*self._values(tensors))

    def save_for_forward(self, *tensors: Any) -> None:
        self._note("forward", tensors)
        self.whole.save_for_forward(*self._values(tensors))

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        forward = self.whole.in_jvp and self.whole.saved_for_forward is not None
        places = getattr(self.whole, f"places_{'forward' if forward else 'backward'}_{id(self.level)}", ())
        return tuple([
            tensor if place is None else BatchedTensor(tensor, place, self.level)
            for tensor, place in zip(self.whole.saved_tensors, places, strict=True)
        ])  # fmt: skip

    def mark_dirty(self, *tensors: Any) -> None:
        self.whole.mark_dirty(*self._values(tensors))

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.whole.mark_non_differentiable(*self._values(tensors))
