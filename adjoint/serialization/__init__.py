"""Checkpoints: `.pt` files in PyTorch's format, read and written without the dangers of pickle.

`checkpoint` saves and loads. `files` opens files, and `replacement` replaces them as wholes. `formats` tells formats
apart: `archive` and `legacy` are PyTorch's two, `safetensors` and `npz` others'. `trusted` unpickles what the caller trusts.
`pickler` and `unpickler` convert objects to PyTorch's pickles and back. `allowed` lists the names
that a file may contain. `tensors`, `storages` and `rebuild` read and write tensors, `plain` all other objects.
"""

from .allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .checkpoint import load, save
from .storages import MAP_LOCATION

__all__ = ["MAP_LOCATION", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
