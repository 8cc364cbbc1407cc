"""Lazy conjugates and negatives: views whose elements are computed when they are read."""

import copy
import gc
import io
import pickle
import threading

import numpy
import pytest

import adjoint as torch
from adjoint.kernels.runtime.lazy_conj import LazyConjNeg
from adjoint.tape import modes


def new():
    return torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]], dtype=torch.complex128)


def test_a_conjugate_is_a_view():
    x = new()
    c = x.conj()
    assert c.is_conj() and not c.is_neg() and c._base is x and c.data_ptr() == x.data_ptr()
    assert c.tolist() == [[1 - 2j, 3 + 1j], [-0.5j, 2]]
    assert not c.conj().is_conj() and c.conj().data_ptr() == x.data_ptr()
    assert x.mH.is_conj() and x.H.is_conj() and x.adjoint().is_conj() and not c.mH.is_conj()
    assert c.imag.is_neg() and not c.real.is_neg() and c.imag.tolist() == [[-2, 1], [-0.5, 0]]
    assert c[0].is_conj() and c.t().is_conj() and not (c * 1).is_conj() and not c.clone().is_conj()
    assert not c.resolve_conj().is_conj() and x.resolve_conj() is x
    assert torch.ones(2).conj().is_conj() is False


def test_changes_are_seen_by_both():
    x = new()
    c = x.conj()
    c.mul_(1j)
    assert x.tolist() == [[2 - 1j, -1 - 3j], [0.5, -2j]] and c._version == x._version == 1
    x[0] = 1j
    assert c[0].tolist() == [-1j, -1j]
    c.imag.fill_(3)
    assert (x.imag == -3).all()
    torch.add(torch.zeros(2, 2), 2j, out=c)
    assert x.tolist() == [[-2j, -2j], [-2j, -2j]]


def test_gradients_of_changes_pass_through_conjugates():
    w = new().requires_grad_()
    y = w * 1
    y.conj().imag.mul_(2)
    z = w * 1
    (y - torch.complex(z.real, 2 * z.imag)).abs().pow(2).sum().backward()
    assert w.grad.abs().max() == 0
    y = w * 1
    c = y.conj()
    c.mul_(2j)
    assert (y.grad_fn.name(), c.grad_fn.name()) == ("torch::autograd::CopySlices", "ConjBackward0")
    gradient = torch.autograd.grad(y.abs().pow(2).sum(), w)[0]
    assert torch.allclose(gradient, 8 * w.detach())


def test_functions_that_read_memory_refuse_or_resolve_lazy_views():
    x = new()
    c = x.conj()
    with pytest.raises(RuntimeError, match=r"Use tensor.resolve_conj\(\).numpy\(\) instead"):
        c.numpy()
    with pytest.raises(RuntimeError, match=r"Use tensor.resolve_neg\(\).numpy\(\) instead"):
        numpy.asarray(c.imag)
    numpy.testing.assert_array_equal(c.numpy(force=True), x.numpy().conj())
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        torch.view_as_real(c)
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        c.view(torch.float64)
    with pytest.raises(BufferError, match="conjugate bit"):
        torch.from_dlpack(c)
    assert repr(c[0, 0]) == "tensor(1.-2.j, dtype=torch.complex128)"


def test_copies():
    x = new()
    assert not copy.deepcopy(x.conj()).is_conj() and copy.deepcopy(x.conj()).equal(x.conj())
    for made in (copy.copy, lambda tensor: pickle.loads(pickle.dumps(tensor)), saved):
        for tensor in (x.conj(), x.conj().imag, x.mH):
            again = made(tensor)
            assert (again.is_conj(), again.is_neg()) == (tensor.is_conj(), tensor.is_neg())
            assert again.equal(tensor)


def saved(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file)


def test_operators_on_other_tensors_take_their_short_way(monkeypatch):
    def refuse(*args, **names):
        raise AssertionError("this is the slow path")

    x, index = torch.ones(3, 4, requires_grad=True), torch.tensor([0, 2])
    stand_ins = [new().conj(), new().conj().imag, torch.empty(2, device="meta")]
    assert not modes.FLAGS.special

    def compute():
        y = torch.cat([x * 2.0, x + x]).exp().t()[0:2, 1]
        y = torch.stack([y, y]).reshape(4).unsqueeze(0)[:, index]
        y.sum().backward()
        z = torch.zeros(3)
        z[1] = 2.0
        return z.add_(1.0).mul_(torch.ones(3))

    compute()
    monkeypatch.setattr("adjoint.dispatch.slow_path.run", refuse)
    assert compute().tolist() == [1, 3, 1]
    for stand_in in stand_ins:
        with pytest.raises(AssertionError, match="this is the slow path"):
            stand_in + stand_in


def test_many_threads():
    gc.collect()
    errors = []

    def work():
        x = new().requires_grad_()
        for _ in range(200):
            gradient = torch.autograd.grad((x.conj() * x).real.sum(), x)[0]
            if not torch.equal(gradient, 2 * x):
                errors.append(gradient)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and not modes.FLAGS.special


