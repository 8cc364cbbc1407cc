"""Extreme values against PyTorch: infinities, nan, -0, subnormals, the limits of each type, empty and zero-dimensional tensors.

Each try uses an operator and one of its sample inputs from the parity tests. It puts extreme values into the tensors, and
compares the results or errors of the two libraries.
"""

from __future__ import annotations

import importlib
import os
import random
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy

from . import Outcome, experiment
from ._children import in_child
from ._extreme_differences import reason

MEMORY = 3 << 30
"""The number of bytes that a try may allocate."""


def extremes(dtype: numpy.dtype[Any]) -> list[Any]:
    """Return the values of a dtype at which errors are likely."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        ends = numpy.iinfo(dtype)
        return [
            ends.min,
            ends.min + 1,
            ends.max,
            ends.max - 1,
            ends.max // 2 + 1,
            0,
            1,
            *([-1] if dtype.kind == "i" else []),
        ]
    part = numpy.dtype(numpy.float32 if dtype.itemsize == 8 else numpy.float64) if dtype.kind == "c" else dtype
    ends = ml_dtypes.finfo(part)
    least, most, normal = float(ends.smallest_subnormal), float(ends.max), float(ends.smallest_normal)
    real = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        least,
        -least,
        normal,
        most,
        -most,
        most / 2,
        float("inf"),
        -float("inf"),
        float("nan"),
    ]
    if dtype.kind == "c":
        return [complex(a, b) for a in real[::2] for b in real[1::3]] + [complex(a, 0) for a in real]
    return [*real, 1 + float(ends.eps), 3e4, 65504.0, -100.0, 89.0]


class Extreme:
    """A function of arguments that puts extreme values into tensors of one dtype, or makes tensors empty or zero-dimensional."""

    def __init__(self, chance: random.Random, dtype: Any) -> None:
        self.chance, self.dtype = chance, dtype
        self.share = chance.choice([0.05, 0.3, 0.6, 1.0])
        self.shape = chance.choice(["", "", "", "", "", "", "", "empty", "zero-dimensional"])
        self.made: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            if id(value) not in self.made:
                self.made[id(value)] = self.tensor(value.detach()), value
            return self.made[id(value)][0]
        if type(value) in (tuple, list):
            return type(value)(map(self, value))
        if type(value) is dict:
            return {name: self(item) for name, item in value.items()}
        return value

    def tensor(self, tensor: Any) -> Any:
        import torch

        from tests.parity.conversion import from_array, to_array

        if tensor.dtype == self.dtype and tensor.numel():
            array = to_array(tensor.clone()).copy()
            values = extremes(array.dtype)
            flat = array.reshape(-1)
            for place in range(flat.size):
                if self.chance.random() < self.share:
                    flat[place] = self.chance.choice(values)
            changed = from_array(torch, array)
            tensor = (
                torch.empty_like(tensor).copy_(changed)
                if tensor.is_contiguous() or tensor.dim() < 2
                else changed.mT.contiguous().mT
            )
        if self.shape == "empty" and tensor.dim():
            return tensor.narrow(self.chance.randrange(tensor.dim()), 0, 0)
        if self.shape == "zero-dimensional" and tensor.numel():
            return tensor.flatten()[0]
        return tensor


ROUNDED = 1000
"""The error of sums of a thousand terms, in units in the last place of the largest number."""


def kinds(op: Any, sample: Any, difference: str) -> str:
    """Return the kind of difference: "error", "shape", "dtype", or "values" followed by the kind of difference.

    The kinds of differences in values are "nonfinite" (one of the two is nan or infinite), "sign" (an integer has another sign),
    "rounded" (a few units in the last place of the largest number in arguments or results) and "other". The function examines all
    different elements.
    """
    from tests.parity import aspects, comparison

    if "raised" in difference or "elements differ" not in difference:
        return next((kind for kind in ("shape", "dtype") if difference.startswith(kind)), "error")
    actual, expected = aspects.both(op, sample, requires_grad=False)
    results = "tensors" if difference.startswith("the arguments") else "result"
    pairs = [
        (comparison.to_array(one), comparison.to_array(two))
        for one, two in zip(
            comparison.tensors_in(getattr(actual, results)),
            comparison.tensors_in(getattr(expected, results)),
            strict=True,
        )
    ]
    given = [comparison.to_array(each) for each in comparison.tensors_in(expected.tensors)]
    largest = max(map(_largest, [*given, *(two for _, two in pairs)]), default=0.0)
    found = {kind for one, two in pairs for kind in _kinds(one, two, largest)}
    return f"values {' '.join(sorted(found))}"


def described(sample: Any) -> str:
    """Return the kind of extreme arguments: "empty", "scalar", "nonfinite", "ends" (squares overflow or underflow), or
    "ordinary".
    """
    from tests.parity import comparison

    found = set()
    for tensor in comparison.tensors_in([*sample.args, sample.kwargs]):
        array = comparison.to_array(tensor)
        found |= {"empty"} if not array.size else {"scalar"} if not array.ndim else set()
        sizes = numpy.abs(_widest(array)).reshape(-1)
        finite = sizes[numpy.isfinite(sizes) & (sizes > 0)]
        found |= {"nonfinite"} if not numpy.isfinite(sizes).all() else set()
        if array.dtype.kind in "iu":
            found |= {"ends"} if (finite > float(numpy.iinfo(array.dtype).max) ** 0.5).any() else set()
        elif array.dtype.kind != "b":
            ends = ml_dtypes.finfo(_part(array.dtype))
            small, large = float(ends.smallest_normal) ** 0.5, float(ends.max) ** 0.5
            found |= {"ends"} if ((finite < small) | (finite > large)).any() else set()
    return " ".join(sorted(found)) or "ordinary"


def _part(dtype: Any) -> Any:
    """Return the dtype of the parts of a complex number, and return other dtypes unchanged."""
    return numpy.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _largest(array: Any) -> float:
    sizes = numpy.abs(_widest(array))
    return float(sizes.max(where=numpy.isfinite(sizes), initial=0))


def _widest(array: Any) -> Any:
    return array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)


def _kinds(actual: Any, expected: Any, largest: float) -> Iterator[str]:
    from tests.parity import comparison

    tolerances = comparison.TOLERANCES.get(actual.dtype.name)
    whole = tolerances is None
    wrong = actual != expected if whole else ~comparison._close(actual, expected, *tolerances)
    one, two = _widest(actual[wrong]), _widest(expected[wrong])
    finite = numpy.isfinite(one) & numpy.isfinite(two)
    if not finite.all():
        yield "nonfinite"
    one, two = one[finite], two[finite]
    if whole:
        opposite = one == -two
        yield from ["sign"] if opposite.any() else []
        yield from ["other"] if not opposite.all() else []
        return
    rounded = numpy.abs(one - two) <= ROUNDED * float(ml_dtypes.finfo(_part(actual.dtype)).eps) * largest
    yield from ["rounded"] if rounded.any() else []
    yield from ["other"] if not rounded.all() else []


def in_order(operator: str, sample: Any) -> Any:
    """Sort the boundaries of a sample if PyTorch does not define the operator's result for unsorted boundaries."""
    from tests.parity import samples

    place = {"bucketize": 1, "searchsorted": 0}.get(operator)
    if place is None:
        return sample
    given = [*sample.args]
    ordered = given[place].sort(-1)
    kwargs = dict(sample.kwargs)
    if kwargs.get("sorter") is not None:
        kwargs["sorter"] = given[place].argsort(-1)
    else:
        given[place] = ordered.values
    return samples.Sample(tuple(given), kwargs)


