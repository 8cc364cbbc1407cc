"""Modules and functions call the replacement of a function of `nn.functional`.

Libraries that count operations depend on these replacements.
"""

import inspect
import itertools
import warnings
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from tests.parity.candidate import candidate
from tests.parity.conversion import Converter

pytestmark = pytest.mark.computed

MODULES = [info for info in module_db if hasattr(candidate.nn, info.module_cls.__name__)]


def dtype_of(info):
    return next(
        (kind for kind in (torch.float64, torch.complex128, torch.int64) if kind in info.supported_dtypes("cpu")), None
    )


FUNCTIONS = [
    info
    for info in op_db
    if dtype_of(info) and info.op is getattr(torch.nn.functional, info.name.removeprefix("nn.functional."), None)
]


@contextmanager
def counted(library):
    """Replace every public function of `nn.functional` by a function that records its name, and yield the set of names."""
    F, called = library.nn.functional, set()
    names = [name for name in dir(torch.nn.functional) if not name.startswith("_") and "torch_function" not in name]

    def noting(name, function):
        def noted(*args, **kwargs):
            called.add(name)
            return function(*args, **kwargs)

        return noted

    before = {name: getattr(F, name, None) for name in names}
    before = {name: found for name, found in before.items() if callable(found) and not inspect.isclass(found)}
    for name, function in before.items():
        setattr(F, name, noting(name, function))
    try:
        yield called
    finally:
        for name, function in before.items():
            setattr(F, name, function)


def called_by_module(library, info, sample, training):
    convert = Converter(library)
    module = (
        getattr(library.nn, info.module_cls.__name__)(
            *convert(sample.constructor_input.args), **convert(sample.constructor_input.kwargs)
        )
        .double()
        .train(training)
    )
    args, kwargs = convert(sample.forward_input.args), convert(sample.forward_input.kwargs)
    if hasattr(module, "initialize_parameters"):
        module(*args, **kwargs)
    with counted(library) as called:
        module(*args, **kwargs)
    return called


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
def test_modules_call_what_replaces_a_function(info, training):
    torch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
    for sample in itertools.islice((sample for sample in found if sample.forward_input is not None), 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = called_by_module(torch, info, sample, training)
            missed = expected - called_by_module(candidate, info, sample, training)
        assert not missed, f"missed: {missed}"


@pytest.mark.parametrize("info", FUNCTIONS, ids=lambda info: info.formatted_name)
def test_functions_call_what_replaces_a_function(info):
    name = info.name.removeprefix("nn.functional.")
    for sample in list(info.sample_inputs("cpu", dtype_of(info)))[:6]:
        seen = []
        for library in (torch, candidate):
            convert = Converter(library)
            args, kwargs = convert((sample.input, *sample.args)), convert(sample.kwargs)
            function = getattr(library.nn.functional, name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with counted(library) as called:
                    function(*args, **kwargs)
            seen.append(called)
        assert not seen[0] - seen[1]
