"""The graph that `make_fx` records of a call computes the function on other inputs too, or tracing is refused."""

import pytest

import adjoint as torch
from adjoint.fx.experimental.proxy_tensor import make_fx
from tests import public_calls

RANDOM = frozenset(
    "bernoulli binomial cauchy_ dropout empty exponential_ geometric_ multinomial normal poisson rand rrelu uniform_".split()
)


def is_random(name):
    return any(each in name for each in RANDOM) or name.endswith(
        ("lowrank", "resize_", "resize_as_", ".new", "gumbel_softmax")
    )


def other(value):
    """Return a tensor like `value` with other elements."""
    if value.dtype is torch.bool:
        return ~value
    if value.dtype is torch.int64:
        return 1 - value
    return value * 0.5 + 0.25


def tensors_in(value):
    return [each for each in torch.utils._pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def same(found, expected):
    if [each.shape for each in found] != [each.shape for each in expected]:
        return False
    try:
        torch.testing.assert_close(found, expected, equal_nan=True, check_layout=False)
    except AssertionError:
        return False
    return True


def check(function, values):
    """Compare the graph of `function` for some values with the function itself, for other values."""
    places = [place for place, value in enumerate(values()) if isinstance(value, torch.Tensor)]

    def of_tensors(*tensors):
        given = values()
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        return function(*given)

    def inputs(change):
        given = values()
        return [change(given[place]).detach() for place in places]

    try:
        expected = tensors_in(of_tensors(*inputs(other)))
        graph = make_fx(lambda *tensors: of_tensors(*tensors))(*inputs(lambda value: value))
    except Exception:  # wrong arguments, or elements that decide what is computed
        return True
    return same(tensors_in(graph(*inputs(other))), expected)


LEFT_OUT = frozenset(("from_dlpack", "linalg.inv_ex", "sparse_coo_tensor"))
"""Functions of memory that other libraries may own, of singular matrices, and of sizes that depend on the elements."""

NAMES = [name for name in public_calls.public_functions(torch) if not is_random(name) and name not in LEFT_OUT]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_graphs_of_all_functions_compute_them_on_other_inputs(name):
    function = public_calls.module_of(torch, name)
    wrong = [
        call
        for call in public_calls.CALLS
        if not check(function, lambda call=call: public_calls.arguments_of(torch, call))
    ]
    assert not wrong


PROGRAMS = {
    "resize_": lambda x: x.clone().resize_(3) * 2,
    "resize_as_": lambda x: x.clone().resize_as_(torch.ones(3)) * 2,
    "set_": lambda x: torch.ones(3).set_(x.sin()) * 2,
    "set_ a part": lambda x: torch.ones(3).set_(x.sin(), 1, (2, 2)) * 2,
    "view in vmap": lambda x: torch.vmap(lambda row: row.view(torch.int32))(x),
    "view and back": lambda x: (x.view(torch.int32) + 1).view(torch.float32),
    "new tensor": lambda x: torch.ones(1).new_tensor(x, dtype=torch.float64),
    "quantile": lambda x: x.quantile(0.3, 1),
    "one hot": lambda x: torch.nn.functional.one_hot(x.long(), 7),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_of_programs_compute_them_on_other_inputs(name):
    assert check(PROGRAMS[name], lambda: [torch.arange(1.0, 7.0).reshape(2, 3)])


@pytest.mark.parametrize(
    "read",
    [
        lambda x: torch.tensor([x[0, 0], x[0, 1]]),
        lambda x: torch.ones(1).new_tensor([x[0, 0]]),
    ],
)
def test_tracing_refuses_elements_that_become_data(read):
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(read)(torch.zeros(2, 3))
