"""Tests for the overloads of `torch.ops.aten`."""

import pytest

import adjoint as torch
from adjoint.utils._python_dispatch import TorchDispatchMode

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


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.sort(X, 0, out=out),
        lambda out: torch.max(X, 0, out=out),
        lambda out: torch.median(X, 0, out=out),
        lambda out: torch.aminmax(X, dim=0, out=out),
        lambda out: torch.frexp(X, out=out),
        lambda out: torch.linalg.qr(X, out=out),
        lambda out: torch.linalg.eigh(X, out=out),
        lambda out: torch.linalg.slogdet(X, out=out),
        lambda out: torch.linalg.det(X, out=out),
        lambda out: torch.gather(X, 0, torch.tensor([[1]]), out=out),
        lambda out: torch.ones(2, 3, out=out),
        lambda out: torch.full((2,), 3.0, out=out),
        lambda out: torch.arange(3, out=out),
        lambda out: torch.eye(3, out=out),
        lambda out: torch.linspace(0, 1, 3, out=out),
    ],
)
def test_out_is_written_under_a_mode(call):
    wanted = call(None)

    def targets():
        several = isinstance(wanted, tuple)
        new = tuple([torch.empty(0, dtype=each.dtype) for each in (wanted if several else (wanted,))])
        return new if several else new[0]

    expected, out = targets(), targets()
    call(expected)
    with Passing():
        call(out)
    torch.testing.assert_close(out, expected)


def test_overloads_write_to_several_targets():
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    found = aten.sort.values(X, 0, values=values, indices=indices)
    assert found[0] is values and found[1] is indices
    assert values.tolist() == [[1.0, -5.0], [4.0, 2.0]] and indices.tolist() == [[0, 0], [1, 1]]
