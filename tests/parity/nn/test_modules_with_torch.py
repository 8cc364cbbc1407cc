"""The tests of modules and optimizers pass with PyTorch itself, so their expectations are correct."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

TESTS = Path(__file__).parents[2]
# Tests of internal names, and of calls that PyTorch refuses or that change PyTorch's arguments (rates in tensors).
OURS = (
    "test_a_module_without_hooks_calls_forward_at_once",
    "test_soft_margin_loss_of_complex_scores",
    "test_outputs_of_recurrent_layers_may_be_changed_in_place",
    "test_what_is_written_into_a_tensor_later_does_not_change_a_schedule",
)


def of_pytorch(name):
    """Return the tests of a module, with PyTorch in place of adjoint."""
    path = TESTS / name
    source = path.read_text(encoding="utf-8")
    assert "import adjoint as torch\n" in source
    names = {"__name__": f"{name} with PyTorch"}
    exec(compile(source.replace("import adjoint as torch\n", "import torch\n"), str(path), "exec"), names)
    return {key: value for key, value in names.items() if key not in OURS and not key.startswith("__")}


for file in (
    "nn/test_module.py",
    "nn/test_hooks.py",
    "nn/test_containers.py",
    "nn/test_layers.py",
    "nn/test_init.py",
    "nn/test_gradients_of_models.py",
    "optim/test_optimizers.py",
    "optim/test_schedulers.py",
):
    for key, value in of_pytorch(file).items():
        globals()[f"{key}" if key not in globals() else f"{key}_{Path(file).stem}"] = value
