"""PyTorch's `*_backward` operators without a counterpart here, computed as gradients of the operators they belong to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._runtime.first_use import import_late
from ..tensor import Tensor
from .schemas import schema_of

Values = dict[str, Any]

_SAME_NAME = """
    affine_grid_generator convolution cumprod glu grid_sampler_2d grid_sampler_3d huber_loss matrix_exp mse_loss
    multi_margin_loss native_batch_norm native_group_norm native_layer_norm smooth_l1_loss soft_margin_loss trace
    _weight_norm_interface
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_trilinear3d _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_lanczos2d_aa _upsample_nearest_exact3d
""".split()

FORWARD = {f"{name}_backward": name for name in _SAME_NAME} | {
    "_cdist_backward": "_cdist_forward",
    "_pdist_backward": "_pdist_forward",
    "infinitely_differentiable_gelu_backward": "gelu",
    "multilabel_margin_loss_backward": "multilabel_margin_loss_forward",
}
"""The operator whose gradient is computed, by the name of the operator that computes it."""


def backward_named(name: str) -> Callable[..., Any] | None:
    """Return the function that computes an operator of `FORWARD` from PyTorch's arguments, or None."""
    return partial(_gradients, name) if name in FORWARD else None


def _gradients(name: str, *args: Any, **names: Any) -> Any:
    """Return the gradients with respect to the first tensors of the operator: as many as PyTorch returns.

    The results are recorded, so that they have derivatives as well.
    """
    torch = import_late("adjoint")
    schema, forward = schema_of(name, "default"), schema_of(FORWARD[name], "default")
    assert schema is not None
    assert forward is not None
    values = {each.name: each.whole_default() for each in schema.arguments if not each.required}
    values |= dict(zip((each.name for each in schema.arguments), args, strict=False)) | names
    grad = values.pop(next(each for each in values if each.startswith("grad")))
    needs = values.pop("output_mask", (True,) * len(schema.returns))
    given = {}
    for each in forward.arguments:
        if each.name in values:
            given[each.name] = values[each.name]
        elif each.name in _DERIVED:
            given[each.name] = _DERIVED[each.name](values, grad)
    tensors = [each.name for each in forward.arguments if each.element == "Tensor" and each.name in given]
    wanted = [key for key, need in zip(tensors, needs, strict=False) if need and given[key] is not None]

    def forward_of(*inputs: Tensor) -> Tensor:
        result = getattr(torch.ops.aten, FORWARD[name])(**given | dict(zip(wanted, inputs, strict=True)))
        return result[0] if isinstance(result, tuple) else result

    found = torch.func.vjp(forward_of, *(given[key] for key in wanted))[1](grad) if wanted else ()
    gradients = dict(zip(wanted, found, strict=True))
    several = tuple(gradients.get(key) for key in tensors[: len(schema.returns)])
    return several if len(several) > 1 else several[0]


def _input(values: Values, grad: Tensor) -> Tensor:
    for name in ("self", "input", "x1"):
        if name in values:
            found: Tensor = values[name]
            return found
    size = next(values[name] for name in ("input_size", "sizes") if name in values)
    return grad.new_zeros(size)


def _bias(values: Values, grad: Tensor) -> Tensor | None:
    """Return any bias: gradients do not depend on it."""
    if "bias_sizes" in values:
        return None if not any(values["bias_sizes"] or ()) else grad.new_zeros(values["bias_sizes"])
    return grad.new_zeros(values["input"].shape[1])


def _eps(values: Values, grad: Tensor) -> float:
    """Return the number that was added to the variances, from their reciprocal square roots."""
    rows: Any = values["input"].detach()
    rstd: Any = values["rstd"].detach()
    if not rows.numel():
        return 0.0
    variance = rows.reshape(rstd.numel(), -1).var(1, correction=0)
    return float((rstd.flatten()[0] ** -2 - variance[0]).item())


def _theta(values: Values, grad: Tensor) -> Tensor:
    count, dims = values["size"][0], len(values["size"]) - 2
    return grad.new_zeros(count, dims, dims + 1)


_DERIVED: dict[str, Callable[[Values, Tensor], Any]] = {
    "self": _input,
    "input": _input,
    "bias": _bias,
    "eps": _eps,
    "theta": _theta,
    "training": lambda values, grad: values["train"],
    "momentum": lambda values, grad: 0.0,
    "compute_mode": lambda values, grad: None,
    "v": lambda values, grad: values["saved_v"],
    "g": lambda values, grad: values["saved_g"],
}
"""Arguments of the operator that the operator for its gradient does not have, computed from those that it has."""
