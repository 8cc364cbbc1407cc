"""`from module import *` gives the names that are imported on first use, and raises no error in any module."""

import importlib
import types

import pytest

from adjoint._runtime import places

NAMES = sorted({"autograd", "multiprocessing"} | {name for name in places._MODULES if name and "." not in name})


@pytest.mark.parametrize("name", NAMES)
def test_star_imports_raise_no_error(name):
    importlib.import_module(f"adjoint.{name}")
    exec(f"from adjoint.{name} import *", {"__package__": None})


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("nn", "Transformer LazyLinear functional UninitializedParameter"),
        ("nn.parameter", "UninitializedBuffer is_lazy"),
        ("masked._ops", "amax"),
        ("functional", "cdist"),
        ("return_types", "topk"),
        ("distributed.distributed_c10d", "GroupMember"),
        ("optim.adamw", "AdamW adamw"),
        ("multiprocessing.spawn", "spawn"),
    ],
)
def test_star_imports_include_names_of_first_use(module, names):
    found = {"__package__": None}
    exec(f"from adjoint.{module} import *", found)
    there = importlib.import_module(f"adjoint.{module}")
    assert all(found[name] is getattr(there, name) for name in names.split())


def test_a_star_import_of_the_package_gives_no_modules():
    """It would replace the modules of Python that a program has imported: `inspect`, `random`, `types`."""
    found = {"__package__": None}
    exec("from adjoint import *", found)
    assert {"Tensor", "softmax", "no_grad", "save"} <= found.keys()
    assert not [name for name, value in found.items() if isinstance(value, types.ModuleType)]
