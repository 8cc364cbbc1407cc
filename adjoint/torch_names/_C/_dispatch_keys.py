"""`torch._C.DispatchKey`: the keys of PyTorch's dispatcher, which programs use to register kernels of operators."""

from __future__ import annotations

import threading
from enum import IntEnum
from typing import Any

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
_BEFORE_BACKENDS = """
    Undefined Dense Quantized Sparse SparseCsr NestedTensor BackendSelect Python FuncTorchDynamicLayerBackMode Functionalize
    Named Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality AutogradNestedTensor Tracer
    AutocastCPU AutocastXPU AutocastIPU AutocastHPU AutocastXLA AutocastMPS AutocastMTIA AutocastMAIA AutocastCUDA
    AutocastPrivateUse1 FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode FuncTorchGradWrapper
    DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode
    PreDispatch PythonDispatcher
""".split()
_AFTER_BACKENDS = """
    Autograd CompositeImplicitAutograd FuncTorchBatchedDecomposition CompositeImplicitAutogradNestedTensor
    CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional
""".split()
_PER_BACKEND = (
    ("", "Dense"),
    ("Quantized", "Quantized"),
    ("Sparse", "Sparse"),
    ("SparseCsr", "SparseCsr"),
    ("NestedTensor", "NestedTensor"),
    ("Autograd", "AutogradFunctionality"),
)

_made: Any = IntEnum  # mypy does not know the members of an enumeration that a list makes
DispatchKey = _made(
    "DispatchKey",
    [
        *_BEFORE_BACKENDS,
        *(
            name
            for prefix, kind in _PER_BACKEND
            for name in (
                f"StartOf{kind}Backends",
                *(prefix + backend for backend in _BACKENDS),
                f"EndOf{kind}Backends",
            )
        ),
        *_AFTER_BACKENDS,
    ],
    start=0,
    module=__name__,
)
DispatchKey.__doc__ = (
    "A key of PyTorch's dispatcher. There is only the CPU: keys of other devices name no kernel that is called."
)
DispatchKey.__str__ = lambda self: f"DispatchKey.{self.name}"


class DispatchKeySet:
    """A set of keys of PyTorch's dispatcher, which does not exist here. Libraries create such sets during their import."""

    def __init__(self, *keys: Any) -> None:
        self.keys = tuple(dict.fromkeys(keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and set(self.keys) == set(other.keys)

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> Any:
        return DispatchKeySet(*self.keys, *other.keys)

    def __and__(self, other: Any) -> Any:
        return DispatchKeySet(*[key for key in self.keys if key in other.keys])

    def __sub__(self, other: Any) -> Any:
        return DispatchKeySet(*[key for key in self.keys if key not in other.keys])

    def add(self, key: Any) -> Any:
        """Return a set with one more key."""
        return DispatchKeySet(*self.keys, key)

    def remove(self, key: Any) -> Any:
        """Return a set without a key."""
        return DispatchKeySet(*[each for each in self.keys if each is not key])

    def has(self, key: Any) -> bool:
        """Return whether a key is in the set."""
        return key in self.keys


class _Excluded(threading.local):
    keys = DispatchKeySet()


_excluded = _Excluded()


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """Return the keys that this thread has excluded."""
    return _excluded.keys


class _ExcludeDispatchKeyGuard:
    """A context that notes excluded keys. It has no other effect, because there is no dispatcher."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        self._before, _excluded.keys = _excluded.keys, _excluded.keys | self._keys

    def __exit__(self, *exception: object) -> None:
        _excluded.keys = self._before
