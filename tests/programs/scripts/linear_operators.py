"""Structured matrices of linear-operator: products, solves, determinants and their gradients."""
# kind: mathematics
# requires: linear-operator

import torch
from linear_operator import operators
from shown import show

torch.manual_seed(0)
root = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
diagonal = torch.rand(5, dtype=torch.float64).add(1).requires_grad_()
matrix = operators.RootLinearOperator(root) + operators.DiagLinearOperator(diagonal)
right = torch.arange(5.0, dtype=torch.float64)
show("matrix", matrix.to_dense(), matrix @ right, matrix.diagonal())
solved, determinant = matrix.solve(right), matrix.logdet()
show("solved", solved, determinant, *torch.autograd.grad(solved.sum() + determinant, (root, diagonal)))
toeplitz = operators.ToeplitzLinearOperator(torch.tensor([3.0, 1.0, 0.5, 0.1]))
product = operators.KroneckerProductLinearOperator(toeplitz, operators.DenseLinearOperator(torch.eye(2) * 2))
show("product", product @ torch.ones(8), toeplitz.cholesky().to_dense(), product.logdet())
