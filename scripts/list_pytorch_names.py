"""Write `scripts/pytorch_names.txt`: the public names of PyTorch's modules after `import torch`.

Run `python scripts/list_pytorch_names.py` with the version of PyTorch to list. Then run
`scripts/write_compatibility.py`.
"""

from __future__ import annotations

import importlib
import re
import types
import warnings
from pathlib import Path

import torch
from list_aten_schemas import ELSEWHERE, OF_TENSORS

from adjoint.aten.schemas import packets

INTERNAL = re.compile(
    r"_(sparse|philox|cast_|validate|make_|has_|no_grad|wrapped|sp|list_to|tensor_to|efficientzero|foobar|ncf|propagate|lazy_clone|"
    r"saturate|use_|fill_mem|copy_from|assert|functional_|histogramdd|to_|values|indices|linalg_check|compute_|dim|resize_output)"
)
"""Operators that only PyTorch's own functions call."""

TARGET = Path(__file__).with_name("pytorch_names.txt")

MODULES = """
    torch torch.Tensor torch.nn torch.nn.Module torch.nn.functional torch.nn.init torch.nn.parameter torch.nn.attention
    torch.nn.attention.flex_attention torch.nn.parallel torch.nn.utils torch.nn.utils.parametrizations
    torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.nn.utils.stateless torch.optim
    torch.optim.lr_scheduler torch.optim.swa_utils torch.autograd torch.autograd.forward_ad torch.autograd.function
    torch.autograd.functional torch.autograd.grad_mode torch.autograd.graph torch.autograd.profiler torch.func
    torch.linalg torch.fft torch.special torch.signal.windows torch.masked torch.sparse torch.nested torch.distributions
    torch.distributions.constraints torch.distributions.kl torch.distributions.transforms torch.amp torch.cpu torch.cpu.amp
    torch.cuda torch.cuda.amp torch.mps torch.mtia torch.xpu torch.accelerator torch.backends torch.backends.cpu
    torch.backends.cuda torch.backends.cudnn torch.backends.mkl torch.backends.mkldnn torch.backends.mps
    torch.backends.nnpack torch.backends.openmp torch.backends.opt_einsum torch.backends.quantized torch.compiler
    torch.jit torch.fx torch.export torch.onnx torch.library torch.ops torch.overrides torch.hub torch.random
    torch.serialization torch.storage torch.multiprocessing torch.futures torch.distributed torch.package
    torch.profiler torch.testing torch.types torch.monitor torch.quasirandom torch.torch_version torch.utils
    torch.utils.benchmark torch.utils.checkpoint torch.utils.data torch.utils.data.distributed torch.utils.dlpack
    torch.utils.flop_counter torch.utils.hooks torch.utils.model_zoo torch.utils.tensorboard torch.ao.quantization
    torch.quantization torch.version torch.__config__ torch.__future__
""".split()
"""The listed modules and classes. In a module without `__all__`, a name counts if PyTorch defines it."""


def object_at(name: str) -> object:
    """Return a module, or a class in a module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)


def is_own(name: str, value: object) -> bool:
    """Return whether a name of a module is intended for users."""
    if name.startswith("_"):
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch.") and value.__name__.rpartition(".")[2] == name
    module = getattr(value, "__module__", None)
    return module is None or not isinstance(module, str) or module.startswith("torch") or module == "builtins"


def public_names(owner: object) -> list[str]:
    """Return the public names of a module or a class."""
    if isinstance(owner, type):
        return sorted(name for name in dir(owner) if not name.startswith("_"))
    listed = getattr(owner, "__all__", None)
    if listed is not None and owner is not torch:
        return sorted({name for name in listed if not name.startswith("_")})
    found = {name for name in dir(owner) if is_own(name, getattr(owner, name, None))}
    if owner is torch:  # names for annotations, and classes of TorchScript
        of_the_binding = {name for name in found if getattr(getattr(torch, name), "__module__", "") == "torch._C"}
        found -= {name for name in of_the_binding if name not in torch.__all__} | {"torch"}
    return sorted(found)


def main() -> None:
    """Write the file."""
    warnings.simplefilter("ignore")
    lines = [f"PyTorch {torch.__version__.partition('+')[0]}"]
    for name in MODULES:
        try:
            owner = object_at(name)
        except (ImportError, AttributeError):
            continue
        lines.append(f"{name}: {' '.join(public_names(owner))}")
    schemas = torch._C._jit_get_all_schemas()
    aten = {
        each.name.removeprefix("aten::")
        for each in schemas
        if each.name.startswith("aten::") and OF_TENSORS.search(str(each))
    }
    aten = {
        name for name in aten if "_attention" in name or not (ELSEWHERE.match(name.lstrip("_")) or INTERNAL.match(name))
    }
    aten -= packets()  # `schemas.txt` contains these operators
    lines.append(f"torch.ops.aten: {' '.join(sorted(name for name in aten if name.isidentifier()))}")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
