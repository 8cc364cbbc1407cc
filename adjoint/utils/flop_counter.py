"""`torch.utils.flop_counter`: operations are not counted here."""

from adjoint.absent import absent

__all__ = ["FlopCounterMode", "register_flop_formula"]

_INSTEAD = "use torch.profiler, which counts operators and their times"

FlopCounterMode = absent("torch.utils.flop_counter.FlopCounterMode", _INSTEAD)
register_flop_formula = absent("torch.utils.flop_counter.register_flop_formula", _INSTEAD)
