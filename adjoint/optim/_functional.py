"""Optimizers as functions of lists of parameters, gradients, state tensors, and step counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import adjoint as torch

from .._runtime.tracebacks import ending_at_caller
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .matrices import Adafactor, Muon
from .optimizer import Optimizer
from .scaling import Adadelta, Adagrad, RMSprop, Rprop
from .sgd import ASGD, SGD
from .sparse_adam import SparseAdam

__all__ = [
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd", "muon", "nadam", "radam", "rmsprop", "rprop",
    "sgd", "sparse_adam",
]  # fmt: skip

STATES = {
    "momentum_buffer_list": "momentum_buffer",
    "muon_momentum_bufs": "momentum_buffer",
    "state_sums": "sum",
    "state_steps": "step",
    **{f"{each}s": each for each in "exp_avg exp_avg_sq max_exp_avg_sq exp_inf mu_product square_avg grad_avg".split()},
    **{f"{each}s": each for each in "acc_delta ax mu eta prev step_size row_var col_var variance".split()},
}
"""The names of optimizer states, by the names of the list arguments."""

PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
    "eps": ("eps1", "eps2"),
}
"""The names of the two keyword options of these functions, by the names of the optimizer options."""

FLAGS = dict.fromkeys(
    ("capturable", "decoupled_weight_decay", "differentiable", "has_complex", "has_sparse_grad", "maximize"), False
)
"""The defaults of flags that are not None."""


def _function(kind: type[Optimizer], lists: str, flags: str, options: str, grads: str = "grads") -> Callable[..., None]:
    """Return the function that performs the step of an optimizer class.

    Args:
        kind: the optimizer class.
        lists: the names of the lists of states.
        flags: the names of the arguments with defaults.
        options: the names of the keyword arguments.
        grads: the name of the list of gradients.
    """
    ordered = Signature(
        [
            *(Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in ("params", grads, *lists.split())),
            *(Parameter(each, Parameter.POSITIONAL_OR_KEYWORD, default=FLAGS.get(each)) for each in flags.split()),
            *(
                Parameter(each, Parameter.KEYWORD_ONLY, default=None if each == "foreach" else Parameter.empty)
                for each in options.split()
            ),
        ]
    )
    function = _step(kind, kind.__name__.lower(), ordered, {})
    function.kind = kind  # type: ignore[attr-defined]
    return function


def _step(kind: type[Optimizer], name: str, signature: Signature, settings: dict[str, Any]) -> Callable[..., None]:
    """Return a function with this signature that performs the step of an optimizer class with some options set."""
    grads, *arguments = list(signature.parameters)[1:]
    lists = [each for each in arguments if each in STATES]
    stateless: type[Optimizer] = type(kind.__name__, (kind,), {"_gradients": lambda self, group: group[grads]})

    def function(*args: Any, **names: Any) -> None:
        try:
            bound = signature.bind(*args, **names)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        given = bound.arguments
        if given.get("found_inf"):
            return
        # Operations are recorded if gradients are enabled, regardless of the flag.
        group = {**kind._later_options, **given, **settings, "differentiable": torch.is_grad_enabled()}
        group.update({pair: (given[a], given[b]) for pair, (a, b) in PAIRS.items() if a in given})
        if given.get("grad_scale") is not None:
            group[grads] = [None if grad is None else grad / given["grad_scale"] for grad in given[grads]]
        states: defaultdict[Any, Any] = defaultdict(dict)
        for each in lists:
            for param, value in zip(given["params"], given[each], strict=False):  # unused lists are empty
                states[param][STATES[each]] = value
        _count(kind, states)
        optimizer = stateless.__new__(stateless)
        optimizer.state, optimizer.param_groups = states, [group]
        optimizer._update_group(group)
        for each in lists:  # states that have begun
            for place, (param, value) in enumerate(zip(given["params"], given[each], strict=False)):
                if value is None:
                    given[each][place] = states[param].get(STATES[each])

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = f"""Change parameters, and the states in the lists, as `{kind.__name__}` does in a step.

    Parameters whose gradient is None stay as they are. Nothing is changed if `found_inf` is not zero.
    """
    return ending_at_caller(function)


def _variants(function: Callable[..., None], kinds: str) -> dict[str, Callable[..., None]]:
    """Return PyTorch's variants of a function, which differ in speed there. All options are required."""
    parameters = signature(function).parameters.values()
    listed = [each.name for each in parameters if each.default is each.empty and each.kind is not each.KEYWORD_ONLY]
    listed += [each.name for each in parameters if each.name in _SCALED.split()]
    options = [each.name for each in parameters if each.name not in (*listed, "foreach", "fused")]
    listed[1] = "grads"
    required = Signature(
        [
            *(Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in listed),
            *(Parameter(each, Parameter.KEYWORD_ONLY) for each in options),
        ]
    )
    found = {}
    for each in kinds.split():
        name = f"_{each}_{function.__name__}"
        settings = {"foreach": each == "multi_tensor", "fused": each == "fused"}
        found[name] = _step(function.kind, name, required, settings)  # type: ignore[attr-defined]
    return found


