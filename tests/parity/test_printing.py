"""Printed tensors, character for character, against PyTorch."""

import math

import pytest

torch = pytest.importorskip("torch")

import ml_dtypes
import numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import _tensor_str as their_printing

from adjoint import dtypes, printing

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
REALS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")


class Printed:
    """A PyTorch tensor with the attributes that adjoint's printing needs."""

    def __init__(self, tensor):
        held = tensor.detach()
        if tensor.dtype is torch.bfloat16:
            self._array = held.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        else:
            self._array = held.numpy()
        self.dtype = dtypes.from_numpy(self._array.dtype)
        self.requires_grad = tensor.requires_grad
        self.grad_fn = tensor.grad_fn


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def whole_numbers(draw, count):
    return draw(st.lists(st.integers(-1500, 1500).map(float), min_size=count, max_size=count))


def decimals(draw, count):
    return draw(st.lists(st.floats(-10, 10), min_size=count, max_size=count))


def at_the_thresholds(draw, count):
    edges = (1e8, 1e8 + 1, 99999999.0, 1e-4, 9.9e-5, 1.0, 1000.0, 1001.0, 0.5, 1e4, 0.0, -1.5)
    return draw(st.lists(st.sampled_from(edges), min_size=count, max_size=count))


def special(draw, count):
    values = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.5)
    return draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))


def any_floats(draw, count):
    return draw(st.lists(st.floats(width=64), min_size=count, max_size=count))


def seeded(draw, count):
    """Draw a seed, and return many random numbers of different magnitudes."""
    generator = numpy.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from((0, 1, 6)))
    return generator.standard_normal(count) * 10.0 ** generator.integers(-spread, spread + 1, count)


def floats(draw, count):
    kinds = (seeded,) if count > 60 else (whole_numbers, decimals, at_the_thresholds, special, any_floats, seeded)
    values = numpy.asarray(draw(st.sampled_from(kinds))(draw, count), dtype=numpy.float64)
    return torch.from_numpy(values.copy())


@st.composite
def tensors(draw):
    shape = draw(
        st.lists(st.sampled_from((1, 2, 3, 4, 5, 7, 8, 30, 0)), max_size=4).filter(lambda s: math.prod(s) < 3000)
    )
    count = math.prod(shape)
    name = draw(st.sampled_from((*INTEGERS, *REALS, *REALS, *COMPLEX, "bool")))
    dtype = getattr(torch, name)
    if name in COMPLEX:
        flat = torch.complex(floats(draw, count), floats(draw, count)).to(dtype)
    elif name in REALS:
        flat = floats(draw, count).to(dtype)
    elif name == "bool":
        flat = torch.from_numpy(numpy.random.default_rng(draw(st.integers(0, 99))).random(count) < 0.9)
    else:
        info = numpy.iinfo(name)
        low, high = draw(st.sampled_from(((0, 9), (info.min, info.max), (0, 100))))
        generator = numpy.random.default_rng(draw(st.integers(0, 2**32)))
        flat = torch.from_numpy(generator.integers(low, high, count, dtype=name, endpoint=True))
    tensor = flat.reshape(shape)
    if tensor.is_floating_point() or tensor.is_complex():
        history = draw(st.sampled_from((None, lambda x: x, lambda x: x * 1, lambda x: x.clone(), lambda x: x.exp())))
        if history is not None:
            tensor = history(tensor.requires_grad_())
    return tensor


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.sampled_from((0, 1, 2, 4, 8)),
        "threshold": st.sampled_from((0, 5, 50, 1000, math.inf)),
        "edgeitems": st.sampled_from((0, 1, 2, 3, 5, 20)),
        "linewidth": st.sampled_from((0, 20, 40, 77, 80, 120)),
        "profile": st.sampled_from(("default", "short", "full")),
        "sci_mode": st.sampled_from((None, True, False)),
    },
)


@pytest.mark.thorough
@settings(max_examples=500, deadline=None)
@given(tensor=tensors(), options=st.one_of(st.just({}), OPTIONS), default=st.sampled_from(("float32", *REALS)))
def test_text_is_pytorchs(tensor, options, default):
    try:
        for printer, library in ((torch, torch), (printing, dtypes)):
            library.set_default_dtype(getattr(library, default))
            printer.set_printoptions(profile="default")
            printer.set_printoptions(**options)
        assert outcome(printing.format_tensor, Printed(tensor)) == outcome(repr, tensor)
    finally:
        for printer, library in ((torch, torch), (printing, dtypes)):
            library.set_default_dtype(library.float32)
            printer.set_printoptions(profile="default")


@given(tensor=tensors(), specification=st.sampled_from(("", ".2f", ".3e", "d", "x", ">12", "+", "s")))
def test_format_is_pytorchs(tensor, specification):
    ours = outcome(printing.format_with, Printed(tensor), specification)
    theirs = outcome(format, tensor, specification)
    if tensor.dim() == 0:
        assert ours == theirs
    elif specification:
        assert ours == theirs.replace("Tensor", "Printed")


def test_large_tensors_are_summarised_alike():
    for shape in ((10**6,), (1000, 1000), (7, 1, 300, 2), (2, 2, 2, 2, 100)):
        tensor = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape) / 7
        assert printing.format_tensor(Printed(tensor)) == repr(tensor)
        assert printing.format_tensor(Printed(tensor.mT if tensor.dim() > 1 else tensor[::3])) == repr(
            tensor.mT if tensor.dim() > 1 else tensor[::3]
        )


def test_subclass_names_itself():
    class Mine(torch.Tensor):
        pass

    tensor = (torch.ones(30) * 1.5).as_subclass(Mine)
    assert printing.format_tensor(Printed(tensor), name="Mine") == repr(tensor)


@given(steps=st.lists(OPTIONS, max_size=4))
def test_options_change_alike(steps):
    try:
        for step in steps:
            torch.set_printoptions(**step)
            printing.set_printoptions(**step)
        assert printing.get_printoptions() == their_printing.get_printoptions()
    finally:
        torch.set_printoptions(profile="default")
        printing.set_printoptions(profile="default")
