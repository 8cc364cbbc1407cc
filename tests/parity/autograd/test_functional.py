"""Jacobians, Hessians and their products with vectors: values, strictness, errors."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

SETUP = """
import warnings
AF = torch.autograd.functional
def t(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            show(function(*args, **options))
        except Exception as error:
            raises(lambda: (_ for _ in ()).throw(error))
x = torch.tensor([1., 2.])
y = torch.tensor([3., 4.])
v = torch.tensor([1., -1.])
xr = x.clone().requires_grad_()
f = lambda a: a ** 2
f2 = lambda a, b: (a * b).sum()
f3 = lambda a, b: (a * b, a.sum() + b ** 2)
g = lambda a: (a ** 3).sum()
g2 = lambda a, b: (a ** 2 * b).sum()
"""

PROGRAMS = {
    "vjp": """
        t(AF.vjp, f, x, v)
        t(AF.vjp, f2, (x, y))
        t(AF.vjp, f, x)
        t(AF.vjp, f3, (x, y), (v, v))
        t(AF.vjp, f3, (x, y), v)
        t(AF.vjp, f, x, torch.ones(3))
        t(AF.vjp, f, 3, v)
        t(AF.vjp, f, [x], v)
        t(AF.vjp, f, (x, 3), v)
        t(AF.vjp, lambda a:5, x, v)
        t(AF.vjp, lambda a:a.detach(), x, v)
        t(AF.vjp, lambda a:a.detach(), x, v, strict=True)
        t(AF.vjp, lambda a:a.detach()*torch.ones(2, requires_grad=True), x, v, strict=True)
        t(AF.vjp, lambda a, b:a*2, (x, y), v)
        t(AF.vjp, lambda a, b:a*2, (x, y), v, strict=True)
        t(AF.vjp, lambda a:[a, a], x, (v, v))
        t(AF.vjp, lambda a:(a, 3), x, (v, v))
        t(AF.vjp, f, xr, v, create_graph=True)
        t(AF.vjp, f, xr, v)
        t(AF.vjp, f, x, v, create_graph=True, strict=True)
        t(AF.vjp, lambda a:a*2, xr, v, create_graph=True, strict=True)
        t(AF.vjp, f, x, None)
        t(AF.vjp, f, x, v.to(torch.complex64))
        t(AF.vjp, f2, (x, y), torch.ones(1))
    """,
    "jvp": """
        t(AF.jvp, f, x, v)
        t(AF.jvp, f3, (x, y), (v, v))
        t(AF.jvp, f, x)
        t(AF.jvp, lambda a:a*a, torch.tensor(3.))
        t(AF.jvp, f, x, torch.ones(3))
        t(AF.jvp, lambda a:a.detach(), x, v)
        t(AF.jvp, lambda a:a.detach(), x, v, strict=True)
        t(AF.jvp, f, xr, v, create_graph=True)
        t(AF.jvp, lambda a:a*2, xr, v, create_graph=True, strict=True)
        t(AF.jvp, lambda a, b:a*2, (x, y), (v, v), strict=True)
        t(AF.jvp, lambda a:torch.ones(2, requires_grad=True)*1, x, v, strict=True)
        t(AF.jvp, f2, (x, y), v)
    """,
    "jacobian": """
        t(AF.jacobian, f, x)
        t(AF.jacobian, f2, (x, y))
        t(AF.jacobian, f3, (x, y))
        t(AF.jacobian, lambda a, b:a*2, (x, y))
        t(AF.jacobian, lambda a, b:a*2, (x, y), strict=True)
        t(AF.jacobian, lambda a:a.detach(), x)
        t(AF.jacobian, lambda a:a.detach(), x, strict=True)
        t(AF.jacobian, f, xr, create_graph=True)
        t(AF.jacobian, lambda a:a*2, xr, create_graph=True, strict=True)
        t(AF.jacobian, f, x, strategy='foo')
        t(AF.jacobian, f, x, strategy='forward-mode')
        t(AF.jacobian, f, x, vectorize=True, strict=True)
        t(AF.jacobian, f, x, vectorize=True, strategy='forward-mode', create_graph=True)
        t(AF.jacobian, f, xr, vectorize=True, create_graph=True)
        t(AF.jacobian, lambda a:(a.to(torch.float64)**2), x, vectorize=True)
        t(AF.jacobian, lambda a:(a.to(torch.float64)**2), x)
        t(AF.jacobian, lambda a:a.reshape(2, 1)*torch.ones(3), x)
        t(AF.jacobian, f, torch.zeros(0))
        t(AF.jacobian, f, x.to(torch.complex64))
        t(AF.jacobian, lambda a:5, x)
        t(AF.jacobian, f, 3)
        for s in ('reverse-mode', 'forward-mode'):
            t(AF.jacobian, f3, (x, y), vectorize=True, strategy=s)
            t(AF.jacobian, lambda a, b:a*2, (x, y), vectorize=True, strategy=s)
            t(AF.jacobian, lambda a:a.sum(), x, vectorize=True, strategy=s)
    """,
    "hessian": """
        t(AF.hessian, g, x)
        t(AF.hessian, g2, (x, y))
        t(AF.hessian, g, xr, create_graph=True)
        t(AF.hessian, lambda a:a.sum(), x)
        t(AF.hessian, lambda a:a.sum(), x, strict=True)
        t(AF.hessian, f, x)
        t(AF.hessian, g2, (x, y), vectorize=True)
        t(AF.hessian, g, x, outer_jacobian_strategy='forward-mode')
        t(AF.hessian, g, x, outer_jacobian_strategy='foo')
        t(AF.hessian, lambda a:(a.sum(), a.sum()), x)
        t(AF.hessian, lambda a, b:(a**2).sum(), (x, y))
        t(AF.hessian, lambda a, b:(a**2).sum(), (x, y), strict=True)
        t(AF.hessian, lambda a:(a**3).sum().reshape(1), x)
        t(AF.hessian, lambda a:a.detach().sum(), x)
        t(AF.hessian, lambda a:3, x)
    """,
    "hessian_products": """
        for h in (AF.vhp, AF.hvp):
            t(h, g, x, v)
            t(h, g2, (x, y), (v, v))
            t(h, g, x)
            t(h, f, x, v)
            t(h, g, x, torch.ones(3))
            t(h, g, xr, v, create_graph=True)
            t(h, lambda a:a.sum(), x, v)
            t(h, lambda a:a.sum(), x, v, strict=True)
            t(h, lambda a:a.detach().sum(), x, v);t(h, lambda a:a.detach().sum(), x, v, strict=True)
            t(h, lambda a:a**2, torch.tensor(3.))
            t(h, lambda a:(a, a), x, v)
            t(h, g2, (x, y))
            t(h, g2, (x, y), v)
            t(h, lambda a, b:(a**2).sum(), (x, y), (v, v))
            t(h, lambda a, b:(a**2).sum(), (x, y), (v, v), strict=True)
            t(h, lambda a:(a**2).sum(), xr, v, create_graph=True, strict=True)
    """,
    "without_grad": """
        with torch.no_grad():
            t(AF.vjp, f, x, v)
            t(AF.jvp, f, x, v)
            t(AF.jacobian, f, x)
            t(AF.hessian, g, x)
            t(AF.jacobian, f, x, create_graph=True)
    """,
    "of_tensors_of_a_class_that_computes_with_others": """
        from torch.utils._pytree import tree_map
        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls, inner, requires_grad=False):
                memory = dict(strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype)
                made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), requires_grad=requires_grad, **memory)
                made.inner = inner.detach()
                return made
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                args, kwargs = tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
                result = func(*args, **kwargs)
                return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, result)
        def shown(found):
            for each in found if isinstance(found, tuple) else (found,):
                show(type(each).__name__, tuple(each.shape), each.requires_grad, each.detach().inner)
        class Derived(Wrapper):
            pass
        disabled = torch._C._disabled_torch_function_impl
        show(Wrapper.__torch_function__ is disabled, Derived.__torch_function__ is disabled)
        w, u = Wrapper(x), Wrapper(v)
        shown(AF.vjp(lambda a: a.detach(), w, u))
        shown(AF.vjp(lambda a: a.sum(), w))
        shown(AF.jvp(lambda a: a.detach(), w, u))
        shown(AF.jvp(lambda a: a.unsqueeze(0).repeat(4), Wrapper(torch.tensor(3.))))
        for product in (AF.vhp, AF.hvp):
            shown(product(lambda a: (3 * a).sum(), w, u))
            shown(product(g, w, u))
        shown(AF.jacobian(f, w))
        shown(AF.hessian(g, w))
        for shape, turned in (((2, 3), False), ((2, 3), True), ((0, 2), False), ((), False)):
            inner = torch.zeros(shape).t() if turned else torch.zeros(shape)
            show(Wrapper(inner).stride(), Wrapper(inner).is_contiguous(), Wrapper(torch.zeros(7)[2:]).storage_offset())
        d = Wrapper(torch.rand(2, 2, dtype=torch.double), requires_grad=True)
        e = Wrapper(torch.rand(2, 2, dtype=torch.double), requires_grad=True)
        exponents = lambda a: AF.jacobian(lambda b: b.exp().sum(dim=1), a, create_graph=True)
        show(torch.autograd.gradcheck(exponents, d))
        show(torch.autograd.gradcheck(lambda a, b: AF.vhp(g, a, b, create_graph=True), (d, e)))
        show(torch.autograd.gradcheck(lambda a, b: a * b, (d, e), fast_mode=True))
        class Thrice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2
            @staticmethod
            def backward(ctx, grad):
                return grad * 3
        show(type(torch.autograd.grad(Thrice.apply(d), d, torch.ones(2, 2, dtype=torch.double))[0]).__name__)
    """,
}

test_program_shows_the_same = program_test(
    {name: SETUP + "\n".join(line[8:] for line in program.split("\n")) for name, program in PROGRAMS.items()}
)
