"""The basis of all kernels: threads, tiles, floating-point state, memory layouts, shapes, and special classes of arrays."""
