"""The public names: where each is, its object, its docstring, its signatures, and where it is declared."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import types
import warnings
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import adjoint
from adjoint._runtime.absent import is_absent
from adjoint.dispatch.operator_index import FAMILIES
from adjoint.missing import names_in

PACKAGE = Path(adjoint.__file__).parent
PYTORCH_NAMES = Path(__file__).parents[2] / "scripts" / "pytorch_names.txt"

OWN_MODULES = ("torch.inspect", "torch.as_torch", "torch.array_api", "torch.array_api.fft", "torch.array_api.linalg")
"""Public modules that PyTorch does not have."""

FURTHER_MODULES = {
    "torch.autograd.gradcheck": "GradcheckError",
    "torch.cuda.nvtx": "mark range range_pop range_push",
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": """
        allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper
    """,
    "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState batched_powerSGD_hook powerSGD_hook",
    "torch.distributed.algorithms.join": "Join JoinHook Joinable",
    "torch.distributed.checkpoint": "CheckpointException FileSystemReader FileSystemWriter Metadata async_save load save",
    "torch.distributed.checkpoint.format_utils": "dcp_to_torch_save torch_save_to_dcp",
    "torch.distributed.checkpoint.state_dict": """
        StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict
        set_optimizer_state_dict set_state_dict
    """,
    "torch.distributed.fsdp": """
        CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy UnshardHandle fully_shard
        register_fsdp_forward_method
    """,
    "torch.distributed.nn.functional": "",
    "torch.distributed.optim": "ZeroRedundancyOptimizer",
    "torch.distributed.tensor": """
        DTensor Partial Placement Replicate Shard distribute_module distribute_tensor empty full ones rand randn zeros
    """,
    "torch.distributions.utils": "",
    "torch.fx.subgraph_rewriter": "",
    "torch.nn.attention.bias": "",
    "torch.nn.grad": "",
    "torch.nn.modules.module": "",
    "torch.optim.optimizer": "register_optimizer_step_post_hook register_optimizer_step_pre_hook",
    "torch.utils.module_tracker": "",
    "torch.utils.tensorboard": "",
}
"""Modules of PyTorch's that its list of names leaves out, and their names besides those of their `__all__`."""

NOT_LISTED = ("torch.ops.aten",)
"""PyTorch's modules that have no names of their own: `torch.ops.aten` says every operator a second time."""


@dataclass(frozen=True)
class PublicName:
    """One public name: `torch.linalg.svd` is the name `svd` of the module `torch.linalg`."""

    module: str
    name: str
    value: Any = field(compare=False, hash=False, repr=False)

    @property
    def path(self) -> str:
        """The whole name, as in a program that says `import adjoint as torch`."""
        return f"{self.module}.{self.name}"

    @cached_property
    def docstring(self) -> str:
        """Its docstring, cleaned; that of a value which is documented by its type is empty."""
        value = self.value
        if isinstance(value, (type, property)) or callable(value) or hasattr(type(value), "__get__"):
            own = value.__doc__ if isinstance(value, type) else inspect.getdoc(value)
            if not own and str(getattr(value, "__module__", "")).startswith("multiprocessing"):
                own = "That of Python's package `multiprocessing`."
            return inspect.cleandoc(own) if own else ""
        return ""

    @property
    def kind(self) -> str:
        """`class`, `function`, `method`, `attribute`, or `data`."""
        in_class = isinstance(owner_of(self.module), type)
        if isinstance(self.value, type):
            return "exception" if issubclass(self.value, BaseException) else "class"
        if in_class:
            return "method" if callable(self.value) else "attribute"
        return "function" if callable(self.value) else "data"

    @property
    def is_described(self) -> bool:
        """Whether it has a page of its own: a constant's value says everything, and other packages describe what is theirs."""
        if self.kind == "data" or isinstance(self.value, (bool, int, float, str)):
            return False
        package = str(getattr(self.value, "__module__", "adjoint")).partition(".")[0]
        return package in ("adjoint", "torch", "numpy", "None") or package in sys.stdlib_module_names

    @property
    def family(self) -> str:
        """The family of operators that declares it, such as `math.pointwise`, or ''."""
        part = {"torch": "torch", "torch.Tensor": "Tensor", "torch.nn.functional": "functional"}.get(
            self.module, self.module.removeprefix("torch.")
        )
        return families().get((part, self.name), "")

    @property
    def declaration(self) -> tuple[str, int, int] | None:
        """The file, the first and the last line that declare it, relative to the package."""
        name = self.name
        if self.family:
            found = definitions(PACKAGE / "operators" / f"{self.family.replace('.', '/')}.py")
            prefix = f"{self.module.rpartition('.')[2]}_{name}"
            for wanted in (prefix, name, name.removesuffix("_")):
                if wanted in found:
                    return found[wanted]
        module = getattr(self.value, "__module__", None)
        if isinstance(self.value, property) and self.value.fget is not None:
            module = self.value.fget.__module__
        if not isinstance(module, str) or not module.startswith("adjoint"):
            return None
        path = PACKAGE.parent / module.replace(".", "/")
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.exists():
                found = definitions(candidate)
                owner = self.module.rpartition(".")[2]
                return found.get(f"{owner}.{name}") or found.get(getattr(self.value, "__name__", name))
        return None

    @property
    def signatures(self) -> list[str]:
        """How it is called, one for each overload: from the type stubs, otherwise from the object."""
        found = stubs(self.module).get(self.name)
        if found:
            return found
        if isinstance(self.value, property) or not callable(self.value):
            return [""]
        try:
            return [readable_signature(inspect.signature(self.value), self.kind == "method")]
        except (TypeError, ValueError):
            return ["(...)"]


