"""A program in which classes that do not derive from `Tensor` override calls.

`python tests/torch_names/overrides_of_other_classes.py adjoint` (or `torch`) prints the failures. Each case runs in a new
process, in which no class has overridden calls before. The class is defined before the first call of the function, after a call
with tensors, or between two calls.
"""

import importlib
import os
import sys

torch = importlib.import_module(sys.argv[1])
F = torch.nn.functional
x, flags, square = torch.ones(2), torch.ones(2) > 0, torch.ones(2, 2)


def is_tensor(value):
    return type(value) is torch.Tensor


def changed(name):
    return lambda d: getattr(torch.ones(2), name)(d)


# A call with a tensor or an object of the class, and the arguments that the class receives: the function's name, the number of
# positional arguments, and the names of keyword arguments.
CASES = {
    "add": (lambda d: torch.add(x, d), "add", 2, []),
    "alpha": (lambda d: torch.add(d, x, alpha=2), "add", 2, ["alpha"]),
    "number": (lambda d: torch.add(d, 2), "add", 2, []),
    "+": (lambda d: x + d, "add", 2, []),
    "reflected +": (lambda d: d + x, "add", 2, []),
    "reflected /": (lambda d: d / x, "__rdiv__", 2, []),
    "reflected //": (lambda d: d // x, "__rfloordiv__", 2, []),
    "reflected @": (lambda d: d @ x, "__rmatmul__", 2, []),
    "//": (lambda d: x // d, "__floordiv__", 2, []),
    "%": (lambda d: x % d, "remainder", 2, []),
    "**": (lambda d: x**d, "pow", 2, []),
    "@": (lambda d: x @ d, "matmul", 2, []),
    "==": (lambda d: x == d, "eq", 2, []),
    "reflected >": (lambda d: d > x, "lt", 2, []),
    "add_": (changed("add_"), "add_", 2, []),
    "copy_": (changed("copy_"), "copy_", 2, []),
    "+=": (changed("__iadd__"), "add_", 2, []),
    "getitem": (lambda d: x[flags if is_tensor(d) else d], "__getitem__", 2, []),
    "sum": (lambda d: torch.sum(d), "sum", 1, []),
    "mean": (lambda d: torch.mean(d, dim=0), "mean", 1, ["dim"]),
    "exp out": (lambda d: torch.exp(x, out=d), "exp", 1, ["out"]),
    "cat": (lambda d: torch.cat([x, d]), "cat", 1, []),
    "concatenate": (lambda d: torch.concatenate((x, d)), "concatenate", 1, []),
    "stack": (lambda d: torch.stack([d, d]), "stack", 1, []),
    "where": (lambda d: torch.where(flags, d, x), "where", 3, []),
    "clamp": (lambda d: torch.clamp(x, min=d), "clamp", 1, ["min"]),
    "max": (lambda d: torch.max(x, d), "max", 2, []),
    "einsum": (lambda d: torch.einsum("i,i->", x, d), "einsum", 3, []),
    "einsum list": (lambda d: torch.einsum("i,i->", [x, d]), "einsum", 3, []),
    "meshgrid": (lambda d: torch.meshgrid(x, d, indexing="ij"), "meshgrid", 2, ["indexing"]),
    "allclose": (lambda d: torch.allclose(x, d), "allclose", 2, []),
    "zeros_like": (lambda d: torch.zeros_like(d), "zeros_like", 1, []),
    "numel": (lambda d: torch.numel(d), "numel", 1, []),
    "sort": (lambda d: torch.sort(d), "sort", 1, []),
    "abs_": (lambda d: torch.abs_(d), "abs_", 1, []),
    "norm": (lambda d: torch.linalg.norm(d), "linalg_norm", 1, []),
    "linear": (lambda d: F.linear(square, d), "linear", 2, []),
    "relu": (lambda d: F.relu(d), "relu", 1, ["inplace"]),
    "softmax": (lambda d: F.softmax(d, dim=0), "softmax", 1, ["_stacklevel", "dim", "dtype"]),
    "layer_norm": (lambda d: F.layer_norm(d, (2,)), "layer_norm", 2, ["bias", "eps", "weight"]),
    "mse_loss": (lambda d: F.mse_loss(d, x), "mse_loss", 2, ["reduce", "reduction", "size_average", "weight"]),
    "module": (lambda d: torch.nn.ReLU()(d), "relu", 1, ["inplace"]),
}
ORDERS = ("class, call with it", "call, class, call with it", "class, call, call with it")


def told(run, order):
    """Return the calls that the class receives."""
    if order.startswith("call"):
        run(torch.ones(2))

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args), sorted(kwargs or {})

    if order.startswith("class, call, "):
        run(torch.ones(2))
    return run(Duck())


def check(name, order):
    run, *expected = CASES[name]
    try:
        found = told(run, order)
    except Exception as error:
        found = repr(error)
    if found != tuple(expected):
        print(f"{order}: {name}: {found}", flush=True)


for order in ORDERS:
    for name in CASES:
        child = os.fork()
        if not child:
            check(name, order)
            os._exit(0)
        os.waitpid(child, 0)
print("checked", len(ORDERS) * len(CASES))