def test_arrays_resolve_themselves():
    array = numpy.array([1 + 2j, 3 - 1j])
    for pending in (torch.from_numpy(array).conj()._array, torch._neg_view(torch.from_numpy(array))._array):
        expected = -array if pending.bits == 2 else array.conj()
        assert isinstance(pending, LazyConjNeg)
        numpy.testing.assert_array_equal(pending + 0, expected)
        numpy.testing.assert_array_equal(numpy.add(0, pending, out=numpy.zeros(2, complex)), expected)
        numpy.testing.assert_array_equal(
            numpy.concatenate([pending.real, pending.imag]), [*expected.real, *expected.imag]
        )
        numpy.testing.assert_array_equal(numpy.stack([pending, array]), [expected, array])
        numpy.testing.assert_array_equal(pending.sum(), expected.sum())
        numpy.testing.assert_array_equal(pending.cumsum(), expected.cumsum())
        assert pending.tolist() == expected.tolist() and type(pending.copy()) is numpy.ndarray
        assert numpy.may_share_memory(pending, array)
        numpy.multiply(pending, 2, out=pending)
        numpy.testing.assert_array_equal(pending * 1, 2 * expected)
        numpy.copyto(pending, expected)
        pending[0] = expected[0]
        numpy.testing.assert_array_equal(pending * 1, expected)


def real_parts(*tensors):
    """Return a number that depends on all parts of complex tensors."""
    weights = [torch.arange(1.0, 1 + x.numel(), dtype=torch.float64).reshape(x.shape) for x in tensors]
    return sum(
        (((x.real + 2 * x.imag) if x.is_complex() else x) * w).sum() for x, w in zip(tensors, weights, strict=True)
    )


LAZY_VIEWS = {
    "conj": lambda a: a.conj(),
    "imag of conj": lambda a: a.conj().imag,
    "real of conj": lambda a: a.conj().real,
    "negative": torch._neg_view,
    "negative conj": lambda a: torch._neg_view(a.conj()),
    "mH": lambda a: a.mH,
    "H of a part": lambda a: a[1:, 1:].H,
    "part of conj": lambda a: a.conj()[0],
    "step of mH": lambda a: a.mH[::2],
    "conj of conj": lambda a: a.conj()[1:].conj(),
    "view of conj": lambda a: a.conj().view(-1)[2:],
    "diagonal of conj": lambda a: a.conj().diagonal(),
    "imag": lambda a: a.imag,
    "view_as_real": lambda a: torch.view_as_real(a)[..., 1],
}

WRITES = {
    "div": lambda v, x: v.div_(2),
    "mul by a number": lambda v, x: v.mul_(1 + 2j if v.is_complex() else 3),
    "mul by an example": lambda v, x: v.mul_(x[1]),
    "pow": lambda v, x: v.pow_(2),
    "exp": lambda v, x: v.exp_(),
    "reciprocal": lambda v, x: v.reciprocal_(),
    "assign": lambda v, x: v.__setitem__(0, x[0] * 2),
    "assign a part": lambda v, x: v[1:].mul_(x[2]),
    "copy": lambda v, x: v.copy_(torch.complex(x[0], x[1]) if v.is_complex() else x[0] * x[1]),
    "add lazily": lambda v, x: v.add_(v.conj() if v.is_complex() else torch._neg_view(v)),
    "zero": lambda v, x: v[:1].zero_(),
    "fill": lambda v, x: v[:1].fill_(x[0]),
}


fn = torch.func


def grad_within_vmap(f, xs):
    torch.testing.assert_close(torch.vmap(fn.grad(f))(xs), torch.stack([fn.grad(f)(x) for x in xs]))


def hessian_within_vmap(f, xs):
    torch.testing.assert_close(torch.vmap(fn.hessian(f))(xs), torch.stack([fn.hessian(f)(x) for x in xs]))


def grad_of_vmap(f, xs):
    expected = torch.stack([fn.grad(f)(x) for x in xs])
    torch.testing.assert_close(fn.grad(lambda xs: torch.vmap(f)(xs).sum())(xs), expected)


def finite_differences(f, xs):
    assert torch.autograd.gradcheck(f, xs[0].clone().requires_grad_(), check_forward_ad=True)


def hessian_by_reverse_mode(f, xs):
    torch.testing.assert_close(fn.hessian(f)(xs[0]), fn.jacrev(fn.jacrev(f))(xs[0]))


CHECKS = [grad_within_vmap, finite_differences, grad_of_vmap, hessian_by_reverse_mode, hessian_within_vmap]


def choices():
    """Return every pair of a view and a write with one check. Each check occurs with each view and with each write."""
    for number, view in enumerate(LAZY_VIEWS):
        for place in range(len(WRITES)):
            write = [*WRITES][(number + place) % len(WRITES)]
            yield (view, write, CHECKS[(2 * number + place) % len(CHECKS)])


@pytest.mark.parametrize(("view", "write", "check"), [*choices()])
@pytest.mark.one_each("view")
def test_lazy_views_are_changed_within_transforms_as_one_by_one(view, write, check):
    def f(x):
        a = torch.complex(x, x * 0.5 + 0.1).cumsum(0).repeat(3).view(3, 3) * 1
        early, v = a.mH, LAZY_VIEWS[view](a)
        WRITES[write](v, x)
        return real_parts(a * a, v * v, early * v.sum())

    check(f, torch.tensor([[0.3, -0.2, 0.5], [0.1, 0.7, -0.4]], dtype=torch.float64))
