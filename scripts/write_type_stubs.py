"""Write the types of the operators for type checkers and editors: `python scripts/write_type_stubs.py`.

Operators are created from declarations at import time, which a type checker does not run. This script writes the types
into `__init__.pyi` of `adjoint` and of `adjoint.nn.functional`, and into `linalg.pyi`, `special.pyi` and `fft.pyi`: the
functions of these namespaces and their other exports; and into `adjoint/operators/__init__.pyi`: `TensorMethods`, the
methods that operators install on `Tensor`. Types follow from the names of parameters, which have the same meaning
everywhere.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import adjoint
from adjoint.dispatch.declaration import ARRAY, ARRAYS, OPTIONAL_ARRAY, Operator
from adjoint.operators import PUBLIC, load_all

PACKAGE = Path(adjoint.__file__).parent

HEAD = '"""Types of functions of tensors. Written by scripts/write_type_stubs.py; do not edit."""\n'

SOURCES = {
    "_bool": "builtins", "_complex": "builtins", "_float": "builtins", "_int": "builtins", "_slice": "builtins",
    "_type": "builtins", "Sequence": "collections.abc", "EllipsisType": "types", "Any": "typing", "TypeAlias": "typing",
    "TypeVar": "typing", "overload": "typing", "numpy": "", "_device": "adjoint.device", "_layout": "adjoint.device",
    "_memory_format": "adjoint.device", "_dtype": "adjoint.dtypes", "Tensor": "adjoint.tensor",
}  # fmt: skip
"""Where names come from that types are written with; those with an underscore are not exported."""

ALIASES = {
    "_Number": "_bool | _int | _float | _complex",
    "_Dims": "_int | Sequence[_int]",
    "_Index": "_int | _slice | EllipsisType | Tensor | Sequence[Any] | None",
}

OF_OPERATORS = """from adjoint import *
from adjoint.dispatch.decorators import PUBLIC as PUBLIC
from adjoint.dispatch.declaration import OPERATORS as OPERATORS
from adjoint.dispatch.registry import load_all as load_all
from adjoint.dispatch.source import SOURCES as SOURCES
from adjoint.tape.hook_handles import RemovableHandle as _RemovableHandle

_T = TypeVar("_T", bound=Tensor)

class TensorMethods:"""
OF_SPARSE = "from adjoint.settings import check_sparse_tensor_invariants as check_sparse_tensor_invariants\n"
OF_LINALG = "from adjoint.kernels.linalg import LinAlgError as LinAlgError\n"

TENSORS = """
    self input mat mat1 mat2 vec vec1 vec2 batch1 batch2 tensor1 tensor2 tensor weight index mask target
    condition real imag boundaries sorted_sequence ext_tensor query key
""".split()
TENSORS_OR_NONE = "bias out sorter weights pos_weight running_mean running_var attn_mask bias_k bias_v".split()
INTEGERS = (
    "dim0 dim1 dim2 start_dim end_dim chunks diagonal k n m r N steps num_classes groups offset length bins".split()
)
FLAGS = """
    keepdim requires_grad pin_memory copy unbiased descending stable largest sorted return_inverse return_counts
    out_int32 right increasing with_replacement training inplace log_target non_blocking upper left ceil_mode
    count_include_pad
""".split()
NUMBERS = "alpha beta eps q base negative_slope threshold lambd delta label_smoothing momentum rtol atol".split()
WORDS = "rounding_mode interpolation side indexing reduction approximate padding_mode reduce".split()

TYPES = {
    **dict.fromkeys(TENSORS, "Tensor"),
    **dict.fromkeys(TENSORS_OR_NONE, "Tensor | None"),
    **dict.fromkeys(INTEGERS, "_int"),
    **dict.fromkeys(FLAGS, "_bool"),
    **dict.fromkeys(NUMBERS, "_float"),
    **dict.fromkeys(WORDS, "str | None"),
    "other": "Tensor | _Number",
    "value": "Tensor | _Number",
    "fill_value": "_Number",
    "min": "Tensor | _Number | None",
    "max": "Tensor | _Number | None",
    "exponent": "Tensor | _Number",
    "dim": "_Dims | None",
    "dims": "Any",
    "size": "Any",
    "shape": "Any",
    "stride": "Any",
    "tensors": "Any",
    "dtype": "_dtype | None",
    "device": "_device | str | _int | None",
    "layout": "_layout | None",
    "memory_format": "_memory_format | None",
    "correction": "_float | None",
    "p": "_float | str | None",
    "ndarray": "numpy.ndarray[Any, Any]",
    "descending": "_bool",
    "step": "_int",
}

IN_FUNCTIONS = {
    ("where", "input"): "Tensor | _Number | None",
    ("select", "index"): "_int",
    ("binary_cross_entropy_with_logits", "reduction"): "_int",
    ("ctc_loss", "reduction"): "_int",
}
"""Parameters with another meaning in one function."""

BOOL = """
    equal allclose is_tensor is_nonzero is_floating_point is_complex is_same_size is_storage is_conj is_neg is_signed
    is_inference can_cast
