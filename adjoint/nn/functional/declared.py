"""The operators that are functions of layers, under PyTorch's names, collected from their declarations."""

from typing import Any

import adjoint as torch


class _Operators:
    """The operators as attributes, looked up on first use: the public function, or the function for formulas."""

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
