"""Export of modules to ONNX. One run is captured, and its operators become nodes."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy

import adjoint as torch

from ..utils._pytree import tree_leaves  # type: ignore[attr-defined]
from . import layers, operators  # noqa: F401  (they declare their rules)
from .builder import TYPES, Builder, Extent
from .capture import Call, Capture
from .rules import add_call

DEFAULT_OPSET = 18


class ONNXProgram:
    """An exported model.

    Attributes:
        model_proto: the model, as an object of the package `onnx`.
    """

    def __init__(self, model: Any) -> None:
        self.model_proto = model

    def save(self, destination: str | os.PathLike[str], **options: Any) -> None:
        """Write the model to a file."""
        import onnx

        onnx.save(self.model_proto, os.fspath(destination))

    def call_reference(self, *args: Any) -> list[Any]:
        """Run the model with the reference evaluator of the package `onnx`, which is slow and exact."""
        from onnx.reference import ReferenceEvaluator

        names = [each.name for each in self.model_proto.graph.input]
        given = {name: each.numpy(force=True) for name, each in zip(names, tree_leaves(args), strict=True)}
        return [torch.from_numpy(numpy.asarray(each)) for each in ReferenceEvaluator(self.model_proto).run(None, given)]

    __call__ = call_reference

    def __repr__(self) -> str:
        import onnx

        return f"ONNXProgram(\n{onnx.printer.to_text(self.model_proto.graph)}\n)"


@contextmanager
def _in_evaluation(model: Any, training: int) -> Iterator[None]:
    """Set the modes of a module's parts as the export requires: evaluation, unchanged, or training."""
    parts = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    before = [each.training for each in parts]
    if training != 1:
        for each in parts:
            each.training = training == 2
    try:
        yield
    finally:
        for each, was in zip(parts, before, strict=True):
            each.training = was


def _captured(
    model: Any, inputs: list[Any], args: Any, kwargs: Any, named: dict[str, Any]
) -> tuple[Capture, list[Any]]:
    capture = Capture(inputs, named.values())
    with torch.no_grad(), capture:
        outputs = model(*args, **kwargs)
    return capture, [each for each in tree_leaves(outputs) if isinstance(each, torch.Tensor)]


def dynamic_dims(names: list[str], inputs: list[Any], axes: Any) -> dict[tuple[str, int], str]:
    """Return the dimensions of inputs without a fixed size, with their names, from `dynamic_axes` or `dynamic_shapes`."""
    if not axes:
        return {}
    if not isinstance(axes, Mapping):
        axes = dict(zip(names, axes, strict=False))
    elif not any(name in names for name in axes):
        axes = dict(zip(names, axes.values(), strict=False))
    found: dict[tuple[str, int], str] = {}
    for name, dims in axes.items():
        if name not in names or dims is None:
            continue
        pairs = dims.items() if isinstance(dims, Mapping) else _pairs(name, dims)
        for dim, called in pairs:
            if called is None:
                continue
            rank = inputs[names.index(name)].ndim
            label = called if isinstance(called, str) else getattr(called, "__name__", f"{name}_dim_{dim}")
            found[name, dim % rank] = label if isinstance(label, str) else f"{name}_dim_{dim}"
    return found


def _pairs(name: str, dims: Any) -> list[tuple[int, Any]]:
    if all(isinstance(each, int) for each in dims):
        return [(dim, f"{name}_dynamic_axes_{number}") for number, dim in enumerate(dims, 1)]
    return list(enumerate(dims))


def _larger(
    inputs: list[Any], names: list[str], dims: dict[tuple[str, int], str]
) -> tuple[list[Any], dict[str, tuple[int, int]]]:
    """Return the inputs with other sizes of the dynamic dimensions, and both sizes of each dimension by its name."""
    sizes: dict[str, tuple[int, int]] = {}
    changed = list(inputs)
    for (name, dim), label in dims.items():
        place = names.index(name)
        size = inputs[place].shape[dim]
        _, other = sizes.setdefault(label, (size, size * 2 + 3 + 4 * len(sizes)))
        rows = torch.arange(other) % max(size, 1)
        changed[place] = changed[place].index_select(dim, rows)
    return changed, sizes


