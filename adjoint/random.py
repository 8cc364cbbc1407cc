"""The random generators, and the seed and state of the default generator."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any, SupportsInt

import numpy

from ._runtime.tracebacks import ending_at_caller
from ._runtime.uninterrupted import uninterrupted
from .device import cpu
from .device import device as device_class
from .kernels.create.mt19937 import Stream
from .tensor import Tensor, wrap

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


class Generator:
    """A source of random numbers. With the same seed it gives the same numbers as PyTorch's generator for the CPU.

    Any number of threads may draw from one generator. Each sample consists of consecutive numbers.

    Args:
        device: the device of the numbers, which must be the CPU.

    Raises:
        RuntimeError: if another device is given.

    >>> import adjoint as torch
    >>> torch.rand(2, generator=torch.Generator().manual_seed(0))
    tensor([0.4963, 0.7682])
    """

    __slots__ = ("__weakref__", "_stream")

    @ending_at_caller
    def __init__(self, device: "device_class | str | int | None" = cpu) -> None:
        if device is not None and device is not cpu:
            _check_device(device)
        self._stream = Stream()

    @property
    def device(self) -> device_class:
        """The device of the generator."""
        return cpu

    @ending_at_caller
    def manual_seed(self, seed: int, /) -> "Generator":
        """Restart from `seed`, an int in [-2**63, 2**64), and return the generator. For a negative seed, 2**64 is added.

        Raises:
            RuntimeError: if `seed` is not an int.
            ValueError: if it is out of range.
        """
        kind: type = type(seed)
        if issubclass(kind, numpy.integer):
            raise TypeError("an integer is required")
        if not issubclass(kind, int) or kind is bool:
            raise RuntimeError(f"manual_seed expected a long, but got {kind.__name__}")
        self._stream.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Restart from an unpredictable seed, and return the seed."""
        return self._stream.seed()

    def initial_seed(self) -> int:
        """The latest seed, a number in [0, 2**64)."""
        return self._stream.initial_seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes. PyTorch's generators accept it too."""
        return wrap(self._stream.get_state())

    @ending_at_caller
    def set_state(self, new_state: Tensor, /) -> "Generator":
        """Continue from a state that `get_state` returned, here or in PyTorch. Return the generator.

        Raises:
            TypeError: if `new_state` is not a tensor of dtype `uint8`.
            RuntimeError: if it is not the state of a generator for the CPU.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        self._stream.set_state(new_state._array)
        return self

    def clone_state(self) -> "Generator":
        """Return a new generator in the same state."""
        generator = object.__new__(Generator)
        generator._stream = self._stream.clone()
        return generator

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: tuple[int, None, Tensor]) -> None:
        self.set_state(state[2])

    def __copy__(self) -> "Generator":
        return self.clone_state()

    def __deepcopy__(self, memo: object) -> "Generator":
        return self.clone_state()


def _check_device(device: object) -> None:
    if not isinstance(device, (device_class, str, int)):
        raise TypeError(f"Generator(): argument 'device' must be torch.device, not {type(device).__name__}")
    kind = device_class(device).type
    if kind == "cuda":
        raise RuntimeError("Cannot get CUDA generator without ATen_cuda library.")
    if kind != "cpu":
        raise RuntimeError(f"{kind.upper()} device type not an accelerator.")


default_generator = Generator()
"""The generator for calls without a generator."""


@ending_at_caller
def manual_seed(seed: SupportsInt) -> Generator:
    """Restart the default generator from `seed`, which may be anything that `int` accepts. Return the generator.

    Raises:
        ValueError: if `seed` is outside [-2**63, 2**64).

    >>> import adjoint as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Restart the default generator from an unpredictable seed, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the latest seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator, a tensor of 5056 bytes."""
    return default_generator.get_state()


@ending_at_caller
def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator to a state that `get_rng_state` returned; see `Generator.set_state`."""
    default_generator.set_state(new_state)


class _Forked(ContextDecorator):
    """A context manager and decorator that restores the state of a stream. With None it has no effect."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def _recreate_cm(self) -> "_Forked":
        return _Forked(self.stream)

    def __enter__(self) -> None:
        if self.stream is not None:
            self.state = self.stream.get_state()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            try:
                self.stream.set_state(self.state)
            except BaseException:
                self.stream.set_state(self.state)  # an interrupt waits until that is done
                raise


def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, *, device_type: str | None = None
) -> AbstractContextManager[None]:
    """A context manager that restores the state of the default generator at the end of the block.

    Args:
        devices: accelerators whose generators are restored. It must be empty, because no accelerator is available.
        enabled: whether the context has any effect.
        device_type: the type of `devices`. `'meta'` has no generator, so nothing is restored.

    Raises:
        AssertionError: if `devices` is not empty.
        RuntimeError: if `device_type` is not the name of a device type.
    """
    kind = "cuda" if device_type is None else device_class(device_type).type
    if not enabled or kind == "meta":
        return _Forked(None)
    if kind != "cpu" and devices is not None and list(devices):
        raise AssertionError(f"Torch not compiled with {kind.upper()} enabled")
    return _Forked(default_generator._stream)
