"""`torch.version`: the version of this package. The package uses none of PyTorch's libraries."""

from adjoint._runtime.installed import version as _version

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = _version()
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str | None = None
debug = False
