"""Checkpoints: `.pt` files in PyTorch's format, read and written without the dangers of pickle.

`checkpoint` saves and loads. `files` opens files, and `replacement` replaces whole files. `formats` recognizes formats.
`archive` and `legacy` are PyTorch's formats. `safetensors` and `npz` are formats of other libraries. `trusted`
unpickles files that the caller trusts. `pickler` and `unpickler` convert objects to PyTorch's pickles and back.
`allowed` lists the names that a file may contain. `options` contains settings for the whole program. `tensors`,
`storages` and `rebuild` read and write tensors, and `plain` all other objects. `records` reads and writes single records.
"""

from .._runtime.first_use import late_names
from .allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .checkpoint import load, save
from .locations import _package_registry as _package_registry
from .locations import default_restore_location, location_tag, register_package
from .options import skip_data
from .storages import MAP_LOCATION

DEFAULT_PROTOCOL = 2
"""The pickle protocol of PyTorch's files."""

__all__ = [
    "MAP_LOCATION", "LoadEndianness", "SourceChangeWarning", "add_safe_globals", "check_module_version_greater_or_equal",
    "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_load_endianness",
    "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "location_tag",
    "register_package", "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
    "set_default_mmap_options", "skip_data",
]  # fmt: skip

_OF_RECORDS = ("_is_zipfile", "_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer")

__getattr__ = late_names(
    __name__,
    {name: "options" for name in __all__ if name not in globals()}
    | dict.fromkeys(_OF_RECORDS, "records")
    | {"_serialization_tls": "options"},
)
