"""The package `torch` of child processes of `adjoint run`. It replaces itself by adjoint."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _adjoint() -> ModuleType:
    """Import the adjoint package to which this folder belongs, regardless of its location."""
    there = Path(__file__).parents[4] / "__init__.py"
    name = "adjoint"
    if name not in sys.modules:
        spec = spec_from_file_location(name, there, submodule_search_locations=[str(there.parent)])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


del sys.modules["torch"]
_adjoint().install_as_torch()
