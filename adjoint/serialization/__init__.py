"""Checkpoints: `.pt` files in PyTorch's format, read and written without pickle's dangers.

`checkpoint` saves and loads; `archive` and `legacy` are the two file formats; `pickler` and `unpickler` turn objects
into PyTorch's pickles and back; `allowed` says what a file may name; `tensors`, `storages` and `rebuild` are what it
says of tensors; `plain` is what it says of everything else.
"""

from .allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .checkpoint import load, save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
