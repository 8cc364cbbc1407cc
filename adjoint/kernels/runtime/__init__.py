"""What all kernels run on: threads and tiles, floating-point state, order in memory, shapes, arrays that stand for others."""
