"""Collects information about the machine, the system and the libraries for bug reports: `python -m adjoint.utils.collect_env`."""

from __future__ import annotations

import locale
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import distributions
from typing import Any, NamedTuple

import adjoint as torch

from .._runtime.platform import subprocess

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str", "run"]

DEFAULT_PIP_PATTERNS = ("adjoint", "llvmlite", "mpi4py", "mypy", "numpy", "onnx", "scipy", "torch")
"""The prefixes of the names of packages that are related to this package."""

Run = Callable[[Any], tuple[int, str, str]]


class SystemEnv(NamedTuple):
    """The result of `get_env_info`. None marks missing information."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str | None
    hip_runtime_version: str | None
    miopen_runtime_version: str | None
    caching_allocator_config: str | None
    is_xnnpack_available: str
    cpu_info: str


def run(command: str | Sequence[str]) -> tuple[int, str, str]:
    """Run a command, and return its exit status and its two outputs. Return 127 if the command does not exist."""
    try:
        ended = subprocess.run(command, shell=isinstance(command, str), capture_output=True, check=False)
    except FileNotFoundError:
        return 127, "", "Command not found"
    output, errors = (
        each.decode(locale.getpreferredencoding(), "replace").strip() for each in (ended.stdout, ended.stderr)
    )
    return ended.returncode, output, errors


def run_and_read_all(run_lambda: Run, command: str | Sequence[str]) -> str | None:
    """Return the output of a command, or None if it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: str | Sequence[str], regex: str) -> str | None:
    """Return the first group of a pattern in the output of a command."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return found and found.group(1)


def run_and_return_first_line(run_lambda: Run, command: str | Sequence[str]) -> str | None:
    """Return the first line of a command's output, or None if it fails."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.partition("\n")[0]


def get_gcc_version(run_lambda: Run) -> str | None:
    """Return the version of `gcc`."""
    return run_and_parse_first_match(run_lambda, ["gcc", "--version"], r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """Return the version of `clang`."""
    return run_and_parse_first_match(run_lambda, ["clang", "--version"], r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """Return the version of `cmake`."""
    return run_and_parse_first_match(run_lambda, ["cmake", "--version"], r"cmake (.*)")


def get_platform() -> str:
    """Return the name of the system, as `sys.platform` without a version."""
    return re.split(r"\d", sys.platform, maxsplit=1)[0] if not sys.platform.startswith("win") else "win32"


def get_os(run_lambda: Run) -> str:
    """Return the name of the system, its version, and the machine's architecture."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def get_libc_version() -> str:
    """Return the C library and its version, on Linux."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_python_platform() -> str:
    """Return Python's name of the platform."""
    return platform.platform()


def get_cpu_info(run_lambda: Run) -> str:
    """Return the output of `lscpu`, or Python's information."""
    return run_and_read_all(run_lambda, ["lscpu"]) or f"{platform.processor()}, {os.cpu_count()} threads"


def get_pip_packages(run_lambda: Run, patterns: Sequence[str] | None = None) -> tuple[str, str]:
    """Return the command `pip3`, and the installed packages whose names match one of the patterns."""
    found = {f"{each.name}=={each.version}" for each in distributions() if each.name}
    chosen = sorted(each for each in found if any(part in each.lower() for part in patterns or DEFAULT_PIP_PATTERNS))
    return "pip3" if sys.version_info.major == 3 else "pip", "\n".join(chosen)


def is_xnnpack_available() -> str:
    """Return False, because XNNPACK is not available."""
    return str(torch.backends.xnnpack.enabled)


def get_env_info() -> SystemEnv:
    """Collect all information."""
    version, packages = get_pip_packages(run)
    absent = dict.fromkeys(SystemEnv._fields)
    return SystemEnv(
        **{
            **absent,
            "torch_version": f"{torch.__version__} (adjoint)",
            "is_debug_build": "False",
            "gcc_version": get_gcc_version(run),
            "clang_version": get_clang_version(run),
            "cmake_version": get_cmake_version(run),
            "os": get_os(run),
            "libc_version": get_libc_version(),
            "python_version": f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
            "python_platform": get_python_platform(),
            "is_cuda_available": str(torch.cuda.is_available()),
            "is_xpu_available": str(torch.xpu.is_available()),
            "pip_version": version,
            "pip_packages": packages,
            "is_xnnpack_available": is_xnnpack_available(),
            "cpu_info": get_cpu_info(run),
        }  # type: ignore[arg-type]
    )


env_info_fmt = """
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}
""".strip()


def pretty_str(envinfo: SystemEnv) -> str:
    """Format the information as labelled lines."""
    shown = {name: "N/A" if value is None else value for name, value in envinfo._asdict().items()}
    lines = [f"[{envinfo.pip_version}] {each}" for each in envinfo.pip_packages.splitlines()]
    shown["pip_packages"] = "\n".join(lines) or "No relevant packages"
    shown["conda_packages"] = f"[conda] {envinfo.conda_packages or 'Could not collect'}"
    return env_info_fmt.format(**shown)


def get_pretty_env_info() -> str:
    """Return the information as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the information."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
