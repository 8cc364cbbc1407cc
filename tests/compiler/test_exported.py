"""Exported programs compute the results of the modules, also after another process has loaded their files."""

import copy
import subprocess
import sys
import zlib

import pytest

import adjoint as torch

from .comparison import assert_alike
from .test_modules import MODULES

nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")


def fresh(result):
    """Return a copy of the result, with copies of its tensors."""
    if isinstance(result, torch.Tensor):
        return result.clone()
    return tuple(map(fresh, result)) if isinstance(result, (list, tuple)) else result


def run_with_seed(function, *args, **kwargs):
    torch.manual_seed(3)
    with torch.no_grad():
        return function(*args, **kwargs)


@pytest.mark.one_each("name")
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, tmp_path):
    make, inputs = MODULES[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    module = make()
    plain = copy.deepcopy(module)
    given = [
        [each.detach() if isinstance(each, torch.Tensor) else each for each in inputs(number)] for number in range(3)
    ]
    try:
        program = run_with_seed(torch.compiler.export, module, tuple(given[0]))
    except torch._dynamo.exc.Unsupported as error:
        pytest.skip(str(error))
    run_with_seed(plain, *given[0])
    torch.compiler.save(program, tmp_path / "program.pt")
    loaded = torch.compiler.load(tmp_path / "program.pt")
    assert str(loaded) == str(program)
    for each in given[1:]:
        expected = fresh(run_with_seed(plain, *each))
        assert_alike(fresh(run_with_seed(program, *each)), expected)
        assert_alike(fresh(run_with_seed(loaded, *each)), expected)


@pytest.mark.thorough
def test_most_modules_are_exported():
    refused = {}
    for name, (make, inputs) in MODULES.items():
        try:
            run_with_seed(torch.compiler.export, make(), tuple(inputs(0)))
        except torch._dynamo.exc.Unsupported as error:
            refused[name] = str(error)
    print(refused)
    assert len(refused) < 0.15 * len(MODULES), refused


def structured(x, pair, options, n=2, mode="sum"):
    y = x * n + pair[0]
    return {"sum": y.sum(), "both": (y, [pair[1] - y]), "mode": mode, "n": n, "given": x}, options["b"] * 2, None


def test_structures_of_arguments_and_results(tmp_path):
    def arguments():
        return (torch.randn(3), [torch.randn(3), torch.randn(3)], {"b": torch.arange(3)}), {"n": 5}

    args, kwargs = arguments()
    program = torch.compiler.export(structured, args, kwargs)
    torch.compiler.save(program, tmp_path / "program.pt")
    loaded = torch.compiler.load(tmp_path / "program.pt")
    for _ in range(2):
        args, kwargs = arguments()
        assert_alike(list(loaded(*args, **kwargs)), list(structured(*args, **kwargs)))
    x, pair, options = args
    refused = [
        ((x, pair, options), {"n": 6}, r"takes 5 as kwargs\['n'\], not 6"),
        ((x, pair, options), {}, r"takes a dictionary with the keys \('n',\) as kwargs"),
        ((x, tuple(pair), options), kwargs, r"takes a list of 2 as args\[1\]"),
        ((x[:2], pair, options), kwargs, r"takes float32\[3\] with strides \(4,\) as args\[0\], not float32\[2\]"),
        ((x.double(), pair, options), kwargs, r"not float64\[3\]"),
        ((x, pair, {"c": x}), kwargs, r"takes a dictionary with the keys \('b',\)"),
        ((x,), kwargs, "takes a tuple of 3 as args"),
        ((3, pair, options), kwargs, r"as args\[0\], not 3"),
    ]
    for args, kwargs, words in refused:
        with pytest.raises(RuntimeError, match=words):
            loaded(*args, **kwargs)


def test_unsupported_programs_are_not_exported(tmp_path):
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"item\(\) is not exported"):
        torch.compiler.export(lambda x: x * x.sum().item(), (torch.ones(2),))
    compiled = torch.compile(lambda x: x * 2)
    compiled(torch.ones(2, requires_grad=True))
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"under torch\.no_grad"):
        torch.compiler.save(compiled, tmp_path / "program.pt")
    with pytest.raises(TypeError, match="not function"):
        torch.compiler.save(structured, tmp_path / "program.pt")
    torch.save({"a": 1}, tmp_path / "other.pt")
    with pytest.raises(RuntimeError, match="does not contain an exported program"):
        torch.compiler.load(tmp_path / "other.pt")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mul(v0", "call['os:system']('true'); v9 = mul(v0"),
        ("mul(v0", "call['adjoint.hub:load']('true'); v9 = mul(v0"),
        ("mul(v0", "make['load']('true'); v9 = mul(v0"),
        ("mul(v0", "arithmetic['eval']('1'); v9 = mul(v0"),
        ("return v1", "return eval('1')"),
        ("return v1", "return (1).__class__"),
        ("return v1", "return [v1 for _ in args]"),
        ("v0 = args[0]", "v0 = args[0].__class__"),
        ("tensor('args[0]'", "tensor('args.__class__'"),
    ],
)
def test_a_file_calls_nothing_else(old, new, tmp_path):
    program = torch.compiler.export(lambda x: x * 2, (torch.ones(2),))
    assert program.text.count(old) == 1
    program.text = program.text.replace(old, new)
    torch.compiler.save(program, tmp_path / "program.pt")
    with pytest.raises(ValueError, match=r"a program (calls|returns|reads)"):
        torch.compiler.load(tmp_path / "program.pt")(torch.ones(2))


