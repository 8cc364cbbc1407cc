"""Contractions by opt_einsum, in the order that opt_einsum finds."""
# kind: mathematics
# requires: opt_einsum

import opt_einsum
import torch
from shown import show

torch.manual_seed(0)
a, b, c, d = (torch.randn(*shape, requires_grad=True) for shape in ((3, 4), (4, 5, 6), (6, 3, 2), (5, 2)))
out = opt_einsum.contract("ab,bcd,dae,ce->", a, b, c, d)
show("contracted", out, *torch.autograd.grad(out, (a, b, c, d)))
expression = opt_einsum.contract_expression("ab,bcd->acd", (3, 4), (4, 5, 6))
show("expression", expression(a, b))
path, info = opt_einsum.contract_path("ab,bcd,dae,ce->", a, b, c, d)
show("path", path, info.largest_intermediate)
show(
    "shared", opt_einsum.contract("ij,jk,kl->il", torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 2), backend="torch")
)
