"""`torch.quasirandom`: Sobol sequences, whose points fill a cube more evenly than random points.

SciPy provides the direction numbers of Joe and Kuo (2008, search criterion D(6)).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy

import adjoint as torch
from adjoint._runtime.first_use import import_late
from adjoint._runtime.installed import install
from adjoint.dispatch.arguments import require

__all__ = ["SobolEngine"]


class SobolEngine:
    """A sequence of Sobol points in the unit cube (Sobol, 1967), optionally scrambled (Owen, 1998; Matoušek, 1998).

    Args:
        dimension: the number of dimensions, up to 21,201.
        scramble: whether to scramble the points by a random linear map of the digits and a random shift.
        seed: the seed of the scrambling. By default the default generator is used.

    Raises:
        ValueError: if there are no direction numbers for the dimension.
        ImportError: if SciPy is not installed.
    """

    MAXBIT: ClassVar[int] = 30
    MAXDIM: ClassVar[int] = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        if not isinstance(dimension, int):
            raise TypeError(f"the dimension of a SobolEngine must be int, not {type(dimension).__name__}")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = torch.from_numpy(_direction_numbers(dimension))
        self.shift = torch.zeros(dimension, dtype=torch.long)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> torch.Tensor:
        """Return the next `n` points, with shape `(n, dimension)`.

        Args:
            n: the number of points.
            out: a tensor for the result, which is resized if necessary.
            dtype: the dtype of the result; the default dtype if None.
        """
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if dtype not in (torch.float32, torch.float64):
            raise NotImplementedError(f'"_sobol_engine_draw" not implemented for {dtype}')
        require("Int", n, "_sobol_engine_draw", "n", 2)
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}, {self.dimension}]")
        points = self._advance(n - 1 if self.num_generated == 0 and n else n)
        if self.num_generated == 0 and n:
            points = numpy.concatenate([self.shift.numpy()[None], points])
        self.num_generated += n
        result = torch.from_numpy(points).to(dtype) / 2**self.MAXBIT
        if out is None:
            return result
        out.resize_(result.shape).copy_(result)
        drawn: torch.Tensor = out
        return drawn

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> torch.Tensor:
        """Draw the next 2ᵐ points. The length of the whole sequence must then be a power of two.

        Raises:
            ValueError: if the length is not a power of two, because the sequence would not be balanced.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Start again at the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip the next `n` points."""
        self._advance(n - 1 if self.num_generated == 0 else n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}", *(["scramble=True"] if self.scramble else [])]
        parts += [] if self.seed is None else [f"seed={self.seed}"]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _advance(self, n: int) -> Any:
        """Return the next `n` points as integers, each by one direction number (Antonov and Saleev, 1979)."""
        first = max(self.num_generated - 1, 0)
        if first + n >= 2**self.MAXBIT:
            raise ValueError(f"a Sobol sequence of {self.MAXBIT} bits has no more than 2**{self.MAXBIT} points")
        steps = numpy.arange(first, first + max(n, 0))
        lowest_zero = numpy.log2(~steps & (steps + 1)).astype(numpy.int64)
        changes = self.sobolstate.numpy().T[lowest_zero]
        quasi = self.quasi.numpy()
        points = numpy.bitwise_xor.accumulate(numpy.concatenate([quasi[None], changes]))[1:]
        if n > 0:
            quasi[:] = points[-1]
        return points

    def _scramble(self) -> None:
        """Shift the digits, and map them with a random lower triangular binary matrix for each dimension."""
        generator = None
        if self.seed is not None:
            generator = torch.Generator()
            generator.manual_seed(self.seed)
        bits, size = self.MAXBIT, self.dimension
        shifts = torch.randint(2, (size, bits), generator=generator)
        self.shift = (shifts * 2 ** torch.arange(bits)).sum(1)
        maps = torch.randint(2, (size, bits, bits), generator=generator).tril().numpy()
        maps[:, range(bits), range(bits)] = 1
        places = numpy.arange(bits - 1, -1, -1)  # the first digit of a fraction is the highest bit
        state = self.sobolstate.numpy()
        for dimension in range(size):
            digits = state[dimension, :, None] >> places & 1
            state[dimension] = ((digits @ maps[dimension].T & 1) << places).sum(-1)


def _direction_numbers(dimension: int) -> Any:
    try:
        qmc = import_late("scipy.stats.qmc")
    except ImportError as error:
        raise ImportError(f"SobolEngine takes its direction numbers from SciPy: {install('scipy')}") from error
    return qmc.Sobol(dimension, scramble=False, bits=SobolEngine.MAXBIT)._sv.astype(numpy.int64)
