"""The operators that `torch.nn.functional` offers, collected from their declarations."""

from typing import Any

import adjoint as torch


class _Operators:
    """Operators as attributes. The first access finds the public function or, if none exists, the operator itself."""

    def __getattr__(self, name: str) -> Any:
        public = torch.operators.PUBLIC
        if name in public["functional"].names():
            found = public["functional"][name]
        elif name in public["torch"].names():
            found = getattr(torch, name)
        else:
            found = getattr(torch.operators, name)
        setattr(self, name, found)
        return found


operators: Any = _Operators()
