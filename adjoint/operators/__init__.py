"""What can be done to tensors: one declaration for each operator, one module for each family."""

from . import arithmetic, copying, creation, matmul, random, reduction, sorting, view, view_gradients
from .build import PUBLIC
from .declaration import OPERATORS
from .generate import SOURCES
