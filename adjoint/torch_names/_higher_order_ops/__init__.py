"""Control flow as functions, which run as ordinary Python: `cond`, `while_loop`, `map`, `scan`, `associative_scan`."""

from adjoint._runtime.first_use import further_names

from . import control_flow
from .control_flow import associative_scan, cond, map, scan, while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

further_names(__name__, dict.fromkeys(__all__, control_flow))
