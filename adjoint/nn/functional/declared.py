"""The operators that functions of layers are, under PyTorch's names: gathered from where they are declared."""

from typing import Any

import adjoint as torch


class _Operators:
    """Each operator as an attribute, found when it is first asked for: that which is public, or else the one formulas use."""

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
