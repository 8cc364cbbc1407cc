"""What all kernels build on: threads, tiles, floating-point state, memory layouts, shapes, arrays that stand for others."""
