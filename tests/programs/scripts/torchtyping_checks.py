"""Annotated tensors of torchtyping."""
# kind: looking in
# requires: torchtyping

import torch
from torchtyping import TensorType

square = TensorType["n", "n", float]
print(isinstance(torch.ones(2, 2), TensorType[2, 2]), isinstance(torch.ones(2, 3), TensorType[2, 2]))
print(isinstance(torch.ones(2), TensorType[float]), isinstance(torch.ones(2), TensorType[int]), square.__name__)
