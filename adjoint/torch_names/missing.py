"""The names that PyTorch has and this package lacks, with reasons. Errors and docs/compatibility.md use them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from adjoint._runtime.absent import TABLE, absent
from adjoint.aten.schemas import packets

AHEAD = "there is no ahead-of-time compiler"
MACHINERY = "it belongs to TorchScript or to PyTorch's own machinery"

REASONS = (
    (
        r"torch\.utils\.collect_env\b.*",
        "use `torch.utils.collect_env.get_pretty_env_info`; the other functions query GPU drivers and package managers",
    ),
    (
        r"torch\.package\b.*",
        "models are saved without their source code; use `torch.save`, and put the code into a wheel",
    ),
    (
        r"torch\.monitor\b.*",
        "events are not counted; use `torch.profiler` or `torch.utils.tensorboard`",
    ),
    (r"torch\.(cuda|mps|mtia|xpu|accelerator)\b.*", "there is only the CPU"),
    (
        r"torch\.(Stream|Event|StreamObjType|DeviceObjType|get_device_module)",
        "there is only the CPU",
    ),
    (r"torch\.(cudnn|miopen|mkldnn|fbgemm|_cudnn)\w*", "it names a library that is not used"),
    (
        r"torch\.batch_norm_(stats|elemt|gather_stats\w*|backward_\w+|update_stats)",
        "PyTorch supports most of these functions on GPUs only; use `torch.nn.functional.batch_norm`",
    ),
    (r"torch\.profiler_allow_\w+", "there is only the CPU"),
    (r"torch\.(init_num_threads|prepare_multiprocessing_environment)", "processes need no preparation"),
    (r"torch\.embedding_bag", "it is an internal function; use `torch.nn.functional.embedding_bag`"),
    (r"torch\.(ao\.)?quantization\b.*", "there are no quantized tensors"),
    (
        (
            r"torch\.(Tensor\.)?(q_\w+|qscheme|quantiz\w*|dequantize|int_repr|fused_moving\w*|empty_quant\w*|"
            r"per_(channel|tensor)\w*|quint\w+|qint\w+|choose_qparams\w*|QU?Int\w+)"
        ),
        "there are no quantized tensors",
    ),
    (r"torch\.nested\b.*", "there are no nested tensors"),
    (
        r"torch\.export\.(?!export|save|load|ExportedProgram).*",
        "an exported graph has no functional form, and its module has no parts; use `run_decompositions` and `module`",
    ),
    (
        (
            r"torch\.(\w+Type|Script\w+|LiteScript\w+|CompilationUnit|Graph\w*|Node|Block|Value|Use|Gradient|Code|Argument\w*|"
            r"FunctionSchema|AliasDb|IODescriptor|TracingState|parse_\w+|merge_type\w*|unify_type_list|import_ir\w*|JITException|"
            r"ErrorReport|StaticModule|CallStack|Capsule|ConcreteModule\w+|OperatorInfo|Execution\w+|Bench\w+|"
            r"ThroughputBenchmark|Complete\w+|DeepCopyMemo\w+|\w+StorageContext|PyTorchFile\w+|get_file_path|Logg\w+|"
            r"NoopLogger|LockingLogger|AggregationType|AVG|SUM|Type|PRIVATE_OPS|fork|wait|Tag|Dispatch\w+|ExcludeDispatch\w+|"
            r"FatalError)"
        ),
        MACHINERY,
    ),
    (
        r"torch\.(Sym\w+|sym_\w+|cond|while_loop|compiled_with_cxx11_abi|\w*autocast_(ipu|xla)\w*|is_\w*(vulkan|ipu|xla)\w*)",
        AHEAD,
    ),
    (
        r"torch\.sparse\.(semi_structured\b.*|\w*(S|s)emi(S|_s)tructured\w*)",
        "PyTorch supports these names on GPUs only",
    ),
    (r"torch\.sparse\.(sp)?solve", "PyTorch needs a GPU library for it"),
    (r"torch\.\w*(indices|values)_copy", "parts of sparse tensors are not views; use `clone()`"),
    (r"torch\.(Tensor\.)?(eig|symeig|lstsq|solve|matrix_rank)", "it is an error in PyTorch too; use `torch.linalg`"),
    (r"torch\.(\w+Storage|Storage\w*)", "NumPy arrays own the memory; use `Tensor.untyped_storage()`"),
    (r"torch\.(backends|mkl|classes|cpp|ops)\b.*", "it concerns a library that is not used"),
)
"""Patterns of full names, and the reason why the matching names are missing."""

OTHERWISE = "it has not been written yet"


def names_in(path: Path) -> dict[str, frozenset[str]]:
    """Return the names in PyTorch's modules and in two classes, from a file with one module per line."""
    parts = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    found = {module: frozenset(names.split()) for module, _, names in parts}
    return {**found, "torch.ops.aten": found["torch.ops.aten"] | packets()}


@cache
def missing_names() -> dict[str, frozenset[str]]:
    """Return the public names that PyTorch has and this package lacks. For `torch.ops.aten`, return all names in PyTorch."""
    return names_in(Path(__file__).parent / "missing_names.txt")


def reason(name: str, more: tuple[tuple[str, str], ...] = ()) -> str:
    """Return why a PyTorch name is missing. The name is a full name. `more`: patterns that take precedence over `REASONS`."""
    return next((why for pattern, why in (*more, *REASONS) if re.fullmatch(pattern, name)), OTHERWISE)


def stand_in(module: str, name: str, everything: bool = False) -> Any:
    """Return a class in place of a missing class of one of PyTorch's modules.

    Programs use such classes in annotations, in `isinstance` and as base classes during their import.

    Args:
        module: the name of the module.
        name: the name in the module.
        everything: whether all public names have a stand-in. By default only quantization schemes and classes have it.

    Raises:
        AttributeError: if there is no stand-in. The error says whether PyTorch has the name, and why it is missing
            here.
    """
    theirs = f"torch{module.removeprefix('adjoint')}" if module.startswith("adjoint") else module
    full = f"{theirs}.{name}"
    if name not in missing_names().get(theirs, ()):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    why = reason(full)
    if everything or name[0].isupper() or name.startswith("per_"):
        return absent(full, why)
    raise AttributeError(
        f"module {module!r} has no attribute {name!r}: PyTorch has it, adjoint has not, because {why}. {TABLE}"
    )
