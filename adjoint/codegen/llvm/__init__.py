"""Kernels as machine code: a small typed subset of Python, lowered to LLVM through llvmlite (the extra `fast`)."""
