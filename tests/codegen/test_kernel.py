"""One object contains all forms of an operator's array computation."""

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.backend import NUMPY
from adjoint.codegen.kernel import FLOATS, SMALL, Kernel, as_kernel
from adjoint.dispatch.declaration import OPERATORS
from adjoint.dispatch.registry import load_all
from adjoint.dispatch.steps.compute import kernel_lines


def double(x, *, times=2):
    return x * times


def test_an_array_function_is_a_kernel_of_one_form():
    kernel = as_kernel(double)
    assert kernel.general is double
    assert (kernel.small, kernel.inplace, kernel.limit, kernel.quiet) == (None, None, None, False)
    assert as_kernel(kernel) is kernel
    assert kernel.name == "double"


def test_a_kernel_made_of_another_has_its_forms():
    first = Kernel(double, small=numpy.negative, dtypes=FLOATS, limit=7)
    second = Kernel(first, inplace=double)
    assert (second.general, second.small, second.dtypes, second.limit) == (double, numpy.negative, FLOATS, 7)
    third = Kernel(first, small=numpy.exp)
    assert (third.small, third.dtypes, third.limit) == (numpy.exp, None, None)


def test_which_forms_are_quiet():
    kernel = Kernel(double, small=numpy.negative)
    assert kernel.is_quiet(numpy.negative)
    assert not kernel.is_quiet(double)
    assert Kernel(double, quiet=True).is_quiet(double)
    part = Kernel(numpy.zeros_like, small=double, quiet=SMALL)
    assert part.is_quiet(double)
    assert not part.is_quiet(numpy.zeros_like)


def test_a_small_form_may_lack_keyword_only_parameters():
    times = frozenset({"times"})
    assert Kernel(double, small=double).small_takes(times)
    assert not Kernel(double, small=numpy.negative).small_takes(times)


def test_the_backend_knows_the_kernel_of_every_operator():
    load_all()
    for name, operator in OPERATORS.items():
        assert NUMPY.kernel(name) is operator.kernel


def test_small_and_general_forms_agree():
    load_all()
    x = numpy.linspace(0.1, 0.9, 6, dtype=numpy.float32)
    compared = 0
    for operator in OPERATORS.values():
        program = operator.kernel.expression
        if program is None:
            continue
        scalars = [name for name in operator.names if name not in operator.tensors]
        if any(name not in operator.defaults for name in scalars):
            continue
        given = {**operator.defaults, **dict.fromkeys(operator.tensors, x)}
        small = operator.kernel.small(*[given[name] for name in operator.names])
        general = program.run([x] * len(operator.tensors), [operator.defaults[name] for name in scalars])
        numpy.testing.assert_array_equal(small, general)
        compared += 1
    assert compared > 30


def test_constants_are_not_written_to():
    constant = NUMPY.constant(2, numpy.dtype(numpy.float32))
    assert constant.shape == ()
    with pytest.raises(ValueError, match="read-only"):
        constant[...] = 3


def test_large_tensors_take_the_fast_path_too():
    x = torch.linspace(-3, 3, 20001)
    result = torch.nn.functional.hardswish(x)
    numpy.testing.assert_array_equal(result.numpy()[:100], torch.nn.functional.hardswish(x[:100]).numpy())


@pytest.mark.parametrize("name", ["sigmoid", "gelu"])
def test_the_small_form_is_not_called_for_large_arrays_whatever_the_keywords(name):
    load_all()
    op = OPERATORS[name]
    lines = kernel_lines(op)
    assert lines[0].startswith("if ")
    assert f"self_array.size <= {op.kernel.limit}" in lines[0]
