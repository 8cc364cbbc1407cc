"""Operators and functions refuse a string in place of a flag or a fraction, even if the kernel does not use the value."""

import re

import numpy
import pytest

import adjoint as torch
from adjoint.operators import OPERATORS

from .samples import SAMPLES

PLACES = [
    pytest.param(name, place, id=f"{name}-{parameter}")
    for name in SAMPLES
    for place, parameter in OPERATORS[name].typed
    if OPERATORS[name].types[parameter] in ("Bool", "Float")
]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_string_is_no_flag_and_no_fraction(name, place):
    op = OPERATORS[name]
    call = SAMPLES[name][0]
    args, kwargs, _ = call.build(call.complex_numbers == "only")
    parameter = op.names[place]
    for _ in range(2):  # the first call compiles the function
        if place < len(args):
            with pytest.raises(TypeError):
                op.function(*args[:place], "a", *args[place + 1 :], **kwargs)
        with pytest.raises(TypeError):
            op.function(*args[:place], **{**kwargs, parameter: "a"})


COMPOSED = [
    (lambda x, flag: torch.dropout(x, 0.5, flag), "dropout(): argument 'train' (position 3)"),
    (lambda x, flag: torch.allclose(x, x, equal_nan=flag), "allclose(): argument 'equal_nan'"),
    (lambda x, flag: x.svd(flag), "svd(): argument 'some' (position 1)"),
    (lambda x, flag: torch.svd(x, compute_uv=flag), "svd(): argument 'compute_uv'"),
    (lambda x, flag: x.copy_(x, flag), "copy_(): argument 'non_blocking' (position 2)"),
    (lambda x, flag: torch.linalg.solve_triangular(x, x, upper=flag), "linalg_solve_triangular(): argument 'upper'"),
    (lambda x, flag: x.unique(return_counts=flag), "unique(): argument 'return_counts'"),
    (lambda x, flag: torch.asarray(x, copy=flag), "asarray(): argument 'copy'"),
]
"""Functions composed of operators, which check the parameters that they annotate with `bool`."""


@pytest.mark.parametrize(("call", "words"), COMPOSED)
@pytest.mark.parametrize("flag", ["yes", 1])
def test_a_function_composed_of_operators_refuses_what_is_no_truth_value(call, words, flag):
    for _ in range(2):
        place = "" if "position" in words else r"( \(position \d\))?"  # after a mode, the first call passes places
        with pytest.raises(TypeError, match=f"{re.escape(words)}{place} must be bool, not {type(flag).__name__}"):
            call(torch.eye(2), flag)
    call(torch.eye(2), numpy.True_)


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_code_for_frequent_calls_refuses_it_too(name, place):
    op = OPERATORS[name]
    call = SAMPLES[name][0]
    args, kwargs, _ = call.build(call.complex_numbers == "only")
    with torch.inference_mode():
        for _ in range(25):
            op.function(*args, **kwargs)
        with pytest.raises(TypeError):
            op.function(*args[:place], **{**kwargs, op.names[place]: "a"})
