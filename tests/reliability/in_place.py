"""In-place operations that fail do not change the tensor or increment its version.

Every in-place method and every `out=` receives random arguments of all kinds. Most of these arguments are wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS

from . import Outcome, experiment
from ._children import in_child

DTYPES = [
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
    torch.bfloat16,
    torch.complex64,
]
SHAPES: list[tuple[int, ...]] = [(3, 4), (3, 4), (3, 4), (4, 4), (4,), (), (0,), (2, 3, 4), (1, 4), (3, 1), (7, 5)]
NUMBERS = [0, 1, -1, 2, 3, 0.5, -0.5, float("nan"), float("inf"), 10**30, 2**63, True, 1j]
OTHERS = [
    "sum",
    "prod",
    "amax",
    "mean",
    "floor",
    "none",
    None,
    (),
    (0,),
    (1, 0),
    [3, 4],
    torch.float64,
    object(),
    slice(None),
]
RANDOM = frozenset("bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_".split())
NOT_OPERATIONS = frozenset(
    "requires_grad_ detach_ share_memory_ rename_ apply_ map_ map2_ resize_ resize_as_ set_".split()
)


def names() -> list[str]:
    """The in-place methods."""
    return sorted(
        name
        for name in dir(torch.Tensor)
        if name.endswith("_") and not name.startswith("_") and name not in NOT_OPERATIONS
    )


def with_out() -> list[str]:
    """Return the functions that accept `out=`."""
    found = []
    for name in dir(torch):
        function = getattr(torch, name, None)
        if callable(function) and not name.startswith("_") and not isinstance(function, type):
            with contextlib.suppress(TypeError, ValueError):
                if "out" in inspect.signature(function).parameters:
                    found.append(name)
    return found


def tensor(rng: random.Random, shape: tuple[int, ...] | None = None) -> Any:
    """Return a tensor, by default of random shape. Some of these tensors are views, expanded, transposed or conjugated."""
    shape = rng.choice(SHAPES) if shape is None else shape
    dtype = rng.choice(DTYPES)
    made = (torch.arange(int(numpy.prod(shape)), dtype=torch.float64).reshape(shape) - 3).to(dtype)
    way = rng.random()
    if way < 0.1 and len(shape) == 2:
        return made.mT.contiguous().mT
    if way < 0.15 and len(shape):
        return made[:1].expand(shape)
    if way < 0.2:
        return made.conj()
    if way < 0.25 and dtype.is_floating_point:
        return made.requires_grad_()
    if way < 0.3 and len(shape):
        return torch.cat([made, made])[: shape[0]]
    return made


def argument(rng: random.Random, like: tuple[int, ...]) -> Any:
    """Return a random argument of any kind."""
    way = rng.random()
    if way < 0.35:
        return tensor(rng, like if rng.random() < 0.5 else None)
    if way < 0.5:
        shape = like if rng.random() < 0.5 else rng.choice(SHAPES)
        bound = rng.choice([2, 3, 4, 5, 100])
        values = [rng.randrange(-1, bound) for _ in range(int(numpy.prod(shape)))]
        return torch.tensor(values, dtype=torch.int64).reshape(shape)
    if way < 0.85:
        return rng.choice(NUMBERS)
    return rng.choice(OTHERS)


def look(target: Any) -> tuple[Any, ...]:
    """Return all properties that an operation might change."""
    whole = target.untyped_storage()
    memory = (
        numpy.ctypeslib.as_array((ctypes.c_uint8 * whole.nbytes()).from_address(whole.data_ptr())).tobytes()
        if whole.nbytes()
        else b""
    )
    return (
        memory, target._version, tuple(target.shape), target.stride(), target.dtype, target.requires_grad,
        target.grad_fn, target.is_conj(), target.is_neg(), whole.data_ptr(),
    )  # fmt: skip


def _tries(count: int, start: int) -> Iterator[tuple[str, str | None]]:
    warnings.simplefilter("ignore")
    methods, functions = names(), with_out()
    for number in range(start, count):
        rng = random.Random(number)
        LOOPS.every_size = rng.random() < 0.3
        target = tensor(rng)
        arguments = [argument(rng, tuple(target.shape)) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
        options: dict[str, Any] = {}
        if number % 3:
            name = methods[number % len(methods)]
            run = getattr(target, name)
            if rng.random() < 0.1:
                options[rng.choice(["alpha", "value", "reduce", "accumulate", "weight", "beta"])] = argument(
                    rng, (3, 4)
                )
        else:
            name = functions[number // 3 % len(functions)]
            run, options["out"] = getattr(torch, name), target
        before, grad = look(target), torch.is_grad_enabled()
        others = [(each, look(each)) for each in arguments if isinstance(each, torch.Tensor)]
        failure = None
        with numpy.errstate(all="ignore"):
            try:
                run(*arguments, **options)
            except MemoryError:
                pass
            except Exception as error:
                after = look(target)
                if after != before:
                    changed = [i for i, (one, two) in enumerate(zip(before, after, strict=True)) if one != two]
                    parts = "memory version shape strides dtype requires_grad grad_fn conj neg storage".split()
                    failure = f"{type(error).__name__} has changed {[parts[i] for i in changed]}: {str(error)[:100]}"
        if failure is None and any(look(each) != state for each, state in others if not _shares(each, target)):
            failure = "has changed another argument"
        if torch.is_grad_enabled() != grad:
            failure = "has changed the mode"
        yield name, failure


def _shares(one: Any, two: Any) -> bool:
    return bool(one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr())


@experiment("in-place", tries=60_000, short=800)
def in_place(count: int) -> Outcome:
    """In-place methods and `out=` with arguments of all kinds: failing calls do not change tensors or increment versions."""
    outcome = Outcome()
    while outcome.tried < count:
        found, end = in_child(lambda: _tries(count, outcome.tried), patience=120)
        for name, failure in found:
            outcome.note(failure and f"{name}: {failure}")
        if end is not None:
            outcome.note(end)
    return outcome
