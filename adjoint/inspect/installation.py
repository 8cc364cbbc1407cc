"""The installation: versions, the BLAS library, threads, and optional packages."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy

import adjoint

from .._runtime.installed import version
from .._runtime.platform import ctypes
from ..kernels.runtime.parallel import get_num_threads

EXTRAS = {
    "llvmlite": "kernels compiled to machine code",
    "scipy": "special functions, parts of linalg",
    "matplotlib": "plots of gradients",
    "rich": "colours in terminals",
    "tqdm": "progress of gradcheck",
    "cairosvg": "pictures as PNG",
}


def installation() -> dict[str, str]:
    """Return the output of `adjoint info`, by name."""
    found = {
        "adjoint": version(),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "NumPy": numpy.__version__,
        "ml_dtypes": version_of("ml_dtypes") or "not installed",
        "BLAS": blas(),
        "BLAS core type": core_type() or "unknown",
        "threads": str(get_num_threads()),
        "compiled kernels": adjoint.backends.llvm.describe(),
    }
    pinned = [name for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ]
    if pinned:
        found["warning"] = (
            f"{' and '.join(pinned)} in the environment pin OpenBLAS, which may halve the speed of matrix products"
        )
    for name, use in EXTRAS.items():
        found[name] = version_of(name) or f"not installed ({use})"
    return found


def version_of(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def blas() -> str:
    """Return the name and version of NumPy's BLAS."""
    config: Any = numpy.show_config(mode="dicts")
    found = config.get("Build Dependencies", {}).get("blas", {})
    return " ".join(str(found[key]) for key in ("name", "version") if found.get(key)) or "unknown"


def core_type() -> str | None:
    """Return the processor type that OpenBLAS has selected. It determines the speed of matrix products."""
    for library in _loaded("openblas"):
        handle = ctypes.CDLL(library)
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", "_64", ""):
                function = getattr(handle, f"{prefix}_get_corename{suffix}", None)
                if function is not None:
                    function.restype = ctypes.c_char_p
                    name: bytes = function()
                    return name.decode()
    return None


def _loaded(name: str) -> list[str]:
    """Return the loaded shared libraries whose names contain `name`, if the system lists them."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return sorted({path for path in re.findall(r"(/\S+)$", maps, re.MULTILINE) if name in Path(path).name})
