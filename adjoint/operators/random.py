"""Random tensors, and dropout, which draws its mask."""

from __future__ import annotations

from typing import Any

import numpy

from .. import dtypes
from ..kernels import random as kernels
from .build import public
from .creation import finished, shape_of

from ..random import default_generator


def stream_of(generator: Any) -> kernels.Stream:
    """The stream to draw from: the generator's, or the default one's."""
    return (default_generator if generator is None else generator)._stream


def _sampled(name, sample, doc):
    def create(
        *size, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **names
    ):
        size = shape_of(size, names.get("size"), name)
        if dtype is None:
            dtype = dtypes.get_default_dtype() if out is None else out.dtype
        return finished(name, sample(stream_of(generator), size, dtype.numpy), out, requires_grad, device, pin_memory, layout)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public()(create)


rand = _sampled("rand", kernels.rand, "Numbers uniformly distributed in [0, 1).")
randn = _sampled("randn", kernels.randn, "Numbers normally distributed with mean 0 and variance 1.")
