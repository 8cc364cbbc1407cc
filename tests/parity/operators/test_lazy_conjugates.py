"""Lazy conjugates and negatives compared with PyTorch: text, graphs, errors, and the values written to `out=`."""

import copy
import io
import pickle
import re
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint

_PRELUDE = """
def new():
    return torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]], dtype=torch.complex128)


def leaf():
    return new().requires_grad_()


def graph(node, depth=4):
    if node is None or not depth:
        return node and node.name()
    return node.name(), [graph(each, depth - 1) for each, _ in node.next_functions]


def bits(tensor):
    return tensor.is_conj(), tensor.is_neg(), tensor._is_view(), tensor._version, tensor.stride()


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


def once(x):
    return x * 1


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        return (a * b).conj()

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad.conj() * b.conj(), (grad.conj() * a.conj()).mH.mT

    @staticmethod
    def jvp(ctx, a_t, b_t):
        a, b = ctx.saved_tensors
        return (a_t * b + a * b_t).conj()


class Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.mark_dirty(a)
        return a.mul_(2j)

    @staticmethod
    def backward(ctx, grad):
        return grad * -2j


x, r, w = new(), torch.tensor([[1.0, -2.0], [0.5, 4.0]], dtype=torch.float64), leaf()
c = x.conj()
fwAD = torch.autograd.forward_ad
"""

_VIEWS = """
clone() contiguous() t().contiguous() detach() t() reshape(4) t().reshape(4) view(4) expand(3,2,2) unsqueeze(0) flatten()
diagonal() unbind()[0] split(1)[0] as_strided((2,),(1,)) to(torch.complex64) to(torch.complex128) abs() __neg__() __pos__() conj()
mH H adjoint() real imag conj_physical() resolve_conj() resolve_neg()
data cdouble() cpu() __getitem__(0) __getitem__([0]) T mT squeeze() movedim(0,1)
""".split()

_CHANGES = """
d.add_(1j)
d.mul_(1j)
d.copy_(x)
x.copy_(d)
d[0] = 5 + 1j
d[0, 1] = w.detach()[1, 0]
d[x.real > 1] = 7j
d[[0]] = x[1]
d.fill_(1j)
d.zero_()
x.mul_(1j)
torch.add(x, 1j, out=d)
torch.add(d, 1j, out=x)
torch.mm(x, x, out=d)
torch.add(r, 1, out=d.imag)
d.conj_physical_()
d.imag.fill_(7)
d.imag = r
d.real = r
d.t_()
d.transpose_(0, 1)
d.unsqueeze_(0)
d.resize_(4)
d.index_put_((torch.tensor([0]), torch.tensor([1])), x[1, 1] * 9j)
d.masked_fill_(r > 0, 9j)
d.scatter_(0, torch.tensor([[0, 1]]), x.clone())
d.index_add_(0, torch.tensor([0, 0]), x.clone())
d.normal_()
d.imag.uniform_()
d.mH[0].sub_(3)
torch._neg_view(d).sinh_()
torch._neg_view(r).exp_()
d.imag.clamp_(min=0)
d.set_(r.to(d.dtype))
x.set_(d.mT.clone())
x.data = d
x.copy_(d.mH)
d.copy_(x.mT)
d.mul_(d.mH)
""".strip().split("\n")

_OF_HISTORY = """
x.conj()
x.conj().conj()
x.mH
x.conj().imag
x.conj().real
x.conj().imag.resolve_neg()
x.conj().resolve_conj()
x.conj().clone()
x.conj_physical()
torch._neg_view(x)
x.conj() * 2
x.conj()[0]
x.conj().to(torch.complex64)
x.mH @ x
x.conj().imag.exp()
x.conj().unbind()[1]
x.conj().as_strided((2,), (2,), 1)
torch.fft.ifft(x)
torch.fft.ifft(x.real)
torch.fft.ihfft(x.real)
torch.fft.hfft(x)
Product.apply(x, x.conj())
torch.linalg.solve(x.mH, x.conj())
""".strip().split("\n")

