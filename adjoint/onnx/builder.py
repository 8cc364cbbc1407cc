"""The graph of an exported model under construction: its values by tensor, its nodes, and its constants."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy

import adjoint as torch

TYPES = {
    torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
    torch.float16: 10, torch.float64: 11, torch.complex64: 14, torch.complex128: 15, torch.bfloat16: 16,
}  # fmt: skip
"""ONNX's numbers for element types."""


class Extent(int):
    """The size of a dimension that may vary between runs: `factor` times a product of dimensions of inputs."""

    factor: int
    sources: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, value: int, factor: int, *sources: tuple[str, int]) -> Extent:
        """Return the size `value` in the captured run."""
        self = cls(value)
        self.factor, self.sources = factor, sources
        return self


class Builder:
    """Nodes, constants and names of values.

    Args:
        opset: the version of ONNX's operators.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.alive: list[Any] = []
        self.shapes: dict[int, list[int]] = {}
        self._counts: Counter[str] = Counter()

    def new_name(self, kind: str) -> str:
        """Return a new name for a value."""
        number = self._counts[kind]
        self._counts[kind] += 1
        return kind if not number and kind not in self.constants else f"{kind}_{number}"

    def op(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node, and return the name of its result, or of its results.

        Inputs are names, None for an omitted input, or arrays and numbers. Arrays and numbers become constants.

        Raises:
            RuntimeError: if an attribute is a size that may vary between runs.
        """
        names = [self.value(each) for each in inputs]
        while names and not names[-1]:
            names.pop()
        given = {name: value for name, value in attributes.items() if value is not None}
        for name, value in given.items():
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, Extent):
                    raise RuntimeError(
                        f"{kind} needs `{name}` as a number, but it depends on a dynamic dimension ({each.sources[0][0]}, "
                        f"dimension {each.sources[0][1]}): export the model with that dimension fixed"
                    )
        from onnx import helper

        results = [self.new_name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, results, **given))
        return results[0] if outputs == 1 else results

    def value(self, given: Any) -> str:
        """Return the name of a value, which is a tensor, an array, or already a name."""
        if given is None:
            return ""
        if isinstance(given, str):
            return given
        if isinstance(given, torch.Tensor):
            return self.names[id(given)]
        return self.constant(numpy.asarray(given))

    def constant(self, array: Any, name: str = "constant") -> str:
        """Return the name of a constant."""
        from onnx import numpy_helper

        name = self.new_name(name)
        self.constants[name] = numpy_helper.from_array(numpy.asarray(array, order="C"), name)
        return name

    def integers(self, values: Any) -> str:
        """Return a list of sizes as a value. It is a constant, unless some sizes may vary between runs."""
        if not any(isinstance(each, Extent) for each in values):
            return self.constant(numpy.array([int(each) for each in values], numpy.int64))
        parts = []
        for each in values:
            if not isinstance(each, Extent):
                parts.append(self.constant(numpy.array([int(each)], numpy.int64)))
                continue
            size: Any = None if each.factor == 1 else numpy.array([each.factor], numpy.int64)
            for name, dim in each.sources:
                one = self.op("Gather", self.op("Shape", name), numpy.array([dim], numpy.int64), axis=0)
                size = one if size is None else self.op("Mul", size, one)
            parts.append(size)
        return parts[0] if len(parts) == 1 else str(self.op("Concat", *parts, axis=0))

    def shape(self, tensor: Any) -> list[int]:
        """Return the sizes of a tensor. Sizes that may vary between runs are `Extent` objects."""
        return self.shapes.get(id(tensor)) or list(tensor.shape)

    def count(self, sizes: Any, dtype: Any) -> Any:
        """Return the product of sizes, as a number of a dtype."""
        if not any(isinstance(each, Extent) for each in sizes):
            return numpy.asarray(math.prod(int(each) for each in sizes), dtype.numpy)
        values = self.integers(sizes)
        dims = self.constant(numpy.array([0], numpy.int64)) if self.opset >= 18 else None
        given: dict[str, Any] = {} if self.opset >= 18 else {"axes": [0]}
        return self.cast(self.op("ReduceProd", values, dims, keepdims=0, **given), dtype)

    def cast(self, value: Any, dtype: Any) -> str:
        """Return a value with elements of another type."""
        return str(self.op("Cast", value, to=TYPES[dtype]))
