"""Write `adjoint/_runtime/places.txt`: the places of PyTorch's public objects.

Run the script with the PyTorch version that the package follows. An object of PyTorch and an object of this package correspond if
a module of each library contains them under the same name, or if a line `FILE > MODULE: NAMES` of the present table says so. The
package then provides each of its objects in all modules in which PyTorch has the corresponding object. `places.py` explains the
lines. Run `python scripts/write_places.py`, which compares the modules that `import torch` imports, and the modules in `MORE`.
"""

from __future__ import annotations

import atexit
import inspect
import sys
import warnings
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name, walk_packages
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch

TARGET = Path(__file__).parents[1] / "adjoint" / "_runtime" / "places.txt"
BEFORE = TARGET.read_text(encoding="ascii")
TARGET.write_text("", encoding="ascii")  # the script must find objects without the table, except by `HOMES`
atexit.register(lambda: TARGET.stat().st_size or TARGET.write_text(BEFORE, encoding="ascii"))

import adjoint  # noqa: E402
from adjoint._runtime import places  # noqa: E402
from adjoint._runtime.absent import is_absent  # noqa: E402

MORE = """
    torch.distributed.checkpoint torch.distributed.fsdp torch.distributed.tensor torch.distributed.rpc torch.nn.attention
    torch.nn.utils.parametrizations torch.nn.utils.prune torch.onnx torch.testing torch.utils.benchmark
    torch.utils.checkpoint torch.utils.collect_env torch.utils.data torch.utils.dlpack torch.utils.flop_counter
    torch.utils.module_tracker
    """.split()

PRIVATE = set(
    """
    torch._C torch._C._autograd torch._C._fft torch._C._functorch torch._C._linalg torch._C._nn torch._C._sparse
    torch._C._special torch._VF
    torch._jit_internal torch._linalg_utils torch._lowrank torch._ops torch._tensor torch._utils torch.nn._reduction
    torch.optim._adafactor torch.optim._functional torch.optim._muon
    torch.utils._contextlib torch.utils._foreach_utils torch.utils._mode_utils
    torch.utils._python_dispatch torch.utils._pytree torch.utils.data._utils torch.utils.data._utils.collate
    torch.utils.data._utils.pin_memory torch.utils.data._utils.worker
    """.split()
)
"""The private modules that programs and pickles name."""

