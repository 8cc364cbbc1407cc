"""`adjoint run` and `install_as_torch`: programs with `import torch`, each in a new process."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import adjoint

ROOT = Path(adjoint.__file__).parents[1]


def run(*arguments, cwd, **environment):
    names = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "adjoint", "run", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=names, capture_output=True, text=True, timeout=300)


def output_of(text, tmp_path, *arguments, **environment):
    script = tmp_path / "script.py"
    script.write_text(text)
    finished = run(script, *arguments, cwd=tmp_path, **environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_a_script_runs_as_python_runs_it(tmp_path):
    text = "import sys, torch\nprint(__name__, sys.argv[1:], sys.path[0], __file__, sys.modules['__main__'].__name__)\n"
    script = tmp_path / "script.py"
    assert output_of(text, tmp_path, "-m", "--x=1") == [f"__main__ ['-m', '--x=1'] {tmp_path} {script} __main__"]


def test_files_of_a_program_have_absolute_paths(tmp_path):
    (tmp_path / "here.py").write_text("print(__file__, (lambda: 0).__code__.co_filename)\n")
    found = str(tmp_path / "." / "here.py")
    assert run("here.py", cwd=tmp_path).stdout.split() == [found, found]


@pytest.mark.thorough
def test_every_module_exists_once(tmp_path):
    text = """
import torch, adjoint
import functorch.experimental
import torch.nn.modules.linear
from torch.nn.modules.linear import Linear
import torch.autograd.gradcheck
import torch.utils._pytree, torch.optim.adamw, torch.nn.functional as F
print(torch is adjoint is torch.torch, torch.nn is adjoint.nn, Linear is torch.nn.Linear, F is adjoint.nn.functional)
print(callable(torch.autograd.gradcheck), torch.optim.adamw.AdamW is torch.optim.AdamW)
print(torch.__name__, Linear.__module__, type(torch.ones(1)).__module__)
print(torch.nn.__spec__.name)
print(functorch.experimental.chunk_vmap is torch._functorch.apis.chunk_vmap)
import torch._higher_order_ops.map, torch.nn.parallel.replicate, torch.backends.nnpack, torch.nn.modules.flatten
print(callable(torch._higher_order_ops.map), callable(torch.nn.parallel.replicate), torch.nn.Flatten.__module__)
"""
    assert output_of(text, tmp_path) == [
        "True True True True",
        "True True",
        "torch torch.nn.modules.linear torch",
        "adjoint.nn",
        "True",
        "True True torch.nn.modules.flatten",
    ]


@pytest.mark.thorough
def test_versions(tmp_path):
    text = """
import importlib.metadata, importlib.util, torch
from torch.torch_version import TorchVersion
version = torch.__version__
print(isinstance(version, TorchVersion), version >= "2.0", version > (2, 0), version < "3", version == "1.0")
print(importlib.metadata.version("torch"), importlib.util.find_spec("torch") is not None)
print(importlib.util.find_spec("torch.nn") is not None, importlib.util.find_spec("torch.no_such_module"))
print(torch.__file__.endswith("__init__.py"))
"""
    assert output_of(text, tmp_path) == ["True True True True False", "2.13.0 True", "True None", "True"]


@pytest.mark.thorough
def test_an_installed_pytorch_is_not_imported(tmp_path):
    other = tmp_path / "other" / "torch"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('imported')\n")
    (other / "nn.py").write_text("raise SystemExit('imported')\n")
    paths = os.pathsep.join([str(ROOT), str(tmp_path / "other")])
    assert output_of("import torch.nn; print(torch.__name__)", tmp_path, PYTHONPATH=paths) == ["torch"]
    others = subprocess.run(
        [sys.executable, "-c", "import torch"], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert "imported" in others.stderr


@pytest.mark.thorough
def test_libraries_that_import_torch_find_it(tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    (library / "__init__.py").write_text("from torch.nn import Module\nimport torch.nn.functional as F\nf = F.relu\n")
    text = (
        "import library, adjoint; print(library.Module is adjoint.nn.Module, library.f is adjoint.nn.functional.relu)"
    )
    assert output_of(text, tmp_path) == ["True True"]


@pytest.mark.thorough
def test_processes_that_the_script_starts_find_it(tmp_path):
    text = """
import multiprocessing, subprocess, sys

def name(_):
    import torch
    return torch.__name__, torch.ones(2).sum().item()

if __name__ == "__main__":
    code = "import torch.nn as nn, torch; print(nn.Linear.__module__, torch.__version__ > '2')"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/").stdout.strip())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(name, [0]))