def _count(kind: type[Optimizer], states: dict[Any, dict[str, Any]]) -> None:
    """Refuse step counts that are not tensors. The step counts of `SparseAdam` are numbers that include the current step."""
    for state in states.values():
        if kind is SparseAdam:
            state["step"] -= 1
        elif not isinstance(state.get("step", torch.tensor(0)), torch.Tensor):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


_SCALED = "grad_scale found_inf"
_MOMENTS = "exp_avgs exp_avg_sqs"
_BETAS = "beta1 beta2 lr weight_decay eps"
_COMMON = "foreach maximize differentiable capturable has_complex"

adadelta = _function(
    Adadelta,
    "square_avgs acc_deltas state_steps",
    "capturable foreach differentiable has_complex",
    "lr rho eps weight_decay maximize",
)
adafactor = _function(
    Adafactor,
    "row_vars col_vars variances state_steps",
    f"foreach {_SCALED} has_complex",
    "d lr beta2_decay weight_decay eps1 eps2 maximize",
)
adagrad = _function(
    Adagrad,
    "state_sums state_steps",
    f"fused {_SCALED} has_sparse_grad foreach differentiable has_complex",
    "lr weight_decay lr_decay eps maximize",
)
adam = _function(
    Adam,
    f"{_MOMENTS} max_exp_avg_sqs state_steps",
    f"foreach capturable differentiable fused {_SCALED} has_complex decoupled_weight_decay",
    f"amsgrad {_BETAS} maximize",
)
adamax = _function(Adamax, "exp_avgs exp_infs state_steps", _COMMON, "eps beta1 beta2 lr weight_decay")
adamw = _function(
    AdamW,
    f"{_MOMENTS} max_exp_avg_sqs state_steps",
    f"foreach capturable differentiable fused {_SCALED} has_complex",
    f"amsgrad {_BETAS} maximize",
)
asgd = _function(ASGD, "axs mus etas state_steps", _COMMON, "lambd lr t0 alpha weight_decay")
muon = _function(
    Muon,
    "muon_momentum_bufs",
    "",
    "foreach lr weight_decay momentum nesterov ns_coefficients ns_steps eps adjust_lr_fn has_complex",
)
nadam = _function(
    NAdam,
    f"{_MOMENTS} mu_products state_steps",
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)
radam = _function(
    RAdam,
    f"{_MOMENTS} state_steps",
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    _BETAS,
)
rmsprop = _function(
    RMSprop,
    "square_avgs grad_avgs momentum_buffer_list state_steps",
    _COMMON,
    "lr alpha eps weight_decay momentum centered",
)
rprop = _function(
    Rprop,
    "prevs step_sizes state_steps",
    "foreach capturable maximize differentiable has_complex",
    "step_size_min step_size_max etaminus etaplus",
)
sgd = _function(
    SGD,
    "momentum_buffer_list",
    f"has_sparse_grad foreach fused {_SCALED}",
    "weight_decay momentum lr dampening nesterov maximize",
    "d_p_list",
)
sparse_adam = _function(SparseAdam, f"{_MOMENTS} state_steps", "", "eps beta1 beta2 lr maximize")

for _each in (adadelta, adafactor, adagrad, adam, adamax, asgd, nadam, radam, rmsprop, rprop, sgd):
    globals().update(_variants(_each, "single_tensor multi_tensor"))
for _each in (adagrad, adam, sgd):
    globals().update(_variants(_each, "fused"))
globals().update(_variants(muon, "single_tensor"))
