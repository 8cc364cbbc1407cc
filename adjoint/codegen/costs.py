"""From how many elements on compiled code computes: what an element costs NumPy, against the price of a call.

A form begins at `CALL` elements divided by its weight, which is what NumPy spends on one element compared with the cheapest
pass over memory. The price and the weights were measured; they are the same on all machines.
"""

CALL = 1 << 15
"""What a call of compiled code on several threads costs, in elements that NumPy adds in the same time."""

THREADED = CALL
"""For what NumPy does as fast on one thread: sums of two arrays, copies of whole rows, conversions, streams of random bits."""

SUMMED = CALL // 2
"""For sums of all kinds, which NumPy computes with several additions at once."""

LARGE = CALL // 4
"""For arithmetic without a threshold of its own."""

MOVED = CALL // 8
"""For what NumPy moves one element at a time: copies in another order, padding, indexing; for its slow sums and matrices."""

ELEMENTARY = CALL // 8
"""For elementary functions."""

SCANNED = CALL // 16
"""For running sums and extremes, and for the elimination of small matrices."""

CONVERTED = CALL // 32
"""For numbers of 16 bits, each of which NumPy converts separately."""

SORTED = CALL // 32
"""For what NumPy compares, draws or updates in many passes: sorting, searching, counting, normal numbers, optimizers."""

PIECEWISE = CALL // 512
"""For functions that NumPy computes piece by piece, and for interpolation in images."""

STEPS = CALL // 128
"""For several operations including elementary functions, because NumPy makes a call for each; and for rows of a table."""

REJECTED = CALL // 512
"""For random numbers that are drawn until one is accepted."""

JOINED = CALL * 4
"""For whole rows that NumPy copies at the speed of memory: joined arrays, rows of an index."""

COMPARED = CALL * 32
"""For the largest of all elements, which NumPy finds with vectors."""

CALLS = 1000
"""So many calls repay the compilation of a form that small arrays can do without."""