def test_weights_change_when_the_program_runs_and_not_before():
    module = nn.BatchNorm1d(3)
    program, plain = torch.compiler.export(module, (torch.ones(4, 3),)), copy.deepcopy(module)
    for _ in range(3):
        x = torch.randn(4, 3)
        assert_alike(program(x), plain(x).detach())
        assert torch.allclose(program.state_dict["running_mean"], plain.running_mean)


def test_a_compiled_module_with_several_shapes(tmp_path):
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    compiled = torch.compile(module)
    with torch.no_grad():
        for size in (2, 3):
            compiled(torch.ones(size, 4))
    torch.compiler.save(compiled, tmp_path / "program.pt")
    loaded = torch.compiler.load(tmp_path / "program.pt")
    for size in (3, 2):
        x = torch.randn(size, 4)
        assert_alike(loaded(x), module(x).detach())
    with pytest.raises(RuntimeError, match="the exported program takes"):
        loaded(torch.ones(5, 4))


def test_random_numbers_are_eager_ones():
    program = torch.compiler.export(lambda x: x + torch.rand(3) + nn.functional.dropout(x, 0.5), (torch.ones(3),))
    torch.manual_seed(7)
    expected = torch.ones(3) + torch.rand(3) + nn.functional.dropout(torch.ones(3), 0.5)
    torch.manual_seed(7)
    assert_alike(program(torch.ones(3)), expected)


def test_weights_have_the_names_of_the_module():
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    program = torch.compiler.export(module, (torch.ones(2, 4),))
    assert set(program.state_dict) == set(module.state_dict()) - {"1.num_batches_tracked"}
    assert "addmm(" in str(program)
    assert program.module()(torch.ones(2, 4)).shape == (2, 4)


IN_ANOTHER_PROCESS = """
import sys
import adjoint as torch
program = torch.compiler.load(sys.argv[1])
print(program(torch.arange(12.0).reshape(3, 4)).tolist())
"""


@pytest.mark.thorough
def test_another_process_needs_no_model(tmp_path):
    module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2), nn.Softmax(-1)).eval()
    x = torch.arange(12.0).reshape(3, 4)
    torch.compiler.save(torch.compiler.export(module, (x,)), tmp_path / "program.pt")
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path / "program.pt")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert torch.allclose(torch.tensor(eval(said)), module(x))
