"""What can be done to tensors: one declaration for each operator, one module for each family."""

from . import (
    activation,
    arithmetic,
    comparison,
    conversion,
    convolution,
    copying,
    creation,
    diagonals,
    distance,
    dropout,
    einsum,
    embedding,
    gathering,
    gating,
    indexing,
    inspection,
    joining,
    legacy,
    linalg,
    loss,
    margin_loss,
    masking,
    matmul,
    memory,
    normalization,
    optimization,
    padding,
    pairwise,
    parts,
    pixels,
    pointwise,
    pooling,
    powers,
    random,
    ranges,
    reduction,
    selecting,
    softmax,
    sorting,
    special,
    view,
)
from .build import PUBLIC
from .build import tensors as _by_name
from .declaration import OPERATORS
from .generate import SOURCES

globals().update(vars(_by_name))  # an operator goes before the module it is declared in, where both have one name
