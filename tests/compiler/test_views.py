"""Results that are views of arguments, or of another result, share memory and history as eager's."""

import pytest

import adjoint as torch

from .comparison import assert_alike, tensors_in

nn = torch.nn

FUNCTIONS = {
    "of an argument": lambda x: x.t(),
    "two of an argument": lambda x: (x.flatten(), x[1:, 0]),
    "an argument and its view": lambda x: (x, x.t()),
    "several of one call": lambda x: x.chunk(2, 1),
    "of another result": lambda x: {"all": (y := x * 2), "row": y[0], "last": y.t()[-1]},
    "of the same memory": lambda x: (x.exp() * 3).unbind(0),
    "of a changed tensor": lambda x: ((y := x * 1).mul_(2), y[0]),
}


@pytest.mark.parametrize("kind", ["plain", "leaf", "recorded"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_views_in_results(name, kind):
    compiled = torch.compile(FUNCTIONS[name], fullgraph=True)
    for call in range(3):
        both = []
        for function in (FUNCTIONS[name], compiled):
            torch.manual_seed(call)
            leaf = torch.randn(3, 4, requires_grad=kind != "plain")
            x = leaf * 1 if kind == "recorded" else leaf
            result = function(x)
            found = tensors_in(result)
            facts = [(each._is_view(), each._base is x, each.stride(), each.requires_grad) for each in found]
            grads = torch.autograd.grad(sum(each.square().sum() for each in found), leaf) if kind != "plain" else ()
            if kind == "plain":
                found[-1].mul_(2)
            both.append((result, facts, grads, x))
        assert_alike(both[1], both[0], name)


@pytest.mark.filterwarnings("ignore:torch.compile runs")
def test_a_view_of_a_number_without_dimensions():
    compiled = torch.compile(lambda x: x.squeeze((0,)))
    for call in range(3):
        x = torch.tensor(call)
        assert compiled(x)._base is x and compiled(x).item() == call


class Encoder(nn.Module):
    """A module whose results are views of arguments, of a parameter and of one computed tensor."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x):
        h = self.linear(x)
        return (*h.chunk(2, -1), h.view(x.shape[0], 2, 2).transpose(0, 1), x.flatten()[1:], self.linear.weight.t())


def test_views_at_any_size():
    plain = Encoder()
    compiled = torch.compile(plain)
    for rows in (4, 6, 8, 8, 5, 5, 9, 4, 8, 1, 7):
        both = []
        for function in (plain, compiled):
            torch.manual_seed(rows)
            x = torch.randn(rows, 3, requires_grad=True)
            result = function(x)
            facts = [(each._base is x, each._base is result[0]._base, each.stride()) for each in result]
            loss = sum(each.square().sum() for each in result)
            both.append((result, facts, torch.autograd.grad(loss, [x, plain.linear.weight])))
        assert_alike(both[1], both[0], f"{rows} rows")
    (general,) = [each for each in compiled.compiled.variants if each.sized]
    assert general.calls >= 7 and len(compiled.compiled.variants) <= 3
