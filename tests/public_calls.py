"""Calls of all public functions and methods with a few arguments of each kind, for tests of every function at once."""

import itertools

ARGUMENTS = {
    "matrix": lambda torch: torch.arange(1.0, 7.0).reshape(2, 3),
    "recorded": lambda torch: torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_() * 1,
    "square": lambda torch: torch.eye(3) * 2 + 0.1,
    "vector": lambda torch: torch.arange(1.0, 4.0),
    "number": lambda torch: torch.tensor(2.0),
    "indices": lambda torch: torch.tensor([[0, 1, 1], [1, 0, 1]]),
    "mask": lambda torch: torch.tensor([[True, False, True], [False, True, True]]),
    "complex": lambda torch: torch.ones(2, 3, dtype=torch.complex64),
    "image": lambda torch: torch.arange(16.0).reshape(1, 1, 4, 4),
    "0": lambda torch: 0,
    "1": lambda torch: 1,
    "0.5": lambda torch: 0.5,
    "(3, 2)": lambda torch: (3, 2),
    "int32": lambda torch: torch.int32,
    "float64": lambda torch: torch.float64,
    "matrices": lambda torch: [torch.ones(2, 3), torch.ones(2, 3)],
}
TENSORS = tuple(ARGUMENTS)[:9]
CALLS = (
    *((each,) for each in TENSORS),
    *itertools.product(("matrix", "indices"), ARGUMENTS),
    *itertools.product(("matrix",), ("0", "(3, 2)"), ("indices", "1", "float64")),
)
"""The names of the arguments of each call."""

MODULES = ("", "nn.functional", "linalg", "fft", "special")
LEFT_OUT = frozenset(
    """
    apply_ backward compile cuda embedding_bag from_file hpu ipu load lobpcg manual_seed map_ map2_ module_load mtia pin_memory
    register_hook register_post_accumulate_grad_hook save seed set_rng_state share_memory_ xpu
    """.split()
)
"""Functions of files, devices, generators, hooks, other functions and the process, and a solver that takes long."""


def module_of(torch, name):
    """Return the module of this name in a library."""
    for part in filter(None, name.split(".")):
        torch = getattr(torch, part)
    return torch


def public_functions(torch):
    """Return the names of the functions and methods, such as `linalg.inv` and `Tensor.add_`."""
    names = []
    for module in (*MODULES, "Tensor"):
        found = vars(module_of(torch, module)) if module == "nn.functional" else dir(module_of(torch, module))
        for name in sorted(found):
            function = getattr(module_of(torch, module), name)
            skipped = name in LEFT_OUT or name.startswith(("_", "is_", "get_", "use_")) or "autocast" in name
            skipped = skipped or (name.startswith("set_") and module != "Tensor")
            if not skipped and callable(function) and not isinstance(function, type):
                names.append(f"{module}.{name}".removeprefix("."))
    return names


def arguments_of(torch, call):
    """Return the arguments of a call, made anew."""
    return [ARGUMENTS[each](torch) for each in call]


def found_in(torch, name):
    """Return the function of this name in a library, or None."""
    try:
        return module_of(torch, name)
    except AttributeError:
        return None
