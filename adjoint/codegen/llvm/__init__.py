"""Kernels as machine code: a small typed subset of Python is compiled to LLVM by llvmlite (the extra `fast`)."""
