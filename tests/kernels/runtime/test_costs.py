"""The cost model has the only sizes from which kernels take another way."""

import ast
from pathlib import Path

import adjoint
from adjoint.kernels.runtime import costs

PACKAGE = Path(adjoint.__file__).parent
OF_SCHEDULES = {"_BLOCK", "_PANEL", "BLOCK", "SPACE"}
"""The sizes of blocks that loops compute, and of their memory. `BLOCK` of normal numbers is PyTorch's."""


def _is_size(node):
    return any(isinstance(each, ast.Attribute) and each.attr in ("size", "nbytes", "shape") for each in ast.walk(node))


def _thresholds(tree):
    """Return the comparisons of sizes with numbers, or with constants that are not of the cost model."""
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and "costs" in str(each.module)]
    known = OF_SCHEDULES.union(*[{alias.name for alias in each.names} for each in imports])
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Compare)
            and _is_size(node)
            and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        ):
            limits = [
                each for each in ast.walk(node) if isinstance(each, ast.BinOp) and isinstance(each.op, ast.LShift)
            ]
            of_types = [each for limit in limits for each in ast.walk(limit)]  # such as 1 << 31
            for each in ast.walk(node):
                number = isinstance(each, ast.Constant) and type(each.value) is int and each.value > 8
                name = isinstance(each, ast.Name) and each.id.isupper() and len(each.id) > 2 and each.id not in known
                if name or (number and each not in of_types):
                    yield ast.unparse(node)


def test_sizes_are_compared_with_the_cost_model_alone():
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for folder in ("kernels", "codegen")
        for path in (PACKAGE / folder).rglob("*.py")
        for text in _thresholds(ast.parse(path.read_text()))
    }
    assert not found, found


def test_the_cost_model_has_at_most_thirty_numbers():
    numbers = [name for name, value in vars(costs).items() if isinstance(value, int)]
    assert len(numbers) <= 30, numbers


def test_more_work_on_an_element_lowers_the_threshold():
    assert costs.elements(1) == costs.THREADED == 4 * costs.LARGE
    assert costs.PIECEWISE < costs.STEPS < costs.PASSES < costs.SCANNED < costs.MOVED < costs.LARGE < costs.JOINED
