"""Functional optimizers have PyTorch's signatures.

They change lists in the same way as PyTorch's functions and the optimizer classes.
"""

from __future__ import annotations

import importlib
import inspect

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint

CASES = {
    "adadelta": [{"lr": 0.1, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False}],
    "_adafactor": [
        {"d": 1.0, "lr": 0.1, "beta2_decay": -0.8, "weight_decay": 0.1, "eps1": e, "eps2": 1e-3, "maximize": m}
        for e, m in ((1e-9, True), (None, False))
    ],
    "adagrad": [{"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.2, "eps": 1e-9, "maximize": True}],
    "adam": [
        {"amsgrad": a, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": m, **more}
        for a, m, more in ((True, False, {}), (False, True, {"decoupled_weight_decay": True}))
    ],
    "adamw": [
        {"amsgrad": False, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}
    ],
    "adamax": [{"eps": 1e-6, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1}],
    "asgd": [{"lambd": 0.1, "lr": 0.1, "t0": 1.0, "alpha": 0.7, "weight_decay": 0.1}],
    "_muon": [
        {
            "lr": 0.1,
            "weight_decay": 0.1,
            "momentum": 0.9,
            "nesterov": True,
            "ns_coefficients": (3.4, -4.7, 2.0),
            "ns_steps": 3,
            "eps": 1e-7,
            "adjust_lr_fn": None,
            "has_complex": False,
        }
    ],
    "nadam": [{"beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1, "eps": 1e-6}],
    "radam": [{"beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": True}],
    "rmsprop": [
        {"lr": 0.1, "alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1, "momentum": m, "centered": c}
        for m, c in ((0.5, True), (0, False))
    ],
    "rprop": [{"step_size_min": 1e-3, "step_size_max": 2.0, "etaminus": 0.5, "etaplus": 1.2}],
    "sgd": [
        {"weight_decay": 0.1, "momentum": m, "lr": 0.1, "dampening": 0.0, "nesterov": n, "maximize": False}
        for m, n in ((0.9, True), (0.0, False))
    ],
    "_functional": [{"eps": 1e-6, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "maximize": False}],
}
NAMES = {"_functional": "sparse_adam"}


def function(library, module):
    name = f"{library.__name__}.optim.{module}"
    return getattr(importlib.import_module(name), NAMES.get(module, module.strip("_")))


def parameters(function):
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


def started(m, name, options, params):
    """Return the lists of the initial state."""
    if name == "state_steps":
        return [0] * len(params) if "sparse" in options else [m.zeros(()) for _ in params]
    if name == "momentum_buffer_list" and "dampening" in options:
        return [None for _ in params]
    if (name, options.get("amsgrad", options.get("centered", options.get("momentum")))) in UNUSED:
        return []
    if name in ("etas", "mus", "mu_products"):
        return [m.tensor(0.1 if name == "etas" else 1.0) for _ in params]
    if name in ("row_vars", "col_vars"):
        return [
            m.zeros(*(p.shape[0], 1) if name == "row_vars" else (1, p.shape[1])) if p.ndim > 1 else None for p in params
        ]
    if name == "step_sizes":
        return [m.full_like(param, 0.1) for param in params]
    return [m.zeros_like(param) for param in params]


UNUSED = {("max_exp_avg_sqs", False), ("grad_avgs", False)}


def stepped(m, module, options):
    """Return all lists after three steps."""
    call, random = function(m, module), numpy.random.default_rng(0)
    sparse = {"sparse": True} if module == "_functional" else {}
    shapes = [(2, 3), (3, 2)] if module in ("_muon", "_functional") else [(2, 3), (3,)]
    params = [m.tensor(random.normal(size=shape), dtype=m.float32) for shape in shapes]
    lists = [
        started(m, each, {**options, **sparse}, params)
        for each, _, default in parameters(call)[2:]
        if default is inspect.Parameter.empty and each not in options
    ]
    with m.no_grad():
        for step in range(3):
            grads = [m.tensor(random.normal(size=shape), dtype=m.float32) for shape in shapes]
            if sparse:
                grads, lists[-1] = [grad.to_sparse() for grad in grads], [step + 1] * len(params)
            call(params, grads, *lists, **options)
    return [each.tolist() if hasattr(each, "tolist") else each for some in (params, *lists) for each in some]


@pytest.mark.parametrize(("module", "place"), [(name, i) for name, each in CASES.items() for i in range(len(each))])
def test_lists_are_changed_as_in_pytorch(module, place):
    options = CASES[module][place]
    assert parameters(function(adjoint, module)) == parameters(function(torch, module))
    mine, theirs = stepped(adjoint, module, options), stepped(torch, module, options)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            numpy.testing.assert_allclose(a, b, rtol=2e-2 if module == "_muon" else 1e-5, atol=1e-6)


def variants(library, module):
    """Return the variants of a function: `_single_tensor_adam` and the like."""
    there = importlib.import_module(f"{library.__name__}.optim.{module}")
    name = module.strip("_")
    names = [f"_{kind}_{name}" for kind in ("single_tensor", "multi_tensor", "fused")]
    return [getattr(there, each, None) for each in names]


@pytest.mark.parametrize("module", [each for each in CASES if each not in ("adamw", "_functional")])
def test_variants_are_called_as_in_pytorch(module):
    options = CASES[module][0]
    for mine, theirs in zip(variants(adjoint, module), variants(torch, module), strict=True):
        assert (mine is None) == (theirs is None)
        if mine is None:
            continue
        assert set(parameters(mine)) == set(parameters(theirs))
        assert mine.__module__ == theirs.__module__.replace("torch", "adjoint")
        positional = [name for name, kind, _ in parameters(mine) if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert positional == [name for name, kind, _ in parameters(theirs)][: len(positional)]
        got = []
        for m, call in ((adjoint, mine), (torch, theirs)):
            params = [m.linspace(-1, 1, 6).reshape(2, 3)]
            given = {name: started(m, name, options, params) for name in positional[2:]}
            given |= {name: None for name in ("grad_scale", "found_inf") if name in given}
            flags = {name: False for name, kind, _ in parameters(call) if kind is inspect.Parameter.KEYWORD_ONLY}
            with m.no_grad():
                call(params, [m.ones(2, 3)], *given.values(), **(flags | options))
            lists = [values for values in given.values() if values is not None]
            got.append([each.tolist() for some in (params, *lists) for each in some if each is not None])
        for a, b in zip(*got, strict=True):
            numpy.testing.assert_allclose(a, b, rtol=2e-2 if module == "_muon" else 1e-5, atol=1e-6)


def lists(m, count=1):
    return [[m.ones(2) for _ in range(count)] for _ in range(4)] + [[], [m.zeros(()) for _ in range(count)]]


OPTIONS = {"amsgrad": False, "beta1": 0.8, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.0, "eps": 1e-6, "maximize": False}


@pytest.mark.parametrize("change", ["number", "missing", "inf", "scale", "leaf"])
def test_arguments_are_taken_as_in_pytorch(change):
    results = []
    for m in (adjoint, torch):
        given, options = lists(m), dict(OPTIONS)
        if change == "number":
            given[-1] = [0]
        elif change == "missing":
            del options["lr"]
        elif change == "leaf":
            given[0][0].requires_grad_()
        else:
            options.update(fused=True, found_inf=m.tensor(float(change == "inf")), grad_scale=m.tensor(4.0))
        try:
            function(m, "adam")(*given, **options)
            results.append([round(x, 5) for x in given[0][0].tolist()])
        except Exception as error:
            results.append((type(error), str(error)))
    if change == "missing":
        assert results[0][0] is results[1][0] is TypeError
    else:
        assert results[0] == results[1]


def test_the_step_is_recorded_while_gradients_are():
    start = adjoint.ones(2, requires_grad=True)
    moved = start * 1
    adjoint.optim.sgd.sgd(
        [moved],
        [start * 3],
        [None],
        weight_decay=0.0,
        momentum=0.0,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
    )
    assert adjoint.autograd.grad(moved.sum(), start)[0].tolist() == pytest.approx([0.7, 0.7])
