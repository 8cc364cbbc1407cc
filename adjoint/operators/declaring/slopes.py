"""Operators that are declared together with their derivative, which is an operator with its own node.

    @with_slope(kernels.mish, refusal="mish_backward_cpu")
    class mish:
        def forward(self: Array): ...
        def grad_self(grad, self, xp):
            tanh = kernels.tanh_of_softplus(self)
            return grad * (tanh + self * xp.sigmoid(self) * (1 - tanh * tanh))
        def slope_grad_self(grad, grad_output, self, xp):
            return grad * grad_output * xp.mish_curvature(self)

`grad_self` is one expression of elements. The traced formula is the kernel of `mish_backward`, for example, and the
node of `mish` calls that operator.

    @operator(view=True, kernel=kernels.select)
    @with_transpose(kernels.select_backward)
    class select:
        def forward(self: Array, dim: Int, index: Int): ...

`select_backward(grad, shape, dim, index)` is the derivative of `select`, which is linear, and `select` is its derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...codegen.pointwise import Refusing, pointwise
from ...dispatch.declaration import ARRAY, TENSORS, parameters_of
from ...dispatch.decorators import internal, operator
from ...dispatch.source import compile_source
from .formulas import zero


def with_slope(
    kernel: Any, *, refusal: Refusing, kinds: str = "f", slope: dict[str, Any] | None = None, **options: Any
) -> Callable[[type], Any]:
    """Declare a pointwise operator, and the operator with the suffix `_backward` that computes its derivative times a gradient.

    `slope_grad_self` of the class is the formula for the derivative of the derivative with respect to `self`, if it is
    not 0. `slope_grad_output` is given if the derivative with respect to the gradient is not the derivative itself.

    Args:
        kernel: the kernel of the operator.
        refusal: PyTorch's name of the derivative's kernel, for errors about unsupported dtypes.
        kinds: NumPy's kinds of the dtypes that the operator accepts.
        slope: options of the derivative (see `decorators.operator`).
        options: options of the operator.
    """

    def declare(declaration: type) -> Any:
        members = vars(declaration)
        expression = members["grad_self"]
        name = f"{declaration.__name__}_backward"
        parameters = [parameter for parameter in parameters_of(expression) if parameter not in ("grad", "self", "xp")]
        written = _functions(name, parameters)
        traced = FunctionType(expression.__code__, expression.__globals__, name, None, expression.__closure__)
        traced.__doc__ = f"The derivative of `{declaration.__name__}` times `grad`."
        scalars = dict.fromkeys(parameters, "Number")
        traced.__annotations__ = {"grad": ARRAY, "self": ARRAY, **scalars}
        written["forward"].__annotations__ = {"grad_output": ARRAY, "self": ARRAY, **scalars}
        derivative = {
            "__doc__": f"The derivative of `{declaration.__name__}` times `grad_output`.",
            "__module__": declaration.__module__,
            "forward": written["forward"],
            "grad_grad_output": members.get("slope_grad_output", written["grad_self"]),
            "grad_self": members.get("slope_grad_self", zero),
        }
        chosen = slope or {}
        if "tangent" not in chosen:
            chosen = {"batch": "elementwise", **chosen}
        internal(pointwise(refusal, kinds)(traced), **chosen)(type(name, (), derivative))
        declaration.grad_self = written["grad_self"]  # type: ignore[attr-defined]
        return operator(kernel=kernel, **options)(declaration)

    return declare


def with_transpose(kernel: Any, **options: Any) -> Callable[[type], type]:
    """Declare the transpose of a linear operator as the operator with the suffix `_backward`.

    Its arguments are the gradient, the shape of `self`, and the other positional arguments of the operator. The class may
    define `grad_self`, if more than the shape has to be saved.

    Args:
        kernel: the kernel of the transpose.
        options: options of the transpose (see `decorators.operator`).
    """

    def declare(declaration: Any) -> type:
        forward, name = declaration.forward, declaration.__name__
        more = "".join(f", {parameter}" for parameter in parameters_of(forward)[1:])
        source = (
            f"def forward(self, shape{more}): ...\n\n"
            f"def to_self(grad, self_shape{more}, xp):\n    return xp.{name}_backward(grad, self_shape{more})\n\n"
            f"def to_grad(grad{more}, xp):\n    return xp.{name}(grad{more})\n"
        )
        written = compile_source(source, f"<adjoint {name} transpose>", {})
        tensors = {parameter: kind for parameter, kind in forward.__annotations__.items() if kind in TENSORS}
        written["forward"].__annotations__, written["forward"].__defaults__ = tensors, forward.__defaults__
        if not hasattr(declaration, "grad_self"):
            declaration.grad_self = written["to_self"]
        transpose = {
            "__doc__": f"Zeros of `shape`, with `input` added to the elements that `{name}` reads.",
            "__module__": declaration.__module__,
            "forward": written["forward"],
            "grad_self": written["to_grad"],
            "lists": vars(declaration).get("lists", ()),
        }
        declared = internal(kernel, **{"tangent": "linear", "batch": "expanded", **options})
        declared(type(f"{name}_backward", (), transpose))
        return declaration

    return declare


def _functions(name: str, parameters: list[str]) -> dict[str, Any]:
    """Return the signature of the derivative, and the formulas of the operator and the derivative. Both call the derivative."""
    more = "".join(f", {parameter}" for parameter in parameters)
    source = (
        f"def forward(grad_output, self{more}): ...\n\n"
        f"def grad_self(grad, self{more}, xp):\n    return xp.{name}(grad, self{more})\n"
    )
    return compile_source(source, f"<adjoint {name} formulas>", {})
