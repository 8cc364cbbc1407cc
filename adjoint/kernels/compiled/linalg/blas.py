"""The BLAS library that NumPy has loaded, for kernels. Each call runs on the calling thread.

OpenBLAS has its own threads. For some hundredths of a second after each product, they look for more work and therefore
take processors from the threads that run compiled kernels. While kernels call it, these threads are disabled.
"""

from __future__ import annotations

import os
from functools import cache

from numpy.linalg import _umath_linalg

from ...._runtime.first_use import computed_once
from ...._runtime.platform import ctypes
from ....codegen.llvm.atomics import atomic_exchange, atomic_store
from ....codegen.llvm.element_types import PointerType
from ....codegen.llvm.external import external
from ....codegen.llvm.kernels import *
from ....codegen.llvm.workers import wait

LOCK, CALLS, THREADS, WORDS = range(4)
"""The state: 1 while it changes, the number of running calls, and the number of OpenBLAS threads before the first call."""

_SPELLINGS = (("scipy_", "64_", i64), ("", "64_", i64), ("scipy_", "", i32), ("", "", i32))
"""The prefix and the suffix of OpenBLAS's names in builds of NumPy, and the type of its sizes."""


class Blas:
    """The functions of NumPy's OpenBLAS, which are looked up when they are first needed."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * WORDS)()
        self.state = ctypes.addressof(self._words)
        """The address of the state of `enter_alone` and `leave_alone`."""

    @computed_once
    def _found(self) -> tuple[Any, str, str, Any]:
        """Return OpenBLAS, the prefix and suffix of names in it, and the type of sizes, or raise CompilationError."""
        try:
            library = ctypes.CDLL(_umath_linalg.__file__)
        except (AttributeError, OSError, TypeError) as error:
            raise CompilationError("NumPy does not show its BLAS") from error
        for prefix, suffix, size in _SPELLINGS:
            if hasattr(library, f"{prefix}openblas_set_num_threads{suffix}"):
                return library, prefix, suffix, size
        raise CompilationError("NumPy's BLAS is not OpenBLAS")

    def require(self) -> None:
        """Raise CompilationError unless NumPy uses OpenBLAS. Other libraries may be faster than any kernel."""
        self._found  # noqa: B018

    @property
    def size_type(self) -> Any:
        """Return the type of sizes and distances."""
        return self._found[3]

    def function(self, name: str) -> Any:
        """Return a function of the library, such as `cblas_sgemm`, for ctypes."""
        library, prefix, suffix, _ = self._found
        return getattr(library, f"{prefix}{name}{suffix}")

    def address(self, name: str) -> int:
        """Return the address of a function of the library."""
        found = ctypes.cast(self.function(name), ctypes.c_void_p).value
        assert found is not None
        return found

    def renew(self) -> None:
        """Restore the threads of OpenBLAS in a forked child process. The code that disabled them does not run in the child."""
        if self._words[CALLS]:
            self.function("openblas_set_num_threads")(self._words[THREADS])
        self._words[:] = [0] * WORDS


BLAS = Blas()
"""The BLAS of this process."""

_set_num_threads = external("adjoint_blas_set_threads", lambda: BLAS.address("openblas_set_num_threads"), None, i32)
_get_num_threads = external("adjoint_blas_get_threads", lambda: BLAS.address("openblas_get_num_threads"), i32)


@loops(noalias=False, plain=True)
def lock(state: Pointer[i64]) -> None:
    """Wait until no other thread holds the lock, and acquire it."""
    looks = 0
    while atomic_exchange(state + LOCK, 1) != 0:
        wait(looks)
        looks += 1


@loops(noalias=False, plain=True)
def enter_alone(state: Pointer[i64]) -> None:
    """Restrict OpenBLAS to the calling threads."""
    lock(state)
    if state[CALLS] == 0:
        state[THREADS] = i64(_get_num_threads())
        _set_num_threads(i32(1))
    state[CALLS] += 1
    atomic_store(state + LOCK, 0)


@loops(noalias=False, plain=True)
def leave_alone(state: Pointer[i64]) -> None:
    """Restore the threads of OpenBLAS when the last caller leaves."""
    lock(state)
    state[CALLS] -= 1
    if state[CALLS] == 0:
        _set_num_threads(i32(state[THREADS]))
    atomic_store(state + LOCK, 0)


def alone(function: Callable[[], Any]) -> Any:
    """Call a function while OpenBLAS computes only on the calling threads."""
    enter, leave = enter_alone.compiled(), leave_alone.compiled()
    enter(BLAS.state)
    try:
        return function()
    finally:
        leave(BLAS.state)


@cache
def gemm(type_: Any) -> Any:
    """Return `cblas_sgemm` or `cblas_dgemm` for kernels."""
    name, size, place = f"cblas_{'s' if type_ is f32 else 'd'}gemm", BLAS.size_type, PointerType(type_)
    sizes, matrix = (size, size, size), (place, size)
    types = (i32, i32, i32, *sizes, type_, *matrix, *matrix, type_, *matrix)
    return external(f"adjoint_{name}", lambda: BLAS.address(name), None, *types)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BLAS.renew)