_CHANGED_HISTORY = """
d.mul_(2j)
y.mul_(2j)
d.exp_()
d.imag.mul_(2)
d.imag.exp_()
d[0].mul_(2j)
y.mH[0].mul_(2j)
d.copy_(d * 2j)
d[0] = 1j
y[0] = 1j
d.conj_physical_()
d.mul_(y.detach().clone())
d.mul_(w)
d.imag.mul_(w.imag)
Turned.apply(d)
""".strip().split("\n")

_PROGRAMS = """
show(*map(repr, (c, c.imag, c[0, 0], leaf().conj(), leaf().conj().imag, torch.nn.Parameter(c))), f"{c[0, 0]:.2f}")

show(c.data_ptr() == x.data_ptr(), c._base is x, c.conj() is x, c.resolve_conj() is c, x.resolve_conj() is x)

show(c.imag.data_ptr() - x.data_ptr(), c.real.data_ptr() == x.data_ptr(), c.untyped_storage().data_ptr() == x.data_ptr())

show(r.conj() is r, r.resolve_neg() is r, torch.is_conj(c), torch.is_neg(c.imag), c.is_set_to(x))

show((c.mT * 2).stride(), (c.t() * r).stride(), (c.mT + c.mT).stride(), c.mT.exp().stride(), c.mT.clone().stride())

show(c.item())

show(c[0, 0].item(), complex(c[0, 0]), float(c.imag[0, 0]), c.tolist(), c.imag.tolist(), bool(c[0, 0]), (1 - 2j) in c)

show(c.numpy())

show(c.imag.numpy())

show(c.numpy(force=True), c.imag.numpy(force=True))

show(numpy.asarray(c))

show(leaf().conj().numpy())

show(torch.from_dlpack(c))

show(torch.view_as_real(c))

show(torch.view_as_real(torch._neg_view(x)), torch.view_as_complex(torch._neg_view(r)))

show(c.view(torch.float64))

show(c.imag.view(torch.int64))

show([bits(each)[:3] for each in saved([c, x.mT])], saved(c), saved({"a": torch.nn.Parameter(c)}), saved(c.imag))

show(bits(copy.deepcopy(c)), copy.deepcopy(c.imag), bits(copy.copy(c))[:3], bits(pickle.loads(pickle.dumps(c.imag)))[:3])

show(torch.equal(c, x), torch.equal(c, c.resolve_conj()), torch.allclose(c, c.resolve_conj()), c == c.resolve_conj())

show(bits(torch.stack([c, x])), torch.stack([c, x]), torch.cat([c, c]), c @ x, torch.where(r > 0, c, 0))

show(torch.tensor(c), torch.as_tensor(c) is c, torch.tensor([c[0, 0], c[0, 1]]), torch.asarray(c).is_conj())

show(r[torch._neg_view(torch.tensor([-1, 0]))], r[torch._neg_view(torch.tensor(-1))], r * torch._neg_view(torch.tensor(-2.0)))

show(bits(torch.fft.ifft(r)), bits(torch.fft.ihfft(r)), bits(torch.fft.ifft(x)), bits(torch.fft.ihfft2(r)))

show(torch.fft.ifft(w.real, out=torch.zeros_like(x)))

show(leaf().conj().mul_(2))

with torch.no_grad():
    y = leaf().conj()
    show(bits(y), y.requires_grad, y.mul_(2))

with torch.inference_mode():
    y = new().conj()
    show(bits(y)[:3], y.mul_(2j), y)

y = w * 1
d = y.conj()
z = d * d
show(z.grad_fn._saved_self is d, z.grad_fn._saved_self.is_conj(), d.exp().grad_fn._saved_result.is_conj())

y = w * 1
d = y.conj()
z = d * d
y.mul_(2)
z.sum().abs().backward()

d, e = new().conj().detach(), torch.ones(2, dtype=torch.complex128, requires_grad=True)
d[0].mul_(e * 2j)
d.abs().sum().backward()
show(d, e.grad, d.grad_fn.name())

d, e = new().conj().detach(), torch.ones(2, 2, dtype=torch.complex128, requires_grad=True)
f = d.conj()
f.mul_(e * 2j)
(d * x).abs().sum().backward()
show(d, e.grad, f, f.is_conj())

w.grad = new().conj()
(w * 2).backward(x)
show(w.grad)

(w * 1).backward(x.conj())
show(w.grad)

y = w * 1
y.register_hook(lambda grad: grad.conj())
y.grad_fn.register_prehook(lambda grads: (grads[0].conj(),))
w.register_hook(lambda grad: grad.mH)
y.backward(x)
show(w.grad)

with torch.autograd.graph.saved_tensors_hooks(lambda t: t.conj(), lambda t: t.conj()):
    d = w.conj()
    y = (d * d).abs().sum()
y.backward()
show(w.grad)

with torch.autograd.graph.save_on_cpu():
    y = (w.mH @ w.mH).abs().sum()
y.backward()
show(w.grad)

with torch.autograd.graph.allow_mutation_on_saved_tensors():
    y = w * 1
    z = (y * y.conj()).real.sum()
    y.conj().zero_()
    z.backward()
show(w.grad)

y = torch.utils.checkpoint.checkpoint(lambda a: (a * a.conj()).real.sum(), w.mH, use_reentrant=False)
y.backward()
show(w.grad)

y = w * 1
d = y.conj()
d.exp_()
one, = torch.autograd.grad(y.abs().sum(), w, create_graph=True)
two, = torch.autograd.grad(one.abs().sum(), w)
show(one, two)

y = w * 1
d = y.conj().imag
d.sinh_()
one, = torch.autograd.grad(y.abs().sum(), w, create_graph=True)
two, = torch.autograd.grad(one.abs().sum(), w)
show(one, two)

with fwAD.dual_level():
    d = fwAD.make_dual(x, x * 1j)
    show(*[fwAD.unpack_dual(each) for each in (d.conj(), d.conj().imag, d.conj().resolve_conj(), d.mH @ d)])
    show(bits(fwAD.unpack_dual(d.conj()).tangent)[:2], bits(fwAD.unpack_dual(d.conj().imag).tangent)[:2])

with fwAD.dual_level():
    d = fwAD.make_dual(x, x * 1j)
    e = d.conj()
    e.mul_(2j)
    e.imag.mul_(3)
    show(fwAD.unpack_dual(d), fwAD.unpack_dual(e))

with fwAD.dual_level():
    y = new()
    y.conj().copy_(fwAD.make_dual(x, x * 1j))
    show(fwAD.unpack_dual(y))

with fwAD.dual_level():
    d = fwAD.make_dual(new().conj(), x * 1j)
    d[0].mul_(2j)
    show(fwAD.unpack_dual(d), fwAD.unpack_dual(d.imag), fwAD.unpack_dual(d.conj()))

with fwAD.dual_level():
    d = fwAD.make_dual(x, x.conj())
    show(fwAD.unpack_dual(d).tangent.is_conj(), fwAD.unpack_dual(d * d), fwAD.unpack_dual(d.imag))
    show(fwAD.unpack_dual(Product.apply(d, fwAD.make_dual(x.conj(), x * 1))))

show(torch.vmap(lambda a: a.conj())(x).is_conj(), torch.vmap(lambda a, b: a.conj() @ b)(x.mH, x))

show(torch.vmap(torch.vmap(lambda a: a.conj() * a))(x.conj()))

def change(a):
    b = a.clone()
    b.conj()[0].mul_(2j)
    return b
show(torch.vmap(change)(x), torch.func.jvp(change, (x,), (x * 1j,)), torch.func.vjp(change, x)[1](x))

show(torch.func.grad(lambda a: (a.conj() * a).real.sum())(x), torch.func.linearize(lambda a: a.conj() * a, x)[1](x * 1j))

show(torch.func.jacfwd(lambda a: (torch.complex(a, 2 * a).conj() ** 2).abs())(r))

show(torch.autograd.functional.jacobian(lambda a: a.conj() * a, x))

show(torch.autograd.functional.jvp(lambda a: a.mH @ a, x, x.conj()))

show(torch.autograd.gradcheck(lambda a: a.conj().imag.sin() + (a.mH @ a).real, leaf(), check_forward_ad=True))

show(torch.autograd.gradcheck(lambda a: a.imag.sin() + (a.mH @ a).real, x.conj().requires_grad_(), check_forward_ad=True))

show(torch.autograd.gradgradcheck(lambda a: a.conj().imag.sin() * (a.mH @ a).real, leaf()))

class Metres(torch.Tensor):
    pass
y = x.as_subclass(Metres)
show(type(y.conj()).__name__, y.mH.is_conj(), y.conj() * y, x.conj().as_subclass(Metres).is_conj())

model = torch.nn.Module()
model.register_buffer("b", new().conj())
model.load_state_dict({"b": new().mH})
show(model.b, model.state_dict()["b"].is_conj(), copy.deepcopy(model).b)

for kind in (torch.optim.SGD, torch.optim.Adam):
    p = torch.nn.Parameter(new())
    optimizer = kind([p], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (p.mH @ p).abs().sum().backward()
        optimizer.step()
    show(p)
""".strip().split("\n\n")

