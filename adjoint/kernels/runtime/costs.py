"""The cost model: which form of a kernel computes an array, on how many threads, and in blocks of which size.

A call of compiled code has a price, and NumPy's work on one element has a weight, relative to the cheapest pass over memory.
Compiled code computes an array if the weights of its elements exceed the price. Prices, weights and sizes were measured.
They are the same on all machines, so that a program computes the same bits everywhere.
"""


def elements(weight: float) -> int:
    """Return the number of elements of this weight from which a call of compiled code pays off.

    The call, on several threads, takes as long as NumPy's addition of 2**15 elements.
    """
    return int((1 << 15) / weight)


JOINED = elements(1 / 4)
"""The threshold for whole rows that NumPy copies at the speed of memory: joined arrays and indexed rows."""

THREADED = elements(1)
"""The threshold for what NumPy computes equally fast: sums of two arrays, copies of rows, conversions."""

LARGE = elements(4)
"""The threshold for arithmetic that has no separate threshold."""

MOVED = elements(8)
"""The threshold for elementary functions, for moves of one element at a time, for slow sums, and for matrix products."""

SCANNED = elements(16)
"""The threshold for running sums and extreme values, and for the elimination of small matrices."""

PASSES = elements(32)
"""The threshold for what NumPy computes number by number or in many passes: 16-bit numbers, sorting, counting, optimizers."""

STEPS = elements(128)
"""The threshold for sequences of operations with elementary functions, for rows of a table, and for loops of Python.

After many calls, it also holds for conversions and exact functions of float16 numbers.
"""

PIECEWISE = elements(512)
"""The threshold for functions that NumPy computes piece by piece, interpolation, and numbers drawn until one is accepted."""

CALLS = 1000
"""The calls (see `elementary.PIECEWISE_OPERATIONS`) after which compiling a form for small arrays has paid off."""

KERNEL_CALLS = 20
"""The calls of a compiled kernel after which a built-in function for it has paid off."""

FIRST_CACHE, SECOND_CACHE = 1 << 15, 1 << 19
"""The numbers of bytes that stay in a core's first-level cache, and in its second-level cache."""

FLOPS_PER_BYTE = 16
"""The number of operations that take as long as one byte of memory, the unit of work."""

ON_ONE_THREAD = 1 << 18
"""The number of multiplications of two matrices that one thread performs faster than several."""

PARALLEL_BYTES = 1 << 18
"""The amount of work in bytes below which the calling thread runs compiled code alone, as measured on an EPYC."""

WHOLE_BYTES = 1 << 26
"""The amount of work in bytes that is not split into parts, between which Python raises pending interrupts."""

TILE_BYTES = 1 << 20
"""The approximate maximum size, in bytes, of the rows for one call of NumPy. Less work stays on the calling thread.

Waking a thread takes some ten microseconds. NumPy acquires the interpreter lock after every loop, and waiting for it takes
longer than a miss in the cache. On two cores of an EPYC, layer norm of 16 MB takes 1.7 ms, and 3.7 ms with a quarter of this
size.
"""

STREAMED_BYTES = 1 << 24
"""The size in bytes of results that are written without the cache.

On two processors of an EPYC, a copy of 16 MB takes 580 microseconds through the cache and 230 without it, and a copy of
4 MB takes 170 and 290.
"""

SHORT = 16
"""The length of rows that are computed side by side, in place of a loop along each row. Each fills at most a vector."""

NARROW = 64
"""The length from which a loop along a row takes full advantage of vectors."""

TILE = 1 << 15
"""The number of elements that NumPy computes together. They and their temporary arrays stay in the second-level cache."""

PART = 8 * TILE
"""The number of elements that NumPy converts or copies at a time, which limits temporary memory."""
