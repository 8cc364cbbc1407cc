"""A list contains all functions that read elements of tensors as Python numbers.

A capture would store the numbers as constants.
"""

import ast
from pathlib import Path

import adjoint

PACKAGE = Path(adjoint.__file__).parent
INTERCHANGE = PACKAGE / "interchange.py"
"""The file with the functions that return elements to Python. A call of these functions ends a capture."""

CONVERSIONS = frozenset("int float bool complex".split())
READING = frozenset("item tolist any all min max sum prod mean argmin argmax".split())
METADATA = frozenset("shape dtype ndim size strides flags nbytes itemsize base ctypes layout".split())
"""The attributes of arrays that do not depend on elements."""

ASKING = frozenset("type isinstance id len lazy_bits_of".split())
"""The functions that read no elements of their arguments."""


def arrays_in(function):
    """Return the local variables to which a function assigns the array of a tensor."""
    found = set()
    for assigned in (node for node in ast.walk(function) if isinstance(node, ast.Assign)):
        targets, values = assigned.targets, [assigned.value]
        if isinstance(targets[0], ast.Tuple) and isinstance(assigned.value, ast.Tuple):
            targets, values = targets[0].elts, assigned.value.elts
        found |= {
            target.id
            for target, value in zip(targets, values, strict=False)
            if isinstance(target, ast.Name) and isinstance(value, ast.Attribute) and value.attr == "_array"
        }
    return found


def has_elements(node, arrays):
    """Return whether an expression depends on the elements of a tensor's array."""
    if isinstance(node, ast.Attribute):
        return node.attr == "_array" or (node.attr not in METADATA and has_elements(node.value, arrays))
    if isinstance(node, ast.Name):
        return node.id in arrays
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ASKING:
        return False
    return any(has_elements(each, arrays) for each in ast.iter_child_nodes(node))


def hidden_reads(source):
    """Return the lines that read elements of tensors' arrays."""
    lines = set()
    if "_array" not in source:
        return []
    tree = ast.parse(source)
    parts = [part for each in tree.body for part in (each.body if isinstance(each, ast.ClassDef) else [each])]
    for function in parts:
        arrays = arrays_in(function)
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            name = call.func
            if isinstance(name, ast.Name) and name.id in CONVERSIONS and call.args:
                read = call.args[0]
            elif isinstance(name, ast.Attribute) and name.attr in READING:
                read = name.value
            else:
                continue
            if has_elements(read, arrays):
                lines.add(call.lineno)
    return sorted(lines)


def test_elements_are_read_where_captures_see_it():
    files = sorted({*PACKAGE.rglob("*.py")} - {INTERCHANGE})
    assert not [f"{file}:{line}" for file in files for line in hidden_reads(file.read_text())]


def test_hidden_reads_are_found():
    lines = [
        "return int(x._array)",
        "return x._array.tolist()",
        "a = x._array; return float(a[0])",
        "a, b = x._array, y._array; return b.item(0)",
        "return bool((x._array < 0).any())",
        "return x._array.max() + 1",
        "return int(x._array.shape[0]), x._array.dtype, bool(type(x._array))",
        "a = x._array; return int(a.size)",
    ]
    source = "".join(f"def f(x, y): {line}\n" for line in lines)
    assert hidden_reads(source) == [1, 2, 3, 4, 5, 6]
