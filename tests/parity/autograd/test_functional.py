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
}

test_program_shows_the_same = program_test(
    {name: SETUP + "\n".join(line[8:] for line in program.split("\n")) for name, program in PROGRAMS.items()}
)