class _Sizes:
    """Finds the numbers that are sizes of dynamic dimensions, by comparing two runs."""

    def __init__(self, dims: dict[tuple[str, int], str], sizes: dict[str, tuple[int, int]]) -> None:
        self.sources = {label: source for source, label in reversed(dims.items())}
        self.sizes = sizes

    def joined(self, one: Any, other: Any, what: str) -> Any:
        """Return an argument of the first run, with an `Extent` in each place where it differs from the second run."""
        if one is None or isinstance(one, (torch.Tensor, bool)):
            return one
        if isinstance(one, (list, tuple)):
            if len(one) != len(other):
                raise RuntimeError(f"{what} depends on a dynamic dimension in a way that a graph of ONNX cannot say")
            return type(one)([self.joined(*pair, what) for pair in zip(one, other, strict=True)])
        if not isinstance(one, int) or one == other:
            if isinstance(one, float) and one != other:
                raise RuntimeError(f"{what} depends on a dynamic dimension: its argument {one} would be {other}")
            return one
        for count in (1, 2):
            for labels in combinations(self.sizes, count):
                size, larger = (math.prod(self.sizes[label][place] for label in labels) for place in (0, 1))
                if one * larger == other * size and size and one % size == 0:
                    return Extent.of(one, one // size, *(self.sources[label] for label in labels))
        raise RuntimeError(f"{what} has the argument {one}, which is {other} for another size of a dynamic dimension")


def _joined_calls(calls: list[Call], others: list[Call], sizes: _Sizes) -> dict[int, list[int]]:
    """Replace sizes of dynamic dimensions in the arguments of `calls` by `Extent` objects.

    Return the sizes of all tensors of these calls, by identity.
    """
    for call, other in zip(calls, others, strict=True):
        call.args = sizes.joined(call.args, other.args, str(call.func))
        call.keywords = {
            name: sizes.joined(value, other.keywords[name], str(call.func)) for name, value in call.keywords.items()
        }
    return {
        id(one): sizes.joined(list(one.shape), list(two.shape), str(call.func))
        for call, other in zip(calls, others, strict=True)
        for one, two in zip(_tensors_of(call), _tensors_of(other), strict=True)
    }


def _tensors_of(call: Call) -> list[Any]:
    """Return the argument and result tensors of a call."""
    return [each for each in tree_leaves((call.args, call.keywords, call.outputs)) if isinstance(each, torch.Tensor)]


def _keep_varying(capture: Capture, second: Capture) -> None:
    """Also keep calls on constants alone, if the sizes of the constants depend on dynamic dimensions."""
    if [str(call.func) for call in capture.every] != [str(call.func) for call in second.every]:
        raise RuntimeError(
            "the model runs other operators for other sizes of its dynamic dimension: its loops and conditions depend on it"
        )
    varying: set[int] = set()
    for one, other in ((capture, second), (second, capture)):
        kept = []
        traced = {id(call) for call in one.calls}
        for call, twin in zip(one.every, other.every, strict=True):
            pairs = zip(_tensors_of(call), _tensors_of(twin), strict=True)
            varying |= {id(tensor) for tensor, same in pairs if tensor.shape != same.shape}
            takes = [each for each in tree_leaves((call.args, call.keywords)) if isinstance(each, torch.Tensor)]
            if id(call) in traced or any(id(each) in varying for each in takes):
                kept.append(call)
                outputs = {id(each) for each in call.outputs if isinstance(each, torch.Tensor)}
                varying |= outputs
                one.computed |= outputs
        one.calls = kept


def _paired_constants(calls: list[Call], others: list[Call]) -> dict[int, Any]:
    """Return the tensor of the second run that corresponds to each tensor of the first run, by identity."""
    pairs: dict[int, Any] = {}
    for call, other in zip(calls, others, strict=True):
        given = zip(tree_leaves((call.args, call.keywords)), tree_leaves((other.args, other.keywords)), strict=True)
        pairs.update({id(one): two for one, two in given if isinstance(one, torch.Tensor)})
    return pairs


def _constant(builder: Builder, tensor: Any, other: Any, sizes: _Sizes | None) -> str:
    """Add a tensor that does not depend on the inputs.

    If its shape depends on the shapes of inputs, it is created in each run.
    """
    array = tensor.numpy(force=True)
    if other is None or sizes is None or other.shape == tensor.shape:
        return builder.constant(array)
    shape = sizes.joined(list(tensor.shape), list(other.shape), "a constant")
    if array.size and bool((array == array.flat[0]).all()):
        return str(builder.op("Expand", array.flat[:1].reshape(()), builder.integers(shape)))
    steps = numpy.arange(array.shape[0]) if array.ndim == 1 else None
    if steps is not None and bool((array == steps).all()):
        count = builder.op("Squeeze", builder.integers(shape), numpy.array([0], numpy.int64))
        made = builder.op("Range", numpy.array(0, numpy.int64), count, numpy.array(1, numpy.int64))
        return builder.cast(made, tensor.dtype)
    raise RuntimeError(
        f"a constant of shape {tuple(tensor.shape)} depends on a dynamic dimension in a way that is not known"
    )


def exported(
    model: Any,
    args: Any,
    kwargs: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    opset: int,
    axes: Any,
    training: int,
    keep_initializers_as_inputs: bool,
) -> ONNXProgram:
    """Return the model of one run of `model`."""
    from onnx import numpy_helper

    args = (args,) if isinstance(args, torch.Tensor) or not isinstance(args, (tuple, list)) else tuple(args)
    kwargs = dict(kwargs or {})
    inputs = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    names = _input_names(model, args, kwargs, len(inputs), input_names)
    named = dict(_named_tensors(model))
    dims = dynamic_dims(names, inputs, axes)
    with _in_evaluation(model, training):
        capture, outputs = _captured(model, inputs, args, kwargs, named)
        sizes, others, shapes = None, {}, {}
        if dims:
            changed, pairs = _larger(inputs, names, dims)
            replaced = iter(changed)
            swapped = _with_tensors((args, kwargs), replaced)
            second, _ = _captured(model, changed, swapped[0], swapped[1], named)
            sizes = _Sizes(dims, pairs)
            _keep_varying(capture, second)
            shapes = _joined_calls(capture.calls, second.calls, sizes)
            others = _paired_constants(capture.calls, second.calls)
    builder = Builder(opset)
    builder.shapes = shapes
    for name, tensor in zip(names, inputs, strict=True):
        builder.names[id(tensor)] = builder.new_name(name)
    parameters = {id(tensor): name for name, tensor in named.items()}

    def known(tensor: Any) -> None:
        """Give a tensor the name of a parameter or of a constant, if it has no name."""
        if id(tensor) in builder.names:
            return
        if id(tensor) in capture.computed:
            raise RuntimeError("the model uses a result of an operator that ONNX's operator does not have")
        name = parameters.get(id(tensor))
        if name is not None:
            builder.names[id(tensor)] = name
            builder.constants[name] = numpy_helper.from_array(tensor.numpy(force=True), name)
        elif id(tensor) in capture.transposed:
            source = capture.transposed[id(tensor)]
            known(source)
            builder.names[id(tensor)] = str(builder.op("Transpose", source, perm=[1, 0]))
        else:
            builder.names[id(tensor)] = _constant(builder, tensor, others.get(id(tensor)), sizes)

    for call in _used(capture.calls, outputs):
        for each in tree_leaves((call.args, call.keywords)):
            if isinstance(each, torch.Tensor):
                known(each)
        add_call(builder, call)
    return ONNXProgram(
        _model(builder, names, inputs, outputs, output_names, dims, sizes, known, keep_initializers_as_inputs)
    )


def _used(calls: list[Call], outputs: list[Any]) -> list[Call]:
    """Return the calls on which the outputs depend."""
    needed = {id(tensor) for tensor in outputs}
    kept = []
    for call in reversed(calls):
        if any(id(each) in needed for each in call.outputs):
            kept.append(call)
            needed |= {id(each) for each in tree_leaves((call.args, call.keywords))}
    return kept[::-1]


def _with_tensors(value: Any, tensors: Iterator[Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)([_with_tensors(each, tensors) for each in value])
    if isinstance(value, dict):
        return {name: _with_tensors(each, tensors) for name, each in value.items()}
    return value


def _named_tensors(model: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(model, torch.nn.Module):
        yield from model.named_parameters(remove_duplicate=True)
        yield from model.named_buffers(remove_duplicate=True)


def _input_names(model: Any, args: tuple[Any, ...], kwargs: Any, count: int, given: Sequence[str] | None) -> list[str]:
    """Return the names of the inputs: the given names, then the names of the parameters of `forward`."""
    function = model.forward if isinstance(model, torch.nn.Module) else model
    own: list[str] = []
    parameters = list(inspect.signature(function).parameters.values())
    for number, value in enumerate(args):
        parameter = parameters[min(number, len(parameters) - 1)] if parameters else None
        base = f"input_{number}" if parameter is None or parameter.kind is parameter.VAR_POSITIONAL else parameter.name
        several = [each for each in tree_leaves(value) if isinstance(each, torch.Tensor)]
        own += [base] if isinstance(value, torch.Tensor) else [f"{base}_{place}" for place in range(len(several))]
    own += [name for name, value in kwargs.items() if isinstance(value, torch.Tensor)]
    own += [f"input_{number}" for number in range(len(own), count)]
    return [*(given or ()), *own[len(given or ()) :]][:count]


def _model(
    builder: Builder, names: list[str], inputs: list[Any], outputs: list[Any], output_names: Any, dims: Any, sizes: Any,
    known: Any, keep_initializers: bool,
) -> Any:  # fmt: skip
    """Return the model with its inputs, outputs, nodes and constants."""
    import onnx
    from onnx import helper

    def info(name: str, tensor: Any, shape: Any) -> Any:
        return helper.make_tensor_value_info(name, TYPES[tensor.dtype], shape)

    shown = [[dims.get((name, dim), size) for dim, size in enumerate(tensor.shape)]
             for name, tensor in zip(names, inputs, strict=True)]  # fmt: skip
    given = [info(name, tensor, shape) for name, tensor, shape in zip(names, inputs, shown, strict=True)]
    made = []
    for number, tensor in enumerate(outputs):
        known(tensor)
        wanted = output_names[number] if output_names and number < len(output_names) else f"output_{number}"
        builder.nodes.append(helper.make_node("Identity", [builder.names[id(tensor)]], [wanted]))
        shape = [None] * tensor.ndim if dims else list(tensor.shape)
        made.append(info(wanted, tensor, shape))
    if keep_initializers:
        given += [
            helper.make_tensor_value_info(name, each.data_type, list(each.dims))
            for name, each in builder.constants.items()
        ]
    graph = helper.make_graph(builder.nodes, "main_graph", given, made, list(builder.constants.values()))
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", builder.opset)],
        producer_name="adjoint",
        producer_version=torch.__version__,
    )
    model.ir_version = min(model.ir_version, 10)
    onnx.checker.check_model(model)
    if dims:
        model = onnx.shape_inference.infer_shapes(model)
    return model
