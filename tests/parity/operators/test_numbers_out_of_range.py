"""If PyTorch refuses a number that a tensor's dtype cannot represent, adjoint raises the same error."""

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate

NUMBERS: dict[str, tuple[Any, ...]] = {
    "uint8": (300, -1, -300, 3.7, math.inf, math.nan, 255),
    "int8": (300, -129, 128.0, 1e30),
    "int32": (2**40, 1e20, -(2**31)),
    "int64": (1e20, 2**62),
    "bfloat16": (-math.inf, 3e38),
    "float16": (70000.0, 1e300, math.inf, 65504),
    "float32": (1e300, -1e300, math.inf, 3e38),
    "float64": (1e308, math.inf),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda m, x, number: x + number,
    "multiply": lambda m, x, number: number * x,
    "add in place": lambda m, x, number: x.clone().add_(number),
    "power of a number": lambda m, x, number: (2.0 ** (x * number)).round() if isinstance(number, float) else None,
    "less": lambda m, x, number: x < number,
    "remainder": lambda m, x, number: x % number,
    "alpha": lambda m, x, number: m.add(x, x, alpha=number) if isinstance(number, int) else None,
    "clamp": lambda m, x, number: x.clamp(max=number),
    "clamp by both": lambda m, x, number: x.clamp(0, number),
    "clamp in place": lambda m, x, number: x.clone().clamp_(min=number),
    "hardtanh": lambda m, x, number: m.nn.functional.hardtanh(x, 0, number) if 0 < number < 1e19 else None,
    "threshold": lambda m, x, number: m.nn.functional.threshold(x, 1, number),
    "value of a threshold": lambda m, x, number: m.nn.functional.threshold(x, number, 1),
    "masked_fill": lambda m, x, number: x.masked_fill(x >= 1, number),
    "fill": lambda m, x, number: m.full_like(x, number),
    "index_fill": lambda m, x, number: x.index_fill(0, m.tensor([0]), number),
    "scatter": lambda m, x, number: x.scatter(0, m.tensor([0]), number),
    "scatter and add": lambda m, x, number: x.scatter(0, m.tensor([1]), number, reduce="add"),
    "scatter to all": lambda m, x, number: x.scatter(0, m.arange(len(x)), number),
    "index_add": lambda m, x, number: (
        x.index_add(0, m.tensor([0]), x[:1], alpha=number) if isinstance(number, int) else None
    ),
    "where": lambda m, x, number: m.where(x >= 1, x, number),
    "where of a number first": lambda m, x, number: m.where(x >= 1, number, x),
    "addcmul": lambda m, x, number: m.addcmul(x, x, x, value=number),
    "leaky_relu": lambda m, x, number: m.nn.functional.leaky_relu(x, number),
    "elu": lambda m, x, number: m.nn.functional.elu(x, number) if math.isfinite(number) else None,
    "lerp": lambda m, x, number: m.lerp(x, x, number),
    "a tensor without dimensions": lambda m, x, number: x.sum(dtype=x.dtype) - number,
}

_HALF_BOUNDS = ("hardtanh", "threshold", "value of a threshold")  # computed in float32, whose range applies


def outcome(module: Any, function: Callable[..., Any], kind: str, number: Any, size: int) -> Any:
    x = (module.arange(size) % 3).to(getattr(module, kind))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = function(module, x, number)
        except (RuntimeError, OverflowError, NotImplementedError) as error:
            return type(error).__name__, str(error).partition("\n")[0]
    if result is None:
        return None
    result = result.detach()
    return str(result.dtype), str(result.reshape(-1)[:6].tolist())


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [3, 20_000])
def test_numbers_that_do_not_fit(name: str, size: int) -> None:
    found = []
    for kind, number in itertools.chain.from_iterable(((k, n) for n in numbers) for k, numbers in NUMBERS.items()):
        if name in _HALF_BOUNDS and kind in ("float16", "bfloat16") and not math.isinf(number):
            continue
        ours, theirs = (outcome(m, FUNCTIONS[name], kind, number, size) for m in (candidate, torch))
        if ours != theirs:
            found.append(f"{kind} {number}: {ours}, PyTorch: {theirs}")
    assert not found, "\n".join(found)
