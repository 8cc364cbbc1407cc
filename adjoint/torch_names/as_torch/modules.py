"""Modules under PyTorch's names: the import of `torch.x.y`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from linecache import getlines
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from adjoint._runtime.places import OWN, THEIRS, SameModule

TESTS = "torch.testing._internal"
"""The helper modules of PyTorch's tests.

This package does not contain them. It looks for a copy in the folders of `sys.path`.
"""

_MACHINERY = f"{__package__}.machinery"
"""Modules that these helper modules import. They are imported together."""


MODULES = frozenset(
    """
    _C._autograd _C._distributed_c10d _C._profiler _awaits _custom_op _decomp _dispatch _dynamo.test_case
    _dynamo.testing _export _functorch.aot_autograd _functorch.compile _functorch.compilers _functorch.config
    _functorch.predispatch _functorch.pyfunctorch _functorch.utils _guards _higher_order_ops _inductor _inductor.exc
    _inductor.utils _jit_internal _lazy _library.autograd _library.fake_class_registry _library.fake_profile
    _library.infer_schema _library.simple_registry _library.utils _logging._internal _logging.scribe
    _meta_registrations _native _numpy _prims _prims_common _refs _refs._conversions _refs.fft _refs.linalg
    _refs.nn.functional _refs.special _streambase _subclasses.fake_utils _subclasses.functional_tensor
    _subclasses.meta_utils _subclasses.schema_check_mode _torch_docs _utils_internal _vendor _vendor.packaging.version
    _weights_only_unpickler ao.nn ao.nn.qat.modules ao.nn.quantizable.modules ao.nn.quantized.modules ao.ns ao.pruning
    ao.quantization.quantization_mappings ao.quantization.quantize_fx autograd.profiler_legacy backends._nnapi
    compiler.config cuda.jiterator cuda.nccl distributed._composable distributed._functional_collectives
    distributed._local_tensor distributed.tensor distributed.tensor.parallel fx.experimental._config fx.passes
    jit._logging jit._recursive jit.frontend jit.mobile jit.quantized masked.maskedtensor.binary
    masked.maskedtensor.reductions masked.maskedtensor.unary monitor nested nn.intrinsic nn.parallel._functions nn.qat
    nn.quantizable nn.quantized nn.utils._expanded_weights onnx.symbolic_opset9 optim._multi_tensor package
    profiler._pattern_matcher profiler._utils testing._utils utils._config_module utils._content_store utils._helion
    utils._ordered_set utils._pallas utils._traceback utils._triton utils._typing_utils utils._zip utils.cpp_extension
    utils.data.datapipes utils.data.graph_settings utils.mkldnn utils.rename_privateuse1_backend
    """.split()
)
"""Private PyTorch modules that PyTorch's tests import, and that have no counterpart here. All their submodules exist too."""


class Finder(MetaPathFinder):
    """A finder for `torch.x.y`, which is `adjoint.x.y`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module with PyTorch's name. All other modules are left to other finders."""
        first, _, rest = name.partition(".")
        if not rest:
            return None
        if first == OWN and _may_stand_in(rest) and PathFinder.find_spec(name, path, target) is None:
            if _MACHINERY in sys.modules or _is_imported_by_a_test():
                return ModuleSpec(name, import_module(_MACHINERY).StandIn(), is_package=True)
            return None
        if first != THEIRS:
            return None
        found = _spec_of(f"{OWN}.{rest}")
        if found is None and name == TESTS:
            import_module(_MACHINERY).extend()
            return PathFinder.find_spec(name, [str(Path(folder, THEIRS, "testing")) for folder in sys.path], target)
        return None if found is None else ModuleSpec(name, _SameModule(found.name), origin=found.origin)


def _may_stand_in(name: str) -> bool:
    """Return whether a stand-in may replace the module `x.y`."""
    parts = name.split(".")
    return any(".".join(parts[: count + 1]) in MODULES for count in range(len(parts)))


def _is_imported_by_a_test() -> bool:
    """Return whether the importing file contains an import of PyTorch's test helpers."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        "importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__
    ):
        frame = frame.f_back
    return any(TESTS in line for line in getlines(frame.f_code.co_filename))


def _spec_of(name: str) -> ModuleSpec | None:
    """Return the specification of a module, or None if there is no such module."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # the package that would contain it is missing
        return None
    except ValueError:  # a module that was put together, without a specification
        return ModuleSpec(name, None)


class _SameModule(SameModule, Loader):
    """A loader for `torch.x.y`, which is `adjoint.x.y`."""

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the module, to run it as a program, or None if it has no file."""
        spec = _spec_of(self.own)
        loader: Any = spec and spec.loader
        return loader.get_code(self.own) if hasattr(loader, "get_code") else None
