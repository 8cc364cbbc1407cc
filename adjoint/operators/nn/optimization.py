"""Steps of optimizers over lists of parameters, in place: one walk over the memory of each instead of one for each operation.

They are not recorded: optimizers take their steps without gradients.
"""

from __future__ import annotations

from ...dispatch.decorators import public
from ...kernels.nn import optimization as kernels
from ...tape import modes
from ...tape.versions import about_to_change, bump_all
from ...tape.views import check_inplace


def _check(name, params):
    if modes.is_grad_enabled():
        for param in params:
            check_inplace(param)


def _number(value):
    return value.item() if hasattr(value, "item") else value


@public(namespace="torch")
def _fused_sgd_(
    self,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale=None,
    found_inf=None,
):
    """A step of `optim.SGD` for each of the parameters `self`; in the first step the momentum buffers are filled."""
    _check("_fused_sgd_", self)
    lr = _number(lr)
    buffers = momentum_buffer_list or [None] * len(self)
    for param, grad, buffer in zip(self, grads, buffers, strict=True):
        about_to_change(param)
        held = None if buffer is None or is_first_step else buffer._array
        made = kernels.sgd_step(
            param._array, grad._array, held, lr, momentum, dampening, weight_decay, nesterov, maximize
        )
        if buffer is not None and is_first_step:
            buffer._array[...] = made
    bump_all([*self, *(buffer for buffer in buffers if buffer is not None)], "_fused_sgd_", depth=2)


def _adam(name, decoupled):
    def step(
        self,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        *,
        lr,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale=None,
        found_inf=None,
    ):
        _check(name, self)
        lr = _number(lr)
        largest = max_exp_avg_sqs if amsgrad else [None] * len(self)
        for param, grad, mean, square, most, count in zip(
            self, grads, exp_avgs, exp_avg_sqs, largest, state_steps, strict=True
        ):
            about_to_change(param)
            kernels.adam_step(
                param._array,
                grad._array,
                mean._array,
                square._array,
                None if most is None else most._array,
                _number(count),
                lr,
                beta1,
                beta2,
                eps,
                weight_decay,
                decoupled,
                maximize,
            )
        bump_all([*self, *exp_avgs, *exp_avg_sqs, *(most for most in largest if most is not None)], name, depth=2)

    step.__name__ = step.__qualname__ = name
    step.__doc__ = (
        f"A step of `optim.{'AdamW' if decoupled else 'Adam'}` for each of the parameters `self`; "
        "`state_steps` count from 1."
    )
    return public(namespace="torch")(step)


_fused_adam_ = _adam("_fused_adam_", decoupled=False)
_fused_adamw_ = _adam("_fused_adamw_", decoupled=True)