""".split()
TUPLES = """
    unbind split split_with_sizes chunk tensor_split hsplit vsplit dsplit broadcast_tensors meshgrid unsafe_split
    unsafe_chunk max_dim min_dim var_mean std_mean sort topk kthvalue mode aminmax cummax cummin slogdet
    atleast_tensors
""".split()
EITHER = "max min median nanmedian unique unique_consecutive nonzero where".split()

RETURNS = {
    **dict.fromkeys(BOOL, "_bool"),
    **dict.fromkeys(TUPLES, "tuple[Tensor, ...]"),
    **dict.fromkeys(EITHER, "Any"),
    "broadcast_shapes": "Size",
    "numel": "_int",
    "backward": "None",
    "retain_grad": "None",
    "__setitem__": "None",
    "register_hook": "_RemovableHandle",
    "register_post_accumulate_grad_hook": "_RemovableHandle",
    "retains_grad": "_bool",
    "_backward_hooks": "Any",
    "_fused_update": "_bool",
    "_count_steps": "list[_float]",
}

OVERLOADED = {
    "type": [
        "    @overload",
        "    def type(self, dtype: None = None, non_blocking: _bool = False) -> str: ...",
        "    @overload",
        "    def type(self, dtype: _dtype | str, non_blocking: _bool = False) -> Tensor: ...",
    ],
    "as_subclass": ["    def as_subclass(self, cls: _type[_T]) -> _T: ..."],
}

UNARY = "__abs__ __invert__ __neg__ __pos__".split()
DUNDERS = {
    **dict.fromkeys(UNARY, "self"),
    "__getitem__": "self, key: _Index | tuple[_Index, ...]",
    "__setitem__": "self, key: _Index | tuple[_Index, ...], value: Tensor | _Number",
}
BINARY = "self, other: Tensor | _Number"

EMPTY = inspect.Parameter.empty
_OF_DEFAULT: dict[type, str] = {bool: "_bool", int: "_int", float: "_float"}


def parameters_of(function: Any) -> list[inspect.Parameter]:
    """The parameters of a public function, tensors first, annotated by their names."""
    operator: Operator | None = getattr(function, "operator", None)
    found = _declared(operator) if operator is not None else _written(function)
    return [
        parameter.replace(
            annotation=IN_FUNCTIONS.get((function.__name__, parameter.name)) or _annotation(parameter, operator)
        )
        for parameter in found
    ]


def _declared(operator: Operator) -> list[inspect.Parameter]:
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY
            if name in operator.keyword_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=operator.defaults.get(name, EMPTY),
        )
        for name in operator.names
    ]
    if operator.out:
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return parameters


def _written(function: Any) -> list[inspect.Parameter]:
    """The parameters of a hand-written function; its `**names` are NumPy's names for the others."""
    parameters = list(inspect.signature(function).parameters.values())
    return [parameter for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD]


def _annotation(parameter: inspect.Parameter, operator: Operator | None) -> str:
    kind = operator.kinds.get(parameter.name) if operator is not None else None
    known = TYPES.get(parameter.name, "Any")
    if kind == ARRAYS:
        return "Sequence[Tensor]"
    if kind in (ARRAY, OPTIONAL_ARRAY) and known in ("Any", "Tensor"):
        known = "Tensor | None" if kind == OPTIONAL_ARRAY else "Tensor"
    if known in _OF_DEFAULT.values():
        known = _OF_DEFAULT.get(type(parameter.default), known) if known != "_float" else known
    if parameter.default is None and "None" not in known and known != "Any":
        known += " | None"
    return known


def signature(function: Any, first: str, with_out: bool) -> str:
    """The text between the parentheses; the first parameter is called `first` if it is the tensor."""
    parts, keyword_only = [], False
    for number, parameter in enumerate(parameters_of(function)):
        name, annotation = parameter.name, parameter.annotation
        if name == "out" and not with_out:
            continue
        if number == 0 and name in ("self", "input"):
            parts.append("self" if first == "self" else f"{first}: Tensor")
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"*{name}: Any")
            keyword_only = True
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        parts.append(
            f"{name}: {annotation}" + ("" if parameter.default is EMPTY else f" = {_default(parameter.default)}")
        )
    return ", ".join(parts)


