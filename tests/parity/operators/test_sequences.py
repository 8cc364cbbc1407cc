"""Tensors from sequences of every kind, and indexing by them: arrays of subclasses, buffers, deques, columns of data frames."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same

SETUP = """
import array, collections, decimal, numpy as np

class Items:
    "A sequence that has a length and items, and nothing else."
    def __init__(self, items): self.items = items
    def __len__(self): return len(self.items)
    def __getitem__(self, place): return self.items[place]

class Column:
    "What a column of pandas is: its items have its dtype, its iterator gives Python numbers."
    def __init__(self, values): self.values = np.asarray(values)
    def __len__(self): return len(self.values)
    def __getitem__(self, place): return self.values[place]
    def __iter__(self): return iter(self.values.tolist())
    def __array__(self, dtype=None, copy=None): return self.values

class Exported:
    "An object whose memory is exported by DLPack."
    def __init__(self): self.values = np.array([1, 2], dtype=np.int16)
    def __dlpack__(self, **options): return self.values.__dlpack__(**options)
    def __dlpack_device__(self): return self.values.__dlpack_device__()

class Subclass(np.ndarray):
    pass

def shown(made):
    return made.dtype, made.shape, made.tolist(), type(made.numpy()).__name__, repr(made)
"""

VALUES = {
    "matrix": "np.matrix([[1.0, 2.0], [0.0, 1.0]])",
    "masked": "np.ma.array([1.0, 2.0], mask=[0, 1])",
    "subclass": "np.arange(3.0).view(Subclass)",
    "integers of a subclass": "np.arange(3).view(Subclass)",
    "deque": "collections.deque([1, 2])",
    "deque of floats": "collections.deque([1.5, 2])",
    "deque of bools": "collections.deque([True, False])",
    "deque of lists": "collections.deque([[1, 2], [0, 1]])",
    "list of deques": "[collections.deque([1])]",
    "array": "array.array('i', [1, 2])",
    "array of floats": "array.array('f', [1, 2])",
    "list of arrays": "[array.array('i', [1, 2])]",
    "range": "range(3)",
    "list of ranges": "[range(2)]",
    "memoryview": "memoryview(bytes([1, 2]))",
    "memoryview of floats": "memoryview(array.array('d', [1, 2]))",
    "bytearray": "bytearray([1, 2])",
    "bytes": "bytes([1, 2])",
    "items": "Items([1, 2])",
    "items of floats": "Items([1.5, 2])",
    "items of items": "Items([Items([1, 2]), [0, 1]])",
    "list of items": "[Items([1])]",
    "column of float64": "Column([0.5, 1.5])",
    "column of float16": "Column(np.array([1, 2], np.float16))",
    "column of int8": "Column(np.array([1, 2], np.int8))",
    "list of columns": "[Column([0.5, 1.5])]",
    "user list": "collections.UserList([1, 2])",
    "exported": "Exported()",
    "set": "{1, 2}",
    "dictionary": "{0: 1}",
    "decimal": "decimal.Decimal('1.5')",
    "list of decimals": "[decimal.Decimal('1.5')]",
    "list of tensors": "[torch.tensor(1.0), torch.tensor(2.0)]",
    "nested tensors": "[[torch.tensor(1)], [torch.tensor(2)]]",
    "tensors of two dtypes": "[torch.tensor(1), torch.tensor(2.5)]",
    "tensors and numbers": "[torch.tensor(1), 2.5, True]",
    "bfloat16": "[torch.tensor(1.5, dtype=torch.bfloat16), torch.tensor(2.5, dtype=torch.bfloat16)]",
    "conjugated": "[torch.tensor(1 + 2j).conj()]",
    "tensors of several elements": "[torch.tensor([1, 2]), torch.tensor([3, 4])]",
    "list of matrices": "[np.matrix([[1, 2]])]",
    "numbers of NumPy": "[np.float32(1), np.float32(2)]",
    "different numbers of NumPy": "[np.float32(1), np.int8(2)]",
    "nested tuples": "((1, 2), [3, 4])",
    "ragged": "[[1, 2], [3]]",
    "four levels": "[[[[1.5] * 2] * 3] * 1] * 2",
    "nothing in lists": "[[], []]",
}

USES = {
    "tensor": "shown(torch.tensor(v))",
    "tensor of a dtype": "shown(torch.tensor(v, dtype=torch.float32))",
    "tensor of integers": "shown(torch.tensor(v, dtype=torch.int64))",
    "as_tensor": "shown(torch.as_tensor(v))",
    "asarray": "shown(torch.asarray(v))",
    "new_tensor": "shown(torch.ones(1).new_tensor(v))",
    "index": "torch.arange(9)[v]",
    "second index": "torch.arange(9).view(3, 3)[:, v]",
    "assignment": "t = torch.arange(9)\nt[v] = 7\nt",
}

# Only adjoint accepts these elements of lists: bfloat16 tensors and NumPy numbers, and floats as integers, which are truncated as
# in Python. The library ignores the masks of masked arrays. Two warnings contain the name of the library or of a type.
DIFFERENT = {
    "masked": {"index", "assignment"},
    "memoryview": {"asarray"},
    "bytes": {"asarray"},
    "bytearray": {"asarray"},
    "decimal": {"index", "second index", "assignment"},
    "list of tensors": {"second index"},
    "tensors of two dtypes": {"second index"},
    "tensors and numbers": {"index", "assignment"},
    "bfloat16": {"tensor", "tensor of integers", "as_tensor", "asarray", "second index"},
    "conjugated": {"tensor of a dtype", "tensor of integers", "new_tensor", "second index"},
    "numbers of NumPy": {"tensor of integers", "index", "second index", "assignment"},
    "different numbers of NumPy": {"tensor of integers", "index", "second index", "assignment"},
    "column of float16": {"index", "second index", "assignment"},
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", VALUES)
def test_sequences(value, use):
    if use not in DIFFERENT.get(value, ()):
        assert_same(f"{SETUP}\nv = {VALUES[value]}\n{USES[use]}")


def test_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    from tests.parity.candidate import candidate

    for dtype in ("float64", "float32", "int8", "int64", "bool"):
        column = pandas.Series([0, 1], dtype=dtype)
        assert str(candidate.tensor(column).dtype).endswith(str(torch.tensor(column).dtype)[5:])
        assert candidate.tensor(column).tolist() == torch.tensor(column).tolist()
    assert candidate.arange(9)[pandas.Series([1, 2])].tolist() == [1, 2]
    assert candidate.arange(9)[pandas.Index([1, 2])].tolist() == [1, 2]
