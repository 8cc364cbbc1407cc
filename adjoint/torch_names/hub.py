"""`torch.hub`: models from a folder on this machine, and files with weights. Nothing is downloaded.

A repository is a folder with `hubconf.py`, whose functions create models.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import adjoint as torch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
DEFAULT_CACHE_DIR = "~/.cache"

_chosen: str | None = None


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", DEFAULT_CACHE_DIR)
    return str(Path(os.environ.get("TORCH_HOME", f"{cache}/torch")).expanduser())


def get_dir() -> str:
    """Return the folder for files: the folder of `set_dir`, or `$TORCH_HOME/hub`, or `~/.cache/torch/hub`."""
    return _chosen or str(Path(_get_torch_home()) / "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder for files."""
    global _chosen
    _chosen = str(Path(d).expanduser())


def _hubconf(repo_or_dir: str, source: str) -> ModuleType:
    """Run `hubconf.py` of a repository on this machine."""
    if source != "local":
        raise NotImplementedError(
            f"adjoint downloads no programs. Download {repo_or_dir!r} yourself, and give its folder with source='local'."
        )
    folder = Path(repo_or_dir).expanduser()
    spec = importlib.util.spec_from_file_location("hubconf", folder / "hubconf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    needed = getattr(module, "dependencies", [])
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def list(github: str, *args: Any, source: str = "local", **options: Any) -> list[str]:  # type: ignore[valid-type]
    """Return the names of the models in the repository of a folder."""
    names = vars(_hubconf(github, source))
    return [name for name, value in names.items() if callable(value) and not name.startswith("_")]


def help(github: str, model: str, *args: Any, source: str = "local", **options: Any) -> str | None:
    """Return the documentation of a model in the repository of a folder."""
    doc: str | None = _entry(_hubconf(github, source), model).__doc__
    return doc


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **names: Any,
) -> Any:
    """Call the function `model` of `hubconf.py` in a folder with the other arguments.

    Raises:
        NotImplementedError: if `source` is not "local", because nothing is downloaded.
    """
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **names)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Copy the file of a `file:` URL to `dst`, if its SHA-256 digest begins with `hash_prefix`.

    Raises:
        NotImplementedError: if the URL is of another kind, because nothing is downloaded.
        RuntimeError: if the digest differs.
    """
    parts = urlparse(url)
    if parts.scheme != "file":
        raise NotImplementedError(f"adjoint downloads nothing. Download {url} yourself, to {dst}")
    source = Path(url2pathname(parts.path))
    if hash_prefix is not None:
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if not digest.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
    shutil.copyfile(source, dst)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load a file with weights by its URL, from the folder `model_dir` (`get_dir()/checkpoints`) or from a file on this machine.

    Raises:
        NotImplementedError: if the file is not in the folder and the URL is not a `file:` URL, because nothing is
            downloaded.
    """
    folder = Path(model_dir) if model_dir is not None else Path(get_dir()) / "checkpoints"
    there = folder / (file_name or Path(urlparse(url).path).name)
    if not there.exists():
        found = HASH_REGEX.search(there.name) if check_hash else None
        if urlparse(url).scheme == "file":
            folder.mkdir(parents=True, exist_ok=True)
        download_url_to_file(url, str(there), found[1] if found else None, progress)
    return torch.load(str(there), map_location=map_location, weights_only=weights_only)


def __getattr__(name: str) -> Any:
    """Return the progress bar of the package `tqdm`, which libraries import from here."""
    if name == "tqdm":
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise AttributeError("torch.hub.tqdm needs the package tqdm: pip install tqdm") from None
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
