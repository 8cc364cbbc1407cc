"""Tests for the overloads of `torch.ops.aten`."""

import pytest

import adjoint as torch

aten = torch.ops.aten
X = torch.tensor([[1.0, -5.0], [4.0, 2.0]])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("sum", ()),
        ("prod", ()),
        ("relu", ()),
        ("dist", (X + 1,)),
        ("celu", ()),
        ("flip", ([0],)),
        ("count_nonzero", ()),
    ],
)
def test_overloads_write_results_of_functions_without_out(name, args):
    overload, wanted = getattr(aten, name).out, getattr(torch, name)(X, *args)
    out = torch.empty(0, dtype=wanted.dtype)
    version = out._version
    assert overload(X, *args, out=out) is out
    assert out.equal(wanted) and out._version > version
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype .*, but got short int instead"):
        overload(X, *args, out=torch.empty(0, dtype=torch.int16))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        overload(X.clone().requires_grad_(), *args, out=out)


def test_packets_find_the_overload_with_out():
    for name in ("sum", "relu"):
        out = torch.empty(0)
        assert getattr(aten, name)(X, out=out) is out and out.equal(getattr(torch, name)(X))
    assert aten.sum(X, [0], out=torch.empty(2)).tolist() == [5.0, -3.0]
