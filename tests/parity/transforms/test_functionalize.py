"""The operators that modes see within `functionalize`, compared with those of PyTorch."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.candidate import candidate


def _change_of_view(x, torch):
    x.view(4, 2).add_(torch.ones(2))
    return x


def _out_of_other_shape(x, torch):
    out = torch.empty(4, 2)
    torch.add(x, x, out=out)
    out.view(8).add_(1)
    return out


def _views_in_place(x, torch):
    y = x.view(8).reshape(2, 4).transpose(1, 0)
    y.unsqueeze_(0)
    y.squeeze_()
    first, second = y.split(2)
    first.add_(torch.ones(2, 2))
    return x, second * 2


def _several(x, torch):
    a, b = x.split(2)
    a.diagonal().add_(torch.ones(2))
    return x + 1, b


def _rows(x, torch):
    y = x + x
    y.transpose(1, 0)[0].add_(torch.ones(4))
    y[1:3].mul_(2)
    return y


def _unbound(x, torch):
    y = x.clone()
    first = y.unbind(0)[0]
    y.zero_()
    return first + 1


def _expanded(x, torch):
    return x.unsqueeze(0).expand(2, 4, 2).sum(0).permute(1, 0).t()


def _strided(x, torch):
    x.as_strided((2,), (1,)).add_(1)
    return x.unsqueeze(1).squeeze(1)


def _filled(x, torch):
    x[0].fill_(3.0)
    return torch.nn.functional.relu(x, inplace=True)


def _constant(x, torch, constants={}):  # noqa: B006
    return x * constants.setdefault(torch, torch.full((2,), 3.0))


def _turned(x, torch):
    y = x.clone()
    y.t_()
    y[0].zero_()
    y.transpose_(1, 0)
    row = y[1]
    row.unsqueeze_(0)
    row.add_(torch.ones(1, 2))
    return y


def _overloads_of_other_names(x, torch):
    y = x + 1
    y.floor_divide_(x + 2)
    y.pow_(x)
    y.pow_(2)
    return y.bernoulli_(0.5).zero_()


FUNCTIONS = [
    _change_of_view,
    _out_of_other_shape,
    _views_in_place,
    _several,
    _rows,
    _unbound,
    _expanded,
    _strided,
    _filled,
    _constant,
    _turned,
    _overloads_of_other_names,
]


def _code(library, function, remove):
    make_fx = library.fx.experimental.proxy_tensor.make_fx
    changed = library.func.functionalize(lambda x: function(x, library), remove=remove)
    x = library.arange(8.0).reshape(4, 2)
    graph = make_fx(changed)(x)
    results = changed(library.arange(8.0).reshape(4, 2))
    results = results if isinstance(results, tuple) else (results,)
    return graph.code, [each.tolist() for each in results], x.tolist()


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_operators_without_changes(function, remove):
    import torch.fx.experimental.proxy_tensor

    import adjoint.fx.experimental.proxy_tensor  # noqa: F401

    theirs = _code(torch, function, remove)
    ours = _code(candidate, function, remove)
    assert ours == theirs