def tries(names: list[str], each: int, start: int, seed: str = "0") -> Iterator[tuple[str, str, str]]:
    """Yield the case, the sample and the difference ('' if none) of each try from number `start` on."""
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY,) * 2)
    for number in range(start, each * len(names)):
        yield attempt(seed, names[number // each], number % each)


def attempt(seed: str, name: str, number: int) -> tuple[str, str, str]:
    """Return the case, the sample and the difference ('' if none) of one try of an operator."""
    import torch

    from adjoint.codegen.acceleration import LOOPS
    from tests.parity import aspects, samples

    torch.set_num_threads(1)
    op = samples.operators()[name]
    chance = random.Random(f"{seed} {name} {number}")
    dtypes = samples.dtypes(op)
    dtype = dtypes[number % len(dtypes)]
    LOOPS.every_size = chance.random() < 0.5
    case = f"{name} {str(dtype).removeprefix('torch.')}"
    given = samples.samples(op, dtype, 40)
    if not given:
        return case, "", ""
    change, sample = Extreme(chance, dtype), chance.choice(given)
    changed = in_order(name, samples.Sample(change(sample.args), change(sample.kwargs)))
    tensors = [leaf for leaf in samples._leaves((changed.args, changed.kwargs)) if isinstance(leaf, torch.Tensor)]
    if sum(tensor.numel() for tensor in tensors) > 3000:
        return case, "", ""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outcome = aspects._run(op, aspects.value, [changed])
        difference = outcome.failures[0].removeprefix(f"{changed}: ") if outcome.failures else ""
        if difference:
            difference = f"{described(changed)}; {kinds(op, changed, difference)}; {difference}"
    return case, str(changed) + str(changed.args[:1])[:600], difference


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _note(outcome: Outcome, case: str, difference: str) -> None:
    """Count one try. Listed differences are counted separately."""
    if difference and (why := reason(case, difference)) is not None:
        outcome.tried += 1
        outcome.known[why] += 1
    else:
        outcome.note((difference and f"{case}: {difference[:160]}") or None)


@experiment("extreme-values", tries=6_648, short=0)
def extreme_values(count: int) -> Outcome:
    """Extreme values, empty and zero-dimensional tensors for every operator: values, dtypes, shapes and errors as in PyTorch."""
    from tests.parity import samples

    importlib.import_module("adjoint.operators").load_all()
    names = list(samples.operators())
    outcome = Outcome()
    each = max(1, count // len(names))
    seed = os.environ.get("RELIABILITY_SEED", "0")
    while outcome.tried < each * len(names):
        found, end = in_child(lambda: tries(names, each, outcome.tried, seed), patience=300)
        for case, _, difference in found:
            _note(outcome, case, difference)
        if end is not None:
            _note(outcome, names[outcome.tried // each], end)
    return outcome
