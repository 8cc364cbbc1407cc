"""Functions that draw random numbers, with all kinds of arguments. A failed call draws no numbers, and changes no tensor."""

import ctypes
import random
import warnings

import numpy
import pytest

import adjoint as torch

F, NAN = torch.nn.functional, float("nan")

NEW = {
    "rand": [((3,), {})],
    "randn": [((3,), {})],
    "randint": [((5, (3,)), {}), ((-2, 5, (3,)), {})],
    "randperm": [((5,), {})],
    "normal": [((0.0, 1.0, (3,)), {})],
}
"""Successful calls of functions that create tensors of given sizes."""

LIKE = {
    "rand_like": [((), {})],
    "randn_like": [((), {})],
    "randint_like": [((5,), {}), ((-2, 5), {})],
    "bernoulli": [((), {}), ((0.5,), {})],
    "poisson": [((), {})],
    "multinomial": [((2,), {})],
    "_standard_gamma": [((), {})],
    "_sample_dirichlet": [((), {})],
    "dropout": [((0.5, True), {})],
    "dropout_": [((0.5, True), {})],
    "alpha_dropout": [((0.5, True), {})],
    "feature_dropout": [((0.5, True), {})],
    "feature_alpha_dropout": [((0.5, True), {})],
    "native_dropout": [((0.5, True), {})],
    "rrelu": [((0.1, 0.3, True), {})],
    "binomial": [((torch.full((3,), 0.5),), {})],
    "normal_of_means": [((1.0,), {}), ((torch.ones(3),), {})],
    **{name: [((), {})] for name in "normal_ uniform_ exponential_ cauchy_ log_normal_ random_".split()},
    "geometric_": [((0.5,), {})],
    "bernoulli_": [((0.5,), {}), ((torch.full((3,), 0.5),), {})],
}
"""The other arguments of successful calls of methods, or of functions of a tensor."""

WRONG = [
    -1, 2, 0.5, -0.5, 1.5, NAN, float("inf"), 1e39, 10**30, 2**63, 1j, "sum", None, (), (3, -4), [2.5], object(), slice(None),
    numpy.ones(3), numpy.float32(2), torch.float64, torch.int8, "cpu", torch.ones(2), torch.ones(3, 4, dtype=torch.int32),
    torch.tensor(-1.0), torch.tensor([NAN] * 3), torch.tensor([1j] * 3), torch.ones(3, requires_grad=True),
    torch.ones(1).expand(3), torch.full((3,), -1.0),
]  # fmt: skip
"""Arguments that are wrong for most parameters."""

NAMES = (
    "generator out dtype requires_grad layout device pin_memory memory_format size p std mean train replacement".split()
)


def look(tensor):
    """Return all properties of a tensor that a call might change."""
    storage = tensor.untyped_storage()
    memory = bytes((ctypes.c_uint8 * storage.nbytes()).from_address(storage.data_ptr())) if storage.nbytes() else b""
    return memory, tensor._version, tensor.shape, tensor.stride(), tensor.dtype, tensor.requires_grad, tensor.grad_fn


def function(name, target):
    """Return the function of this name, bound to its module or tensor."""
    if name in NEW:
        return getattr(torch, name)
    if name == "normal_of_means":
        return lambda *args, **names: torch.normal(target, *args, **names)
    if hasattr(torch.Tensor, name):
        return getattr(target, name)
    return lambda *args, **names: getattr(torch, name)(target, *args, **names)


def failure(name, target, args, names):
    """Return the error of a call, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(name, target)(*args, **names)
        except Exception as error:
            return error
    return None


def mistaken(chance, call):
    """Return a call with one or two arguments changed."""
    args, names = list(call[0]), dict(call[1])
    for _ in range(chance.choice([1, 1, 2])):
        way = chance.random()
        if way < 0.45 and args:
            args[chance.randrange(len(args))] = chance.choice(WRONG)
        elif way < 0.6:
            args.append(chance.choice(WRONG))
        elif way < 0.65 and args:
            args.pop()
        else:
            names[chance.choice(NAMES[:5] if chance.random() < 0.7 else NAMES)] = chance.choice(WRONG)
    return args, names


TARGETS = [
    lambda: torch.full((3,), 0.4),
    lambda: torch.full((3,), 0.4, dtype=torch.float64),
    lambda: torch.full((2, 3), 0.4, requires_grad=True),
    lambda: torch.full((1,), 0.4).expand(3),
    lambda: torch.ones(3, dtype=torch.int64),
    lambda: torch.full((3,), 0.5, dtype=torch.bfloat16),
    lambda: torch.full((3,), 0.4j),
    lambda: torch.full((3,), -1.0),
    lambda: torch.ones(3, dtype=torch.bool),
]


@pytest.mark.parametrize("name", [*NEW, *LIKE])
def test_a_call_that_fails_draws_nothing_and_changes_nothing(name):
    chance, failed = random.Random(name), 0
    for number in range(60):
        target = TARGETS[0]() if number % 2 else chance.choice(TARGETS)()
        args, names = mistaken(chance, chance.choice({**NEW, **LIKE}[name]))
        generator = names["generator"] = names.get("generator", torch.Generator())
        streams = [torch.default_generator, *([generator] if isinstance(generator, torch.Generator) else [])]
        tensors = [each for each in (target, *args, *names.values()) if isinstance(each, torch.Tensor)]
        before = [look(each) for each in tensors], [each.get_state().tolist() for each in streams]
        error = failure(name, target, args, names)
        if error is not None:
            failed += 1
            after = [look(each) for each in tensors], [each.get_state().tolist() for each in streams]
            assert before[0] == after[0], (args, names, error)
            assert before[1] == after[1], (args, names, error)
    assert failed > 20