def readable_signature(signature: inspect.Signature, of_method: bool) -> str:
    """The signature with short annotations, without `self`, and without defaults that are objects."""
    parameters = []
    for number, parameter in enumerate(signature.parameters.values()):
        if number == 0 and of_method and parameter.name in ("self", "input"):
            continue
        if parameter.default is not parameter.empty and repr(parameter.default).startswith("<"):
            parameter = parameter.replace(default=Text("..."))
        parameters.append(parameter.replace(annotation=shown(parameter.annotation)))
    try:
        return str(signature.replace(parameters=parameters, return_annotation=shown(signature.return_annotation)))
    except ValueError:
        return "(...)"


class Text:
    """A text that signatures show as it is, without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def shown(annotation: Any) -> Any:
    """An annotation in short, such as `int | None`."""
    if annotation is inspect.Signature.empty:
        return annotation
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__forward_arg__", None) or getattr(annotation, "__name__", str(annotation))
    return Text(annotation)


@cache
def families() -> dict[tuple[str, str], str]:
    """The family that declares each name of each part of the index of operators."""
    found = {}
    for family, groups in FAMILIES.items():
        for parts, names in groups.items():
            for part in parts.split():
                found.update({(part, name): family for name in names.split()})
    return found


@cache
def definitions(path: Path) -> dict[str, tuple[str, int, int]]:
    """The classes, functions and methods of a file with their lines, decorators included; and the aliases they declare."""
    found: dict[str, tuple[str, int, int]] = {}
    relative = str(path.relative_to(PACKAGE.parent))

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for item in body:
            if isinstance(item, (ast.ClassDef, ast.FunctionDef)):
                first = min([item.lineno, *(decorator.lineno for decorator in item.decorator_list)])
                place = (relative, first, item.end_lineno or first)
                found.setdefault(prefix + item.name, place)
                for decorator in item.decorator_list:
                    for constant in ast.walk(decorator):
                        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                            for word in constant.value.split():
                                found.setdefault(word, place)
                if isinstance(item, ast.ClassDef):
                    visit(item.body, f"{item.name}.")
            elif isinstance(item, ast.If):
                visit(item.body, prefix)
            elif isinstance(item, ast.Assign):
                for target in item.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(prefix + target.id, (relative, item.lineno, item.end_lineno or item.lineno))

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


STUBS = {
    "torch": "__init__.pyi",
    "torch.nn.functional": "nn/functional/__init__.pyi",
    "torch.linalg": "linalg.pyi",
    "torch.special": "special.pyi",
    "torch.fft": "fft.pyi",
    "torch.Tensor": "operators/tensor_methods.pyi",
}


@cache
def stubs(module: str) -> dict[str, list[str]]:
    """The signatures in the type stubs of a module, by name."""
    if module not in STUBS:
        return {}
    tree = ast.parse((PACKAGE / STUBS[module]).read_text(encoding="utf-8"))
    body: list[ast.stmt] = tree.body
    if module == "torch.Tensor":
        body = next(item for item in body if isinstance(item, ast.ClassDef) and item.name == "TensorMethods").body
    found: dict[str, list[str]] = {}
    for item in body:
        if isinstance(item, ast.FunctionDef):
            if any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in item.decorator_list):
                found[item.name] = [""]
                continue
            arguments = item.args
            if module == "torch.Tensor" and arguments.args and arguments.args[0].arg == "self":
                del arguments.args[0]
            elif module == "torch.Tensor" and arguments.posonlyargs:
                del arguments.posonlyargs[0]
            returned = f" -> {ast.unparse(item.returns)}" if item.returns is not None else ""
            text = re.sub(
                r"\b_(bool|int|float|complex|dtype|device|layout|memory_format|Number|Dims|Index|slice|type)\b",
                r"\1",
                f"({ast.unparse(arguments)}){returned}",
            )
            found.setdefault(item.name, []).append(text)
    return found


@cache
def owner_of(module: str) -> Any:
    """The module, or class, of that name; None if there is none."""
    own = f"adjoint{module.removeprefix('torch')}"
    try:
        return importlib.import_module(own)
    except ImportError:
        parent, _, last = own.rpartition(".")
        try:
            return getattr(importlib.import_module(parent), last, None)
        except ImportError:
            return None


def _value(owner: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(owner, name)
        except Exception:  # noqa: BLE001  (what is missing says so in many ways)
            return None


@cache
def public_names() -> tuple[PublicName, ...]:
    """Every public name, sorted by module: those of PyTorch's that there are, and what modules export besides."""
    modules = {module: set(names) for module, names in names_in(PYTORCH_NAMES).items() if module not in NOT_LISTED}
    modules.update({module: set() for module in OWN_MODULES})
    modules.update({module: set(names.split()) for module, names in FURTHER_MODULES.items()})
    found = []
    for module, names in modules.items():
        owner = owner_of(module)
        if owner is None:
            continue
        if not isinstance(owner, type):
            names |= {name for name in getattr(owner, "__all__", ()) if not name.startswith("_")}
        for name in sorted(names):
            value = _value(owner, name)
            if value is None or is_absent(value) or isinstance(value, types.ModuleType):
                continue
            found.append(PublicName(module, name, value))
    return tuple(found)
