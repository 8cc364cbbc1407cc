"""What can be done to tensors: one declaration for each operator, one module for each family."""

from . import activation, arithmetic, einsum, indexing, joining, linalg, loss, softmax, comparison, copying, creation, masking, matmul, pointwise, random, ranges, reduction, sorting, view, view_gradients
from .build import PUBLIC
from .declaration import OPERATORS
from .generate import SOURCES
