"""Random numbers within `vmap` equal PyTorch's numbers from the same seed."""

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint
from tests.parity.conversion import to_array

SHAPES = {"first": (4, 3, 5), "last": (3, 5, 4), "none": (3, 5)}
DIMS = {"first": 0, "last": -1, "none": None}
DRAWS = {
    "randn": lambda module, x: module.randn(3, 5),
    "rand": lambda module, x: module.rand(size=(2, 3)),
    "randint": lambda module, x: module.randint(2, 9, (4,)),
    "randperm": lambda module, x: module.randperm(6),
    "normal of numbers": lambda module, x: module.normal(1.0, 2.0, (3, 5)),
    "rand_like": lambda module, x: module.rand_like(x),
    "randn_like": lambda module, x: module.randn_like(x),
    "randint_like": lambda module, x: module.randint_like(x, 2, 9),
    "normal of mean": lambda module, x: module.normal(x, 2.0),
    "normal of std": lambda module, x: module.normal(1.0, x),
    "normal of both": lambda module, x: module.normal(x, x[0]),
    "bernoulli": lambda module, x: module.bernoulli(x / 2),
    "bernoulli of p": lambda module, x: module.bernoulli(x, 0.5),
    "poisson": lambda module, x: module.poisson(x),
    "gamma": lambda module, x: module._standard_gamma(x),
    "dirichlet": lambda module, x: module._sample_dirichlet(x),
    "binomial": lambda module, x: module.binomial(x * 4, x / 2),
    "multinomial": lambda module, x: module.multinomial(x, 3),
    "multinomial of one row": lambda module, x: module.multinomial(x[0], 9, replacement=True),
    "normal_": lambda module, x: x.clone().normal_(),
    "bernoulli_ of tensor": lambda module, x: x.clone().bernoulli_(x[0] / 2),
    "dropout": lambda module, x: module.nn.functional.dropout(x),
    "nested": lambda module, x: module.vmap(lambda y: y + module.randn(2), randomness="different")(x[:, :2]),
}


def drawn(module, draw, where, randomness):
    x = module.linspace(0.5, 1.5, 60 if where != "none" else 15).reshape(SHAPES[where])
    module.manual_seed(3)
    mapped = module.vmap(lambda x, _: DRAWS[draw](module, x), (DIMS[where], 0), randomness=randomness)
    try:
        return mapped(x, module.zeros(4))
    except RuntimeError as error:
        return str(error).partition(".")[0]


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("where", SHAPES)
@pytest.mark.parametrize("draw", DRAWS)
def test_numbers_of_examples(draw, where, randomness):
    expected, found = (drawn(module, draw, where, randomness) for module in (torch, adjoint))
    if isinstance(expected, str):
        assert found == expected
    else:
        numpy.testing.assert_allclose(to_array(found), to_array(expected), rtol=1e-6)


@pytest.mark.parametrize("draw", ["bernoulli of p", "multinomial"])
def test_numbers_for_a_transposed_tensor(draw):
    found = []
    for module in (torch, adjoint):
        module.manual_seed(3)
        found.append(DRAWS[draw](module, module.linspace(0.1, 1.0, 20).reshape(5, 4).t()).tolist())
    assert found[0] == found[1]
