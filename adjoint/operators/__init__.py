"""What can be done to tensors: one declaration for each operator, one module for each family."""

import gc

_collecting = gc.isenabled()
gc.disable()  # what the declarations make stays: looking for garbage among it took a fifth of the import
_frozen = gc.get_freeze_count()
try:
    from . import (
        activation,
        arithmetic,
        blocks,
        comparison,
        conversion,
        convolution,
        copies,
        copying,
        creation,
        diagonals,
        distance,
        dropout,
        einsum,
        embedding,
        fourier,
        gathering,
        gating,
        indexing,
        inspection,
        integration,
        interpolation,
        joining,
        least_squares,
        legacy,
        linalg,
        lookup,
        loss,
        margin_loss,
        masking,
        matmul,
        matrix_functions,
        matrix_norms,
        matrix_products,
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
        row_norms,
        selecting,
        signal_windows,
        softmax,
        sorting,
        special,
        statistics,
        subclassing,
        triangular,
        view,
    )
    from .beginning import begun
    from .build import PUBLIC
    from .build import tensors as _by_name
    from .declaration import OPERATORS
    from .generate import SOURCES
finally:
    if not _frozen:  # all that is new becomes old without being looked at
        gc.freeze()
        gc.unfreeze()
    if _collecting:
        gc.enable()

globals().update(vars(_by_name))  # an operator goes before the module it is declared in, where both have one name