def _default(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else "..."


def functions(namespace: str) -> Iterator[str]:
    """One line for each public function of this namespace."""
    for name, function in sorted(PUBLIC[namespace].items()):
        yield f"class {name}(Tensor): ..." if inspect.isclass(function) else line_of(name, function)


def line_of(name: str, function: Any) -> str:
    """The types of a function of tensors."""
    parameters = signature(function, "input", with_out=not name.endswith("_"))
    return f"def {name}({parameters}) -> {RETURNS.get(name.rstrip('_'), 'Tensor')}: ..."


def methods() -> Iterator[str]:
    """One line or two for each method and property that operators install on `Tensor`."""
    for name, member in sorted(vars(adjoint.Tensor).items()):
        getter = member.fget if isinstance(member, property) else member
        if not getattr(getter, "__module__", "").startswith(("adjoint.operators", "adjoint.autograd")):
            continue
        if name in OVERLOADED:
            yield from OVERLOADED[name]
        elif isinstance(member, property):
            yield "    @property"
            yield f"    def {name}(self) -> {RETURNS.get(name, 'Tensor')}: ..."
        elif name.startswith("__"):
            ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            yield f"    def {name}({DUNDERS.get(name, BINARY)}) -> {RETURNS.get(name, 'Tensor')}: ...{ignored}"
        else:
            parameters = signature(member, "self", with_out=False)
            yield f"    def {name}({parameters}) -> {RETURNS.get(name.rstrip('_'), 'Tensor')}: ..."


def exports(package: ModuleType) -> Iterator[str]:
    """The exports of a package: the names it imports, and the names it defines, most of which are operators."""
    for statement in ast.parse(inspect.getsource(package)).body:
        if isinstance(statement, ast.ImportFrom):
            source = package.__name__ if statement.level else ""
            source = ".".join(part for part in (source, statement.module) if part)
            names = ", ".join(f"{alias.name} as {alias.asname or alias.name}" for alias in statement.names)
            yield f"from {source} import {names}"
        elif isinstance(statement, ast.Assign):
            name, value = ast.unparse(statement.targets[0]).lstrip("("), ast.unparse(statement.value)
            if name.startswith("_"):
                continue
            if not value.startswith("operators."):
                yield f"{name}: {'None' if value == 'None' else type(getattr(package, name)).__name__}"
            elif name in PUBLIC["torch"]:
                yield f"from adjoint import {name} as {name}"
            else:
                yield line_of(name, getattr(package, name))


def late_exports() -> Iterator[str]:
    """The further exports of `adjoint`: names that are imported on first use."""
    yield f"from adjoint import {', '.join(f'{name} as {name}' for name in adjoint._MODULES)}"
    for module, names in groupby(sorted(adjoint._PLACES, key=adjoint._PLACES.get), adjoint._PLACES.get):
        yield f"from adjoint.{module} import {', '.join(f'{name} as {name}' for name in names)}"


def headed(lines: list[str]) -> str:
    """The text of a file: its lines, after imports of the names that they use."""
    body = "\n".join([*lines, ""])
    aliases = [f"{name}: TypeAlias = {text}" for name, text in ALIASES.items() if is_in(name, body)]
    used = "\n".join([*aliases, "", body])
    imports = []
    for source, names in groupby((name for name in SOURCES if is_in(name, used)), SOURCES.get):
        written = [f"{name[1:]} as {name}" if name.startswith("_") else name for name in names]
        imports.append(f"from {source} import {', '.join(written)}" if source else f"import {written[0]}")
    return "\n".join([HEAD, *imports, "", used])


def is_in(name: str, text: str) -> bool:
    """Whether a text uses a name, and does not export it."""
    return re.search(rf"(?<![\w.]){name}\b", text) is not None and f"{name} as {name}" not in text


def stubs() -> dict[Path, str]:
    """The whole text of each file."""
    load_all()
    files = {
        "__init__.pyi": [*exports(adjoint), *late_exports(), *functions("torch")],
        "nn/functional/__init__.pyi": [*exports(adjoint.nn.functional)],
        "operators/__init__.pyi": [OF_OPERATORS, *methods()],
        "linalg.pyi": [OF_LINALG, *functions("linalg")],
        "fft.pyi": [*functions("fft")],
        "special.pyi": [*functions("special")],
        "sparse.pyi": [OF_SPARSE, *functions("sparse")],
    }
    return {PACKAGE / name: headed(lines) for name, lines in files.items()}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
