"""Fusing batch normalization in evaluation with the preceding linear map or convolution."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import adjoint as torch
from adjoint import Tensor

from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

_M = TypeVar("_M", bound=Any)


def fuse_conv_bn_eval(conv: _M, bn: Any, transpose: bool = False) -> _M:
    """Return a convolution with the same results as `conv` followed by `bn`. Both modules are in evaluation mode.

    Args:
        transpose: whether `conv` is a transposed convolution.
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the convolution of `fuse_conv_bn_eval`."""
    channels = [-1] + [1] * (conv_w.dim() - 1)
    if transpose:
        channels[:2] = [1, -1]
    factor, bias = _fused(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, conv_w)
    weight = (conv_w * factor.reshape(channels)).to(conv_w.dtype)
    return Parameter(weight, conv_w.requires_grad), bias


def fuse_linear_bn_eval(linear: _M, bn: Any) -> _M:
    """Return a linear map with the same results as `linear` followed by `bn`. Both modules are in evaluation mode."""
    _check(linear, bn)
    if not (linear.out_features == bn.num_features or bn.num_features == 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the linear map of `fuse_linear_bn_eval`."""
    factor, bias = _fused(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, linear_w)
    return Parameter((linear_w * factor.unsqueeze(-1)).to(linear_w.dtype), linear_w.requires_grad), bias


def _check(module: Any, bn: Any) -> None:
    if module.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("running_mean or running_var is None for batch norm")


def _fused(
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    weight: Tensor,
) -> tuple[Tensor, Parameter]:
    """Return the factor of each channel, and the fused bias."""
    given = torch.zeros_like(mean) if bias is None else bias
    factor = torch.rsqrt(var + eps) * (torch.ones_like(mean) if scale is None else scale)
    joined = (given - mean) * factor + (torch.zeros_like(mean) if shift is None else shift)
    dtype, requires_grad = (weight.dtype, weight.requires_grad) if bias is None else (bias.dtype, bias.requires_grad)
    return factor, Parameter(joined.to(dtype), requires_grad)
