"""docs/compatibility.md lists the existing names. The names that libraries look up exist."""

import importlib.util
from pathlib import Path

import pytest

import adjoint as torch

ROOT = Path(torch.__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the tests of an installed package, without its pages beside them")
def test_the_page_and_the_list_are_true():
    spec = importlib.util.spec_from_file_location("write_compatibility", ROOT / "scripts" / "write_compatibility.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert PAGE.read_text(encoding="utf-8") == script.page(), "run python scripts/write_compatibility.py"
    assert script.MISSING.read_text(encoding="utf-8") == script.listed(), "run python scripts/write_compatibility.py"


def test_operators_of_a_library():
    @torch.library.custom_op("shop::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scaled(x, 3.0).sum().backward()
    scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup_context)
    torch.ops.shop.scaled(x, factor=3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert scaled._schema == "(Tensor x, float factor=2.0) -> Tensor"
    with pytest.raises(AttributeError, match="'_OpNamespace' 'shop' object has no attribute 'other'"):
        torch.ops.shop.other


def test_libraries_are_defined_by_schemas():
    library = torch.library.Library("store", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    x = torch.ones(1, requires_grad=True)
    torch.ops.store.twice(x).backward()
    assert x.grad.item() == 2


def test_lists_of_tensors():
    tensors = [torch.ones(2), torch.ones(3)]
    torch._foreach_mul_(tensors, [2.0, 3.0])
    assert [each.tolist() for each in tensors] == [[2.0] * 2, [3.0] * 3]
    assert [each[0].item() for each in torch._foreach_addcdiv(tensors, tensors, tensors, [1.0, 2.0])] == [3.0, 5.0]
    assert [each[0].item() for each in torch._foreach_maximum(tensors, 2.5)] == [2.5, 3.0]
    assert [round(each.item(), 4) for each in torch._foreach_norm(tensors)] == [2.8284, 5.1962]
    with pytest.raises(RuntimeError, match="same number of elements"):
        torch._foreach_add(tensors, [1.0])


def test_paths_in_trees():
    tree = torch.utils._pytree
    found, _ = tree.tree_flatten_with_path({"a": [1, (2, 3)]})
    assert [(tree.keystr(path), leaf) for path, leaf in found] == [
        ("['a'][0]", 1),
        ("['a'][1][0]", 2),
        ("['a'][1][1]", 3),
    ]


def test_switches_are_set_for_a_while():
    assert torch.backends.cudnn.enabled
    with torch.backends.cudnn.flags(enabled=False):
        assert not torch.backends.cudnn.enabled
    assert torch.backends.cudnn.enabled


def test_futures():
    future = torch.futures.Future()
    later = future.then(lambda done: done.wait() + 1)
    future.set_result(1)
    assert torch.futures.wait_all([future, later]) == [1, 2]
    assert torch.jit.wait(torch.jit.fork(lambda: 3)) == 3


def test_models_from_a_folder(tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = []\ndef model(n=1):\n    'A model.'\n    return n\n")
    assert torch.hub.load(str(tmp_path), "model", n=3, source="local") == 3
    assert torch.hub.list(str(tmp_path)) == ["model"]
    torch.save({"a": torch.ones(1)}, tmp_path / "weights.pt")
    found = torch.hub.load_state_dict_from_url((tmp_path / "weights.pt").as_uri(), model_dir=str(tmp_path / "cache"))
    assert found["a"].item() == 1
    with pytest.raises(NotImplementedError, match="downloads nothing"):
        torch.hub.load_state_dict_from_url("https://example.org/x.pt", model_dir=str(tmp_path))
