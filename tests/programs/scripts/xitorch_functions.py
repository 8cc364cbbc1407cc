"""Roots, equilibria, integrals and eigenvalues with derivatives, by xitorch."""
# kind: mathematics
# requires: xitorch

import torch
import xitorch
from shown import show
from xitorch import linalg
from xitorch.integrate import quad, solve_ivp
from xitorch.interpolate import Interp1D
from xitorch.optimize import equilibrium, minimize, rootfinder

torch.manual_seed(0)
a = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
start = torch.ones(2, dtype=torch.float64)
root = rootfinder(lambda x, a: x**3 - a, start, params=(a,))
show("root", root, *torch.autograd.grad(root.sum(), a))
fixed = equilibrium(lambda x, a: (x + a / x) / 2, start, params=(a,), method="broyden1")
show("fixed", fixed, *torch.autograd.grad(fixed.sum(), a))
least = minimize(lambda x, a: ((x - a) ** 2).sum() + (x**4).sum(), start, params=(a,), method="broyden1")
show("least", least, *torch.autograd.grad(least.sum(), a))
integral = quad(
    lambda t, a: (a * t).sin(), torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64), params=(a,)
)
show("integral", integral, *torch.autograd.grad(integral.sum(), a))
path = solve_ivp(
    lambda t, y, a: -a * y, torch.linspace(0, 1, 4, dtype=torch.float64), start, params=(a,), method="rk45"
)
show("path", path, *torch.autograd.grad(path.sum(), a))
matrix = torch.diag(a) + 0.1
operator = xitorch.LinearOperator.m(matrix)
values, vectors = linalg.symeig(operator)
show("eigenvalues", values, linalg.solve(operator, start[:, None]))
show(
    "interpolated",
    Interp1D(
        torch.linspace(0, 1, 5, dtype=torch.float64),
        torch.linspace(0, 1, 5, dtype=torch.float64) ** 2,
        method="cspline",
    )(torch.tensor([0.3], dtype=torch.float64)),
)
