"""`copy.deepcopy` of tensors. The module is imported at the first copy."""

from __future__ import annotations

import copy
from typing import Any

from .._runtime.tracebacks import ending_at_caller
from ..kernels.memory import storage as storages
from ..tensor import LEAF, Tensor, make_subclass
from .inference_tensors import mark_if_inference


@ending_at_caller
def deep_copy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Implement `copy.deepcopy` for a leaf: copy its memory, its gradient and its attributes."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    cloned = self.clone() if self.is_meta and type(self).clone is not Tensor.clone else None  # of a wrapper
    if cloned is not None and type(cloned) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that implement "
            "clone() and for which cloning returns another instance of the same subclass. You should either properly implement "
            "clone() for your subclass or override __deepcopy__() if it is intended behavior for clone() to return an instance "
            "of a different type."
        )
    if cloned is None and type(self) is not Tensor and type(self.new_empty([])) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that "
            "implement new_empty() and for which that function returns another instance of the same subclass. You should "
            "either properly implement new_empty() for your subclass or override __deepcopy__() if it is intended behavior "
            "for new_empty() to return an instance of a different type."
        )
    result = cloned
    if result is None:
        result = make_subclass(type(self), storages.copy_with_memo(self._array, memo))
    memo[id(self)] = result
    result._edge = LEAF if self.requires_grad else None
    mark_if_inference(result)
    if self._grad is not None:
        result._grad = copy.deepcopy(self._grad, memo)
    result.__dict__ = copy.deepcopy(self.__dict__, memo)
    return result


deep_copy.__name__, deep_copy.__qualname__ = "__deepcopy__", "Tensor.__deepcopy__"
Tensor.__deepcopy__ = deep_copy
