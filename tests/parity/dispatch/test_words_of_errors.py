"""Errors about wrong arguments name the called function and its parameter, as PyTorch's errors do."""

import inspect
import re
import warnings

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate, lookup
from tests.parity.dispatch.test_keywords import LEFT_OUT

CALLS = {
    "a string": (("a",), {}),
    "a number": ((3,), {}),
    "an object": ((object(),), {}),
    "nothing": ((), {}),
    "an unknown keyword": ((), {"no_such_keyword": 1}),
}

REASONS = {
    "PyTorch names another function, mostly a private function, instead of the called function": """
        lu unique unique_consecutive dsmm hsmm saddmm spmm to_dlpack nn.functional.logsigmoid
        nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d
        nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.max_pool1d
        nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.has_torch_function
        nn.functional.has_torch_function_unary nn.functional.has_torch_function_variadic""",
    "Python itself raises the error for an alias, and names the aliased function": """
        clip concatenate divide moveaxis ger row_stack classproperty""",
    "the function calls another function, which the error names": """
        allclose nn.functional.upsample nn.functional.upsample_bilinear nn.functional.upsample_nearest""",
    "PyTorch treats the first argument as `repeats`, or names the parameter `x`": """
        repeat_interleave special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1""",
    "the error for the missing number of samples comes first": "multinomial",
    "NumPy and Python raise the errors for wrong numbers and sizes": "scalar_tensor linalg.multi_dot",
    "the function does not check unused arguments": """
        is_distributed nn.functional.alpha_dropout nn.functional.feature_alpha_dropout""",
    "a size without elements is an invalid argument": "sparse_coo_tensor",
    "CPUs have no such kernel": "nn.functional.scaled_grouped_mm",
}
LISTED = {name for names in REASONS.values() for name in names.split()}


def functions():
    for space in ("", "linalg", "fft", "special", "nn.functional"):
        theirs, ours = (lookup(library, space) if space else library for library in (torch, candidate))
        for name in sorted(set(dir(theirs)) & set(dir(ours))):
            function = getattr(theirs, name)
            left_out = name.startswith("_") or any(part in name for part in LEFT_OUT)
            if not left_out and callable(function) and not inspect.isclass(function) and not inspect.ismodule(function):
                yield f"{space}.{name}".lstrip(".")


def first_words(function, arguments, keywords):
    """Return the type of an error, and the function (without namespace) and the parameter that the message names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*arguments, **keywords)
        except Exception as error:
            words = re.match(r"(?:torch\.)?((?:\w+\.)*)(\w+)\(\)(?:: argument '(\w+)')?", str(error))
            named = re.sub("^(linalg|fft|special)_", "", words[2]) if words else None
            return type(error).__name__, named, words[3] if words else None
    return "none", None, None


def difference(name):
    for case, call in CALLS.items():
        expected, found = (first_words(lookup(library, name), *call) for library in (torch, candidate))
        if (
            expected[0] == "AttributeError"
        ):  # the error arises deep in PyTorch's code; adjoint's error names the argument
            expected = ("TypeError", name.rpartition(".")[2], None)
        same = expected[:2] == found[:2] and (None in (expected[2], found[2]) or expected[2] == found[2])
        if not same:
            return f"{name} of {case}: {found}, expected {expected}"
    return None


@pytest.mark.parametrize("name", list(functions()))
def test_errors_name_the_function_that_was_called(name):
    found = difference(name)
    if name in LISTED:
        assert found is not None, f"take {name} off the list"
    else:
        assert found is None
