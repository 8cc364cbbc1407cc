"""`Stateful`: the protocol for objects with a state, which `save` and `load` accept."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with a state that can be saved and loaded, such as a module or an optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state."""
