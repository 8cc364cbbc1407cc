"""What holds for all tests: a property test may take its time, as it does on a machine that does other things too."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
