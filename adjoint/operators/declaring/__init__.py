"""Declarations of several operators at once: functions that choose between operators, reductions, operators with derivatives."""
