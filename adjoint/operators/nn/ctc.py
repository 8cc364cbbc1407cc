"""The loss of connectionist temporal classification, for sequences of labels without known positions in time."""

from __future__ import annotations

import math

from ...dispatch.annotations import Array
from ...dispatch.decorators import internal, public, tensors
from ...kernels.nn import ctc as kernels
from ...tensor import Tensor
from ..declaring.formulas import underived


@internal(kernels.ctc_loss, out=False, node="CtcLossBackward0", outputs=("result0", "result1"), aten_name="_ctc_loss")
class ctc_loss_of:
    """The loss of each sample, and the log-probabilities of the states."""

    nondifferentiable = ("result1",)

    def forward(log_probs: Array, targets: Array, input_lengths, target_lengths, blank, zero_infinity): ...

    def grad_log_probs(
        grads, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity, xp
    ):
        if grads[0] is None:
            return None
        return xp.ctc_loss_backward(
            grads[0], log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
        )


@internal(kernels.ctc_loss_backward, out=False, node="NotImplemented", aten_name="_ctc_loss_backward")
class ctc_loss_backward:
    """The gradient of the log-probabilities."""

    def forward(
        grad_output: Array,
        log_probs: Array,
        targets: Array,
        input_lengths,
        target_lengths,
        loss: Array,
        states: Array,
        blank,
        zero_infinity,
    ): ...

    def grad_grad_output(
        grad, grad_output, log_probs, targets, input_lengths, target_lengths, loss, states, blank, zero_infinity, xp
    ):
        slope = xp.ctc_loss_backward(
            xp.ones_like(grad_output),
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            loss,
            states,
            blank,
            zero_infinity,
        )
        return (grad * slope).sum((0, 2))

    grad_log_probs = underived("_ctc_loss_backward")


def _lengths(value, name):
    if not isinstance(value, Tensor):
        return tuple(value)
    if value.is_floating_point() or value.is_complex():
        raise RuntimeError(f"{name} must be integral")
    return tuple(value.reshape(-1).tolist())


_CHECKING = "(while checking arguments for ctc_loss_allocate_outputs)"


def _check(log_probs, targets, inputs, lengths, blank):
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' {_CHECKING}"
        )
    times, count, labels = log_probs.shape
    if not 1 <= targets.ndim <= 2:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {_CHECKING}"
        )
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    for name, values in (("input_lengths", inputs), ("target_lengths", lengths)):
        if len(values) != count:
            raise RuntimeError(f"{name} must be of size batch_size")
    for name, values in (("target_lengths", lengths), ("input_lengths", inputs)):
        if min(values, default=0) < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {min(values)} {_CHECKING}")
    wrong = None
    if targets.ndim == 1 and targets.shape[0] != sum(lengths):
        wrong = f"size {sum(lengths)} at dimension 0, but got size {targets.shape[0]}"
    elif targets.ndim == 2 and targets.shape[0] != count:
        wrong = f"size {count} at dimension 0, but got size {targets.shape[0]}"
    elif targets.ndim == 2 and targets.shape[1] < max(lengths, default=0):
        wrong = f"size at least {max(lengths)} at dimension 1, but got size {targets.shape[1]}"
    if wrong is not None:
        raise RuntimeError(f"Expected tensor to have {wrong} for argument #2 'targets' {_CHECKING}")
    if max(inputs, default=0) > times:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {times}, but got value {max(inputs)} {_CHECKING}"
        )


@public()
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity: bool = False):
    """The loss of connectionist temporal classification; see `nn.functional.ctc_loss`.

    `reduction` is 0 (none), 1 (mean) or 2 (sum).
    """
    if 0 in log_probs._array.shape:
        raise RuntimeError("log_probs tensor must not be empty")
    inputs, lengths = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
    batched = log_probs.ndim != 2 or len(inputs) != 1
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.ndim == 1 else targets
    targets = targets if targets.dtype.scalar_type == "Long" else targets.long()
    _check(log_probs, targets, inputs, lengths, blank)
    loss = ctc_loss_of(log_probs, targets, inputs, lengths, blank, zero_infinity)[0]
    if zero_infinity:
        loss = tensors.where(loss == math.inf, loss.new_zeros(()), loss)
    if reduction == 1:
        counts = log_probs.new_tensor([max(length, 1) for length in lengths])
        return (loss / counts).mean()
    if reduction == 2:
        return loss.sum()
    return loss if batched else loss.squeeze(0)
