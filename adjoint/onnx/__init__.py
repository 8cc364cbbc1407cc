"""`torch.onnx`: export of modules as ONNX models, with the package `onnx` (the extra `onnx`)."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from enum import IntEnum
from importlib.util import find_spec
from typing import Any

from .._runtime.absent import absent
from .._runtime.first_use import import_late
from .._runtime.installed import install
from .._runtime.tracebacks import end_at_caller

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class _Exporting(threading.local):
    """The number of active exports in this thread."""

    depth = 0


_exporting = _Exporting()


class OnnxExporterError(RuntimeError):
    """The error for a model that cannot be exported."""


class TrainingMode(IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """The kinds of operators that programs may request. Models always contain ONNX's operators."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Any = None,
    training: int = TrainingMode.EVAL,
    **options: Any,
) -> Any:
    """Write a module as an ONNX model. The module runs once, and the operators that it calls become the graph.

    Loops and conditions are fixed to their behaviour for these inputs. Dimensions named in `dynamic_axes` or
    `dynamic_shapes` may have any size. The module then runs with another size too, and sizes that change with it are
    computed in the graph.

    Args:
        model: a module, or a function of tensors.
        args: the arguments of the module, or its only tensor.
        f: the file to write, as a path or an open file. None writes no file.
        kwargs: the keyword arguments of the module.
        input_names: the names of the inputs; by default the names of the parameters of `forward`.
        output_names: the names of the outputs.
        opset_version: the version of ONNX's operators, at least 15; 18 by default.
        dynamic_axes: for the name of an input, its dynamic dimensions: `{"x": {0: "batch"}}` or `{"x": [0]}`.
        dynamic_shapes: the dynamic dimensions by parameter, or one entry for each input, as in PyTorch's newer exporter.
        keep_initializers_as_inputs: whether parameters are inputs too.
        training: the mode of the module during export; evaluation by default.
        verbose, dynamo, external_data, export_params, options: accepted for compatibility with PyTorch, without effect.

    Returns:
        The model as an `ONNXProgram`.

    Raises:
        OnnxExporterError: if the module calls an unsupported operator, or reads an element of a computed tensor.
    """
    if find_spec("onnx") is None:
        raise OnnxExporterError(f"Exporting needs the package onnx: {install('onnx')}")
    program = import_late("adjoint.onnx.program")
    opset = program.DEFAULT_OPSET if opset_version is None else opset_version
    if opset < 15:
        raise ValueError(f"Unsupported ONNX opset version: {opset}. Versions from 15 on are written.")
    _exporting.depth += 1
    try:
        made = program.exported(
            model, args, kwargs, input_names, output_names, opset, dynamic_axes or dynamic_shapes, int(training),
            keep_initializers_as_inputs,
        )  # fmt: skip
    except RuntimeError as error:
        if isinstance(error, OnnxExporterError):
            raise
        raise OnnxExporterError(str(error)) from error
    finally:
        _exporting.depth -= 1
    if hasattr(f, "write"):
        f.write(made.model_proto.SerializeToString())
    elif f is not None:
        made.save(f)
    return made


def is_in_onnx_export() -> bool:
    """Return whether this thread is exporting a model."""
    return _exporting.depth > 0


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int, **options: Any) -> None:
    """Accept a symbolic function for PyTorch's older exporter. It is not used."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Do nothing, because no function is stored."""


def __getattr__(name: str) -> Any:
    if name == "ONNXProgram":
        return import_late("adjoint.onnx.program").ONNXProgram
    if name.startswith(("symbolic_opset", "ONNX", "Operator", "Jit", "Onnx")):
        return absent(f"torch.onnx.{name}", "it belongs to PyTorch's older exporter")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


end_at_caller(globals(), "__getattr__", "export")
