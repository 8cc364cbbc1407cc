"""Automatic differentiation with the semantics and the API of `torch.autograd`, in readable Python on NumPy.

>>> import adjoint as torch
>>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x * x).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4., 6.])
"""
from . import operators
from .tensor import Tensor, wrap