SAME = {
    **{
        f"autograd.profiler_util.{name}": f"profiler.events.{name}"
        for name in ("FormattedTimesMixin", "FunctionEventAvg", "Interval", "_format_memory", "_format_time")
    },
    "_C.DisableTorchFunction": "tape.torch_function.DisableTorchFunction",
    "_C.StorageBase": "kernels.memory.storages.StorageBase",
    "_C.TensorBase": "tensor.Tensor",
    "_C._AutoDispatchBelowAutograd": "aten.python_kernels.below_autograd",
    "_C._ConvBackend": "_C._convolution._ConvBackend",
    "_C._DisableTorchDispatch": "tape.torch_dispatch.DisableTorchDispatch",
    "_C._FunctionBase": "autograd.function.Function",
    "_C._InferenceMode": "autograd.grad_mode.inference_mode",
    "_C._TensorBase": "tensor.Tensor",
    "_C._current_autograd_node": "_C._autograd.current_autograd_node",
    "_C._current_graph_task_execution_order": "_C._autograd.execution_order",
    "_C._current_graph_task_id": "autograd.graph_task.current_task_id",
    "_C._disabled_torch_dispatch_impl": "tape.torch_dispatch.disabled_torch_dispatch_impl",
    "_C._enter_dual_level": "transforms.forward_mode.enter_dual_level",
    "_C._from_dlpack": "utils.dlpack.from_dlpack",
    "_C._get_autograd_fallback_mode": "_library.fallback.get_autograd_fallback_mode",
    "_C._get_cpu_capability": "backends.cpu.get_cpu_capability",
    "_C._get_deterministic_algorithms": "settings.are_deterministic_algorithms_enabled",
    "_C._get_deterministic_fill_uninitialized_memory": "_runtime.determinism.fills_uninitialized_memory",
    "_C._get_dispatch_stack_at": "aten.torch_dispatch.mode_at",
    "_C._get_warnAlways": "settings.is_warn_always_enabled",
    "_C._has_torch_function": "tape.torch_function.has_torch_function",
    "_C._has_torch_function_unary": "tape.torch_function.has_torch_function_unary",
    "_C._has_torch_function_variadic": "tape.torch_function.has_torch_function_variadic",
    "_C._is_fwd_grad_enabled": "transforms.forward_mode._is_fwd_grad_enabled",
    "_C._is_multithreading_enabled": "autograd.grad_mode.is_multithreading_enabled",
    "_C._is_torch_function_mode_enabled": "tape.torch_function.mode_is_active",
    "_C._is_view_replay_enabled": "autograd.grad_mode.is_view_replay_enabled",
    "_C._len_torch_dispatch_stack": "aten.torch_dispatch.modes_pushed",
    "_C._pop_torch_dispatch_stack": "aten.torch_dispatch.pop_mode",
    "_C._push_on_torch_dispatch_stack": "aten.torch_dispatch.push_mode",
    "_C._select_conv_backend": "_C._convolution.select_conv_backend",
    "_C._set_autograd_fallback_mode": "_library.fallback.set_autograd_fallback_mode",
    "_C._set_deterministic_fill_uninitialized_memory": "_runtime.determinism.set_fill_uninitialized_memory",
    "_C._set_fwd_grad_enabled": "transforms.forward_mode._set_fwd_grad_enabled",
    "_C._set_grad_enabled": "tape.modes.set_grad",
    "_C._set_multithreading_enabled": "autograd.grad_mode.set_multithreading_enabled",
    "_C._set_view_replay_enabled": "autograd.grad_mode._force_original_view_tracking",
    "_C._set_warnAlways": "settings.set_warn_always",
    "_C._swap_tensor_impl": "operators.memory.subclassing.swap_tensors",
    "_C._to_dlpack": "utils.dlpack.to_dlpack",
    "_C._will_engine_execute_node": "_C._autograd.will_engine_execute_node",
    "_C.parse_schema": "aten.schemas.parse_schema",
    "distributions.dirichlet._Dirichlet_backward": "distributions.gammas._Dirichlet_backward",
    "distributions.relaxed_bernoulli.LogitRelaxedBernoulli": "distributions.relaxed.LogitRelaxedBernoulli",
    "distributions.relaxed_categorical.ExpRelaxedCategorical": "distributions.relaxed.ExpRelaxedCategorical",
    "masked.maskedtensor.core._masks_match": "masked.tensors._masks_match",
    "masked.maskedtensor.core._tensors_match": "masked.tensors._tensors_match",
    "nn.modules.module._WrappedHook": "nn.modules.state_dict._WrappedHook",
    "optim._adafactor.adafactor": "optim._functional.adafactor",
    "optim._muon.muon": "optim._functional.muon",
    "_tensor._rebuild_from_type_v2": "serialization.tensors.rebuild_from_type_v2",
    "_utils._rebuild_meta_tensor_no_storage": "serialization.tensors.rebuild_meta",
    "_utils._rebuild_parameter": "serialization.tensors.rebuild_parameter",
    "_utils._rebuild_parameter_with_state": "serialization.tensors.rebuild_parameter_with_state",
    "_utils._rebuild_tensor": "serialization.tensors.rebuild_tensor",
    "_utils._rebuild_tensor_v2": "serialization.tensors.rebuild_tensor_v2",
    "_utils._rebuild_tensor_v3": "serialization.tensors.rebuild_tensor_v3",
    "_utils._rebuild_sparse_tensor": "serialization.tensors.rebuild_sparse",
    "sparse.check_sparse_tensor_invariants": "settings.check_sparse_tensor_invariants",
    "serialization._get_layout": "serialization.tensors.get_layout",
    "utils.swap_tensors": "operators.memory.subclassing.swap_tensors",
    "storage._load_from_bytes": "serialization.pickled_storages.load_from_bytes",
}
"""Names that differ in every module: the name in this package by PyTorch's name."""

for _name in vars(import_module("adjoint.optim._functional")):
    if _name.startswith(("_single_tensor_", "_multi_tensor_", "_fused_")):
        _kind = _name.rpartition("_")[2]
        _there = f"optim._{_kind}" if _kind in ("adafactor", "muon") else f"optim.{_kind}"
        SAME[f"{_there}.{_name}"] = f"optim._functional.{_name}"

DEEPEST = 4

NAMESPACES = ("linalg", "fft", "special", "sparse", "nn.functional", "")

NOWHERE = ("_C._distributed_c10d", "_C._onnx", "onnx._internal")
"""Modules that must not exist, because programs test for them."""

FUNCTIONS = (FunctionType, BuiltinFunctionType, type(cache(len)))
"""The types of functions, also of functions that keep their results."""

Where = tuple[str, str]

HOMES: dict[Where, Where] = {}
"""The file and the name of each object that a line `FILE > MODULE: NAMES` of the present table declares, by PyTorch's place."""