"""
    assert output_of(text, tmp_path) == ["torch.nn.modules.linear True", "[('torch', 2.0)]"]


@pytest.mark.thorough
def test_pip_keeps_this_torch_and_takes_the_version_of_a_library_that_fits(tmp_path):
    for name, version, requires in [("library", "1", "torch"), ("library", "2", "torch==99"), ("torch", "99", None)]:
        about = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        with zipfile.ZipFile(tmp_path / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{about}/METADATA", metadata + (f"Requires-Dist: {requires}\n" if requires else ""))
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
    nothing_else = ["--no-index", "--find-links", tmp_path, "--disable-pip-version-check"]
    finished = run(
        "-m", "pip", "install", "--dry-run", *nothing_else, "library", cwd=tmp_path, PIP_CONFIG_FILE=os.devnull
    )
    assert finished.stdout.splitlines()[-1] == "Would install library-1", finished.stderr


@pytest.mark.thorough
def test_modules_run_by_name(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys, torch\nprint(torch.__name__, sys.argv[1:], __package__)\n")
    finished = run("-m", "package", "-q", cwd=tmp_path)
    assert finished.stdout.split() == ["torch", "['-q']", "package"]
    missing = run("-m", "no_such_module", cwd=tmp_path)
    assert (missing.returncode, missing.stderr) == (2, "adjoint: No module named no_such_module\n")


@pytest.mark.thorough
def test_pytest_runs_tests_of_torch(tmp_path):
    (tmp_path / "test_it.py").write_text("import torch\ndef test_it():\n    assert torch.ones(2).sum() == 2\n")
    finished = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert "1 passed" in finished.stdout


FOLDER = """import sys
from helper import value
print(__name__, __file__, __package__ == "", __spec__.name, __loader__.__class__.__name__, sys.argv, sys.path[0], value)
import torch.nn
sys.exit(5)
"""


@pytest.mark.parametrize(
    "given",
    ["{}/program"]
    + [
        pytest.param(each, marks=pytest.mark.thorough)
        for each in ("program", "program/", "./program", "program.zip", "./program.pyz")
    ],
)
def test_folders_and_archives_run_as_python_runs_them(given, tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "__main__.py").write_text(FOLDER)
    (folder / "helper.py").write_text("value = 7\n")
    if given.endswith(("zip", "pyz")):
        with zipfile.ZipFile(tmp_path / given, "w") as archive:
            for file in ("__main__.py", "helper.py"):
                archive.write(folder / file, file)
    stub = tmp_path / "torch"  # Python runs the same program
    stub.mkdir()
    (stub / "__init__.py").touch()
    (stub / "nn.py").touch()
    arguments = [given.format(tmp_path), "a", "-m", "--x"]
    ours = run(*arguments, cwd=tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    theirs = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (5, theirs.stdout), ours.stderr


@pytest.mark.thorough
def test_a_folder_without_a_program_is_refused(tmp_path):
    (tmp_path / "nothing").mkdir()
    finished = run("nothing", cwd=tmp_path)
    assert (finished.returncode, finished.stderr) == (2, "adjoint: can't find '__main__' module in 'nothing'\n")


@pytest.mark.thorough
def test_code_runs_as_python_runs_it(tmp_path):
    code = "import sys, torch\nprint(__name__, sys.argv, repr(sys.path[0]), torch.__name__)\nsys.exit(4)"
    finished = run("-c", code, "-x", "y", cwd=tmp_path)
    assert (finished.returncode, finished.stdout) == (4, "__main__ ['-c', '-x', 'y'] '' torch\n")
    finished = run("-c", "def f():\n    1 / 0\nf()", cwd=tmp_path)
    assert finished.returncode == 1 and "as_torch" not in finished.stderr and finished.stderr.count("File") == 2


def test_exit_codes_and_tracebacks_are_those_of_python(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\n\ndef f():\n    raise ValueError('no')\n\nf()\n")
    finished = run(script, cwd=tmp_path)
    lines = finished.stderr.splitlines()
    assert finished.returncode == 1
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{script}", line 6, in <module>']
    assert lines[-1] == "ValueError: no"
    script.write_text("raise SystemExit(7)")
    assert run(script, cwd=tmp_path).returncode == 7
    missing = run(tmp_path / "nothing.py", cwd=tmp_path)
    assert missing.returncode == 2
    assert "no such file" in missing.stderr


@pytest.mark.thorough
def test_install_is_refused_after_pytorch(tmp_path):
    program = (
        "import sys, types, adjoint\nsys.modules['torch'] = types.ModuleType('torch')\nadjoint.install_as_torch()\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert "PyTorch has been imported in this process" in finished.stderr


@pytest.mark.thorough
def test_what_is_missing_says_so_where_it_is_used(tmp_path):
    text = """
