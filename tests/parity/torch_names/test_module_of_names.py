"""Classes and functions have PyTorch's modules, and every public path to an object of PyTorch leads to an object of adjoint.

`missing_places.txt` lists the missing places, with the reasons. `python -m tests.parity.torch_names.test_module_of_names`
writes the list again.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

import pytest

torch = pytest.importorskip("torch")

from adjoint._runtime.absent import is_absent
from adjoint.missing import reason

LIST = Path(__file__).with_name("missing_places.txt")
MORE = """
    torch.distributed.checkpoint torch.distributed.fsdp torch.distributed.tensor torch.distributed.rpc torch.nn.attention
    torch.nn.utils.parametrizations torch.nn.utils.prune torch.onnx torch.testing torch.utils.benchmark
    torch.utils.checkpoint torch.utils.collect_env torch.utils.data torch.utils.dlpack torch.utils.flop_counter
    torch.utils.module_tracker
    """.split()

REASONS = (
    (r"torch(\.\w+)*\.torch", "a module's own import of the package"),
    (r"torch\.(cuda|mps|mtia|xpu|accelerator)\b.*", "there is only the CPU"),
    (r"torch\.(backends)\b.*", "it belongs to a library that adjoint does not use"),
    (r"torch\.(ao|quantization|nn\.(intrinsic|qat|quantizable|quantized))\b.*", "there are no quantized tensors"),
    (
        r"torch\.(export|package|monitor|numa|jit|classes|fx\.(passes|experimental|config))\b.*",
        "it is internal to PyTorch",
    ),
    (
        r"torch\.(utils\.(cpp_\w+|file_baton|backend_registration|throughput_benchmark|data\.(datapipes|graph\w*)))\b.*",
        "it is internal to PyTorch",
    ),
    (r"torch\.distributed\b.*", "MPI starts and connects the processes"),
    (r"torch\.profiler\b.*|torch\.autograd\.profiler\w*\b.*", "the profiler records Python calls only"),
)
"""Patterns of full names. They have priority over the patterns of `adjoint.missing`."""


def modules():
    """Return the names of PyTorch's public modules, down to three levels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MORE:
            importlib.import_module(name)
    names = [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
    return sorted(n for n in names if n.count(".") <= 3 and not any(part.startswith("_") for part in n.split(".")))


def is_pytorchs(value):
    """Return whether a class, a function or a module belongs to PyTorch, and not to another library."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == "torch"
    if value is torch.hub.tqdm:  # PyTorch defines a class if the library is not installed
        return False
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return str(getattr(value, "__module__", None)).partition(".")[0] in ("torch", "None")
    return type(value).__module__.partition(".")[0] == "torch"


def names_in(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dir(module):
            if not name.startswith("_"):
                try:
                    yield name, getattr(module, name)
                except Exception:
                    continue


def ours(name):
    """Return the module of this package with PyTorch's name, or None."""
    try:
        return importlib.import_module(name.replace("torch", "adjoint", 1))
    except ImportError:
        return None


def missing():
    """Return the public names of PyTorch that adjoint lacks, by module."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules():
            module = ours(name)
            lacking = [
                each
                for each, value in names_in(sys.modules[name])
                if is_pytorchs(value) and (module is None or not hasattr(module, each))
            ]
            if lacking:
                found[name] = lacking
    return found


def lines():
    """Return the lines of the list, with the missing names for each module and reason."""
    for module, names in missing().items():
        by_reason = {}
        for name in names:
            by_reason.setdefault(reason(f"{module}.{name}", REASONS), []).append(name)
        for why, each in sorted(by_reason.items()):
            yield f"{module} ({why}): {' '.join(each)}"


@pytest.mark.thorough
def test_all_paths_lead_to_ours_but_those_listed():
    # Run in a new process, because imports of other tests add names to PyTorch's modules.
    program = "from tests.parity.torch_names.test_module_of_names import lines; print(*lines(), sep='\\n')"
    command = [sys.executable, "-W", "ignore", "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=LIST.parents[2]).stdout
    assert found == LIST.read_text(encoding="utf-8"), "see the first lines of this file"


def pairs():
    """Return the classes and functions of both libraries as `(path, PyTorch's object, adjoint's object)`."""
    for name in modules():
        module = ours(name)
        for each, value in names_in(sys.modules[name]) if module is not None else ():
            mine = getattr(module, each, None)
            if is_pytorchs(value) and isinstance(mine, (type, FunctionType)) and not is_absent(mine):
                yield f"{name}.{each}", value, mine


def is_global(value):
    """Return whether a pickle names this class or function by its module and its name."""
    there = sys.modules.get(str(value.__module__))
    return isinstance(value, (type, FunctionType)) and getattr(there, value.__qualname__, None) is value


OTHERWISE = re.compile(
    r"torch\.("
    r"distributed\b.*|"  # adjoint has other classes, for MPI
    r"(cuda|backends)\b.*|"  # one function replaces several functions that raise errors
    r"(futures\.Future|jit\.\w*\.?ScriptModule|storage\.UntypedStorage|multiprocessing\.spawn\.ProcessContext)|"  # split
    r"onnx\.(OperatorExportTypes|TrainingMode)|utils\.weak\..*|"
    r"(fx\.(node|_symbolic_trace)|library)\..*|"
    r"transforms\..*|nn\.functional\.grouped\..*|autograd\.grad_mode\.is_(multithreading|view_replay)_enabled"
    r")"
)
"""The objects whose place differs from PyTorch's place, or that do not exist there."""


def said(value):
    return f"{value.__module__}.{value.__qualname__}".replace("adjoint", "torch", 1)


def test_classes_say_where_pytorch_has_them():
    wrong = {
        (path, said(mine), said(theirs))
        for path, theirs, mine in pairs()
        if isinstance(theirs, type) and isinstance(mine, type) and is_global(theirs) and said(mine) != said(theirs)
    }
    assert [each for each in sorted(wrong) if each[1].startswith("torch") and not OTHERWISE.fullmatch(each[1])] == []


def test_everything_is_pickled_by_its_name():
    failed = []
    for path, _, mine in pairs():
        for protocol in (2, 4):
            try:
                same = pickle.loads(pickle.dumps(mine, protocol)) is mine
            except Exception as error:
                same = repr(error)
            if same is not True and not OTHERWISE.fullmatch(said(mine)):
                failed.append((path, protocol, same))
    assert failed == []


def test_pytorch_finds_what_ours_says():
    """PyTorch has an object under each name in adjoint's pickles."""
    failed = set()
    for path, _, mine in pairs():
        module, name = mine.__module__.replace("adjoint", "torch", 1), mine.__qualname__
        if module.partition(".")[0] != "torch" or OTHERWISE.fullmatch(said(mine)):
            continue
        try:
            inspect.getattr_static(importlib.import_module(module), name.partition(".")[0])
        except (ImportError, AttributeError):
            failed.add(f"{path}: {module}.{name}")
    assert sorted(failed) == []


if __name__ == "__main__":
    LIST.write_text("\n".join(lines()) + "\n", encoding="utf-8")