for _line in (each for each in BEFORE.splitlines() if " > " in each):
    (_file, _there), _names = _line.partition(":")[0].split(" > "), _line.partition(":")[2].split()
    for _shown, _, _defined in (each.rpartition("=") for each in _names if _file != places.PUBLISHED):
        HOMES[_there, _shown or _defined] = _file, _defined


def wanted_modules() -> dict[str, ModuleType]:
    """Return the compared modules of PyTorch. Their keys are the names without the package."""
    for name in MORE:
        import_module(name)
    names = [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
    public = [n for n in names if n in PRIVATE or not any(part.startswith("_") for part in n.split("."))]
    kept = [n for n in public if n.count(".") < DEEPEST and "_internal" not in n]
    return {name.partition(".")[2]: sys.modules[name] for name in sorted(kept, key=_last_private)}


def _last_private(name: str) -> tuple[bool, int, str]:
    """Return the rank of a module among those that name an object. Modules of private operators come last."""
    return name == "torch._C._nn", name.count("."), name


def own_modules() -> dict[str, ModuleType]:
    """Return the modules of this package. Their keys are the names of the files, without the package."""
    skipped = ("__main__", "as_torch", "distributed.runner", "torch_names", *places.ONE_FILE.values())
    found = {"": adjoint, **{name: import_module(f"adjoint.{name}") for name in places.ONE_FILE}}
    for each in walk_packages(adjoint.__path__, "adjoint."):
        name = each.name.partition(".")[2]
        if not name.startswith(skipped):
            found[name] = import_module(each.name)
    return found


def members(module: ModuleType) -> dict[str, Any]:
    """Return the contents of a module, without the names that Python adds and without the package."""
    found = {}
    for name in dir(module):
        if name != "torch" and not (name.startswith("__") and name.endswith("__")):
            try:
                found[name] = getattr(module, name)
            except Exception:  # noqa: BLE001
                continue
    return found


def attribute(module: ModuleType | None, name: str) -> Any:
    """Return an attribute of a module, or None if the attribute does not exist without the table."""
    try:
        return getattr(module, name, None)
    except ModuleNotFoundError:
        return None


def is_identified(value: Any) -> bool:
    """Return whether a value is an object with an identity, such as a class, and not a constant."""
    if isinstance(value, (ModuleType, type, *FUNCTIONS)):
        module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        return str(module).partition(".")[0] in ("torch", "adjoint", "None")
    return not isinstance(value, (int, float, str, bytes, tuple, list, dict, set, frozenset, type(None))) and (
        type(value).__module__.partition(".")[0] in ("torch", "adjoint", "datetime")
    )


def home_in_pytorch(value: Any) -> Where | None:
    """Return the module and the name under which PyTorch's pickles would refer to a class or function."""
    if not isinstance(value, (type, *FUNCTIONS)):
        return None
    module, name = str(value.__module__), value.__qualname__
    there = sys.modules.get(module)
    if (
        module.partition(".")[0] == "torch"
        and there
        and vars(there).get(name) is value
        and not isinstance(value, BuiltinFunctionType)
    ):
        return module.partition(".")[2], name
    for public in NAMESPACES:
        for shown, each in vars(sys.modules[f"torch.{public}".rstrip(".")]).items():
            if each is value and not isinstance(value, type):
                return public, shown
    return None


def nearest(file: str, name: str, homes: set[Where]) -> Where | None:
    """Return the nearest PyTorch module for an object of this package, or None if the object is in the right file."""
    if (file, name) in homes:
        return None
    same = [home for home in homes if home[1] == name] or [home for home in homes if len(homes) == 1]
    shared = [sum(1 for a, b in zip(file.split("."), home[0].split("."), strict=False) if a == b) for home in same]
    best = [home for home, count in zip(same, shared, strict=True) if count == max(shared)]
    return best[0] if len(best) == 1 else None


class Pairs:
    """The pairs of corresponding objects in this package and in PyTorch."""

    def __init__(self) -> None:
        self.theirs, self.ours = wanted_modules(), own_modules()
        self.file_of: dict[int, Where] = {}
        for file, module in self.ours.items():
            for name, value in list(vars(module).items()):
                home = getattr(value, "__module__", None)
                if isinstance(value, (type, FunctionType)) and home == module.__name__ and value.__name__ == name:
                    self.file_of[id(value)] = file, name
        self.pairs: dict[int, tuple[Any, Any]] = {}
        for there, module in self.theirs.items():
            for name, value in members(module).items():
                if is_identified(value) and id(value) not in self.pairs:
                    mine = self.at(there, name)
                    if mine is not None and is_identified(mine) and not is_absent(mine):
                        self.pairs[id(value)] = value, mine
        for there, here in SAME.items():
            theirs, mine = (
                resolve_name(f"{package}.{name}") for package, name in (("torch", there), ("adjoint", here))
            )
            self.pairs[id(theirs)] = theirs, mine
        for value in list(vars(torch).values()):  # prefer the module that defines the object (`torch.optim.adam`)
            home = home_in_pytorch(value)
            mine = home and self.at(*home)
            if mine is not None and is_identified(mine) and not is_absent(mine):
                self.pairs[id(value)] = value, mine

    def module_at(self, name: str) -> ModuleType | None:
        """Return the module of this package with the name of a PyTorch module."""
        found: Any = self.ours.get(name)
        if found is None:
            found = adjoint
            for part in name.split("."):
                found = attribute(found, part)
                if not isinstance(found, ModuleType):
                    return None
        return found

    def exists(self, module: str) -> bool:
        """Return whether this module exists without the table, or PyTorch's module contains only built-in functions."""
        return self.module_at(module) is not None or f"torch.{module}" in PRIVATE

    def at(self, module: str, name: str) -> Any:
        """Return the object of this package with the name of a PyTorch object."""
        file, defined = HOMES.get((module, name), ("", ""))
        declared = attribute(self.ours.get(file), defined) if defined else None
        return attribute(self.module_at(module), name) if declared is None else declared

    def has(self, module: str, name: str, mine: Any) -> bool:
        """Return whether a module has an object under this name without the table. Its `__getattr__` must return `mine`."""
        found = self.at(module, name)
        return found is mine or (found is not None and name in vars(self.module_at(module)))

    def lines(self) -> list[str]:
        """Return the lines of the table."""
        homes: dict[Where, set[str]] = defaultdict(set)
        contents: dict[Where, set[str]] = defaultdict(set)
        published = {id(value): name for name, value in adjoint.operators.PUBLIC["torch"].items()}
        found: dict[int, set[Where]] = defaultdict(set)
        for value, mine in self.pairs.values():
            home = home_in_pytorch(value)
            if home is not None and isinstance(mine, (type, FunctionType)) and not home[0].startswith(NOWHERE):
                found[id(mine)].add(home)
        for key, wheres in found.items():
            if key in published:
                home = min(wheres)
                if home[0] and home[1] == published[key]:
                    homes[places.PUBLISHED, home[0]].add(home[1])
            elif key in self.file_of:
                file, name = self.file_of[key]
                home = nearest(file, name, wheres)
                if home is not None:
                    homes[file, home[0]].add(name if name == home[1] else f"{home[1]}={name}")
        defined = {(there, name.partition("=")[0]) for (_, there), names in homes.items() for name in names}
        for there, module in self.theirs.items():
            above, _, name = there.rpartition(".")
            if there in self.ours and above in self.theirs and getattr(self.theirs[above], name, None) is module:
                contents[there, above].add(f"{name}=")
        homes_there = {there for _, there in homes}
        for there, module in self.theirs.items():
            for name, value in members(module).items():
                if (there, name) in defined or id(value) not in self.pairs:
                    continue
                mine = self.pairs[id(value)][1]
                if self.has(there, name, mine) or not (self.exists(there) or there in homes_there):
                    continue
                source = self.source_of(mine)
                if source is not None and source != (f"{there}.{name}".lstrip("."), ""):
                    file, called = source
                    contents[file, there].add(name if called == name else f"{name}={called}")
        lines = [f"{file} > {there}: {' '.join(sorted(names))}" for (file, there), names in homes.items()]
        lines += [f"{file} = {there}: {' '.join(sorted(names))}" for (file, there), names in contents.items()]
        return sorted(lines)

    def source_of(self, mine: Any) -> Where | None:
        """Return the file and the name of an object of this package."""
        if isinstance(mine, ModuleType):
            return mine.__name__.partition(".")[2], ""
        if id(mine) in self.file_of:
            return self.file_of[id(mine)]
        for file in (*NAMESPACES, *self.ours):
            for name, value in vars(self.ours[file]).items():
                if value is mine:
                    return file, name
        return None


def main() -> None:
    """Write the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adjoint.operators.load_all()
        for namespace in NAMESPACES:
            module = inspect.getmodule(adjoint) if not namespace else import_module(f"adjoint.{namespace}")
            members(module)  # import the names that are imported on first use
        TARGET.write_text("\n".join(Pairs().lines()) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