import torch
from torch.distributed import Reducer, ReduceOp
from torch.jit import save
print(isinstance(1, Reducer), torch.distributed.is_initialized(), torch.compile(len) is len)
for use in (lambda: Reducer(1), lambda: save(1), lambda: torch.batch_norm_elemt, lambda: torch.nothing):
    try:
        use()
    except (NotImplementedError, AttributeError) as error:
        print(type(error).__name__, error)
"""
    lines = output_of(text, tmp_path)
    assert lines[0] == "False False False"
    assert lines[1].startswith(
        "NotImplementedError torch.distributed.Reducer is not in adjoint: it has not been written yet."
    )
    assert lines[2].startswith("NotImplementedError torch.jit.save is not in adjoint: there is no TorchScript")
    assert lines[3].startswith(
        "AttributeError module 'adjoint' has no attribute 'batch_norm_elemt': PyTorch has it, adjoint has not"
    )
    assert lines[4] == "AttributeError module 'adjoint' has no attribute 'nothing'"


@pytest.mark.parametrize("library", ["einops", "opt_einsum", "torchinfo", "torchmetrics", "timm", "transformers"])
def test_real_libraries_are_imported(library, tmp_path):
    pytest.importorskip(library)
    assert output_of(f"import torch, {library}; print('fine')", tmp_path)[-1] == "fine"


@pytest.mark.thorough
def test_a_copy_of_the_helpers_of_pytorchs_tests_is_found_on_the_path(tmp_path):
    helpers = tmp_path / "torch" / "testing" / "_internal"
    helpers.mkdir(parents=True)
    (helpers / "__init__.py").touch()
    (helpers / "common.py").write_text("from torch._inductor.utils import GPU_TYPES\nimport torch._refs.linalg\n")
    probe = "try:\n    import torch._prims\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
    (tmp_path / "probe.py").write_text(probe)  # a file that does not name the helpers
    text = """
import torch, probe
from torch.nn.parallel._functions import Broadcast  # before the helpers
from torch.testing._internal import common
import torch._logging._internal, torch._dynamo.test_case
import torch._prims, torch._inductor.exc
from torch._prims.context import TorchRefsMode
from torch._subclasses.fake_utils import outputs_alias_inputs
x = torch.ones(2)
with TorchRefsMode(strict=True):
    print(outputs_alias_inputs([x[1:]], (x,)), outputs_alias_inputs(x + 1, x), torch._prims.utils.is_float_dtype(x.dtype))
torch._prims.utils.compare_tensor_meta(x, x + 1)
for other in (x.long(), x[1:]):
    try:
        torch._prims.utils.compare_tensor_meta(x, other)
    except RuntimeError as error:
        print(error)
print([*torch._logging._internal.log_registry.get_log_qnames()], torch._dynamo.test_case.TestCase._exit_stack.close())
print(common.__name__, common.GPU_TYPES, torch._refs.linalg.det(torch.eye(2)).item(), torch.mps.is_available())
print(torch._refs.geometric(x, 0.5).dtype, x)
from torch.utils import cpp_extension
try:
    cpp_extension.load("name", [])
except NotImplementedError as error:
    print(str(error).partition(":")[0])
"""
    assert output_of(text, tmp_path) == [
        "torch._prims",
        "True False True",
        "Dtypes torch.float32 and torch.int64 are not equal!",
        "Shapes torch.Size([2]) and torch.Size([1]) are not equal!",
        "[] None",
        "torch.testing._internal.common ['cuda', 'mps', 'xpu', 'mtia'] 1.0 False",
        "torch.float32 tensor([1., 1.])",
        "torch.utils.cpp_extension.load is not in adjoint",
    ]


def test_annotations_are_objects_as_in_python(tmp_path):
    text = "import torch, dataclasses\n@dataclasses.dataclass\nclass C:\n    size: int\nprint(dataclasses.fields(C)[0].type)\n"
    assert output_of(text, tmp_path) == ["<class 'int'>"]


def test_a_class_that_is_no_tensor_overrides_the_first_call_of_a_layer_function(tmp_path):
    text = """
import torch, torch.nn.functional as F
class Named:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function.__name__
print(F.relu(Named()), F.softmax(Named(), 0))
print(torch.fx.symbolic_trace(lambda x: F.relu(x)).code.splitlines()[4].strip())
"""
    assert output_of(text, tmp_path) == [
        "relu softmax",
        "relu = torch.nn.functional.relu(x, inplace = False);  x = None",
    ]