PROGRAMS = [
    *(
        f"show(bits(c.{call}), c.{call}); show(bits(c.imag.{call}), c.imag.{call})"
        for call in _VIEWS
        if "complex" not in call
    ),
    *(
        f"torch.manual_seed(0)\nd = x.conj()\n{line}\nshow(x, d, x._version, d._version, bits(d), r)"
        for line in _CHANGES
    ),
    *(
        f"x = leaf()\ny = {line}\ng = torch.ones_like(y) * (2j if y.is_complex() else 2)\nshow(graph(y.grad_fn), bits(y), y)\n"
        f"show(torch.autograd.grad(y, x, g, retain_graph=True))\n"
        f"one, = torch.autograd.grad(y, x, g, create_graph=True)\n"
        f"show(one, one.requires_grad and torch.autograd.grad(one.abs().sum(), x, allow_unused=True))"
        for line in _OF_HISTORY
    ),
    *(
        f"y = w * 1\nd = y.conj()\n{line}\nshow(graph(y.grad_fn), graph(d.grad_fn), y, d, bits(d))\n"
        "show(torch.autograd.grad((d * d * y).abs().sum(), w, retain_graph=True))\n"
        "show(torch.autograd.grad((d * d * y).abs().sum(), w, create_graph=True))"
        for line in _CHANGED_HISTORY
    ),
    *_PROGRAMS,
]


