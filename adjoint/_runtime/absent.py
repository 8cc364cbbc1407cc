"""PyTorch's names without a meaning here. Programs may import and compare them, but their use raises an error."""

from __future__ import annotations

from typing import Any, NoReturn

from .tracebacks import ending_at_caller

TABLE = "The page on compatibility in the documentation lists what there is."


class _Absent(type):
    """The type of absent names. They are classes, so that `isinstance` and annotations accept them."""

    instead: str

    @ending_at_caller
    def __call__(cls, *args: Any, **names: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__} is not in adjoint: {cls.instead}. {TABLE}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{cls.__module__}.{cls.__qualname__}.{name}", cls.instead)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls

    def __repr__(cls) -> str:
        return f"<{cls.__module__}.{cls.__qualname__}: not in adjoint>"


def absent(name: str, instead: str) -> Any:
    """Return a stand-in for `name`, such as "torch.jit.save". Calling it raises NotImplementedError with advice."""
    module, _, own = name.rpartition(".")
    return _Absent(own, (), {"__module__": module, "instead": instead, "__doc__": f"Not in adjoint: {instead}."})


def is_absent(value: object) -> bool:
    """Return whether a value is such a stand-in."""
    return isinstance(value, _Absent)


def is_of_tools(name: str) -> bool:
    """Return whether Python or its tools look for a name in every module, such as `__path__` or `pytest_plugins`."""
    return name.startswith(("_", "pytest"))
