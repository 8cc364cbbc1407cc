"""The cost model: the numbers of elements above which compiled code computes, and the sizes that kernels share.

The minimum number of elements for a form is `CALL` divided by the form's weight, which is the time that NumPy takes for
one element, relative to the cheapest pass over memory. Both were measured. They are the same on all machines.
"""

CALL = 1 << 15
"""The cost of a call of compiled code on several threads, as the number of elements that NumPy adds in the same time."""

THREADED = CALL
"""The threshold for what NumPy computes equally fast: sums of two arrays, copies of rows, conversions."""

SUMMED = CALL // 2
"""The threshold for sums of all kinds, in which NumPy computes several additions at once."""

LARGE = CALL // 4
"""The threshold for arithmetic that has no separate threshold."""

MOVED = CALL // 8
"""The threshold for operations that move one element at a time, and for slow sums and matrix products."""

ELEMENTARY = CALL // 8
"""The threshold for elementary functions."""

SCANNED = CALL // 16
"""The threshold for running sums and extreme values, and for the elimination of small matrices."""

CONVERTED = CALL // 32
"""The threshold for 16-bit numbers, each of which NumPy converts separately."""

HALVED = CALL // 128
"""The threshold for conversions and exact functions of float16 numbers in compiled loops that are there after many calls."""

SORTED = CALL // 32
"""The threshold for what NumPy computes in many passes: sorting, searching, counting, optimizers."""

PIECEWISE = CALL // 512
"""The threshold for functions that NumPy computes piece by piece, and for interpolation of images."""

STEPS = CALL // 128
"""The threshold for sequences of operations with elementary functions, and for rows of a table."""

REJECTED = CALL // 512
"""The threshold for random numbers that are drawn until one number is accepted."""

JOINED = CALL * 4
"""The threshold for whole rows that NumPy copies at the speed of memory: joined arrays and indexed rows."""

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

TILE = CALL
"""The number of elements that NumPy computes together. They and their temporary arrays stay in the second-level cache."""

PART = 8 * CALL
"""The number of elements that NumPy converts or copies at a time, which limits temporary memory."""