def shown(library, program):
    """Run a program, and return the values that it shows.

    Tensors become dtypes, nodes and elements. The elements need only be close.
    """
    found = []

    def plain(value):
        if isinstance(value, library.Tensor):
            node = value.requires_grad if value.grad_fn is None else type(value.grad_fn).__name__
            return type(value).__name__, str(value.dtype), node, value.detach().numpy(force=True)
        if isinstance(value, (tuple, list, dict)):
            return [plain(item) for item in (value.values() if isinstance(value, dict) else value)]
        return value

    names = {"torch": library, "copy": copy, "io": io, "numpy": numpy, "pickle": pickle}
    names["show"] = lambda *values: found.extend(plain(value) for value in values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(_PRELUDE, names)
        try:
            exec(program, names)
        except Exception as error:
            found.append(re.sub(r"\[[\w.]*(Type|Tensor) ", "[", f"{type(error).__name__}: {error}"))
    return found


def check_same(actual, expected):
    if isinstance(expected, list | tuple):
        assert isinstance(actual, list | tuple), (actual, expected)
        for one, other in zip(actual, expected, strict=True):
            check_same(one, other)
    elif isinstance(expected, numpy.ndarray):
        numpy.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)
        assert actual.dtype == expected.dtype
    else:
        assert actual == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_show_the_same(program):
    check_same(shown(adjoint, program), shown(torch, program))
