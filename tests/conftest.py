"""What holds for all property tests: they may take their time, as they do on a machine that does other things too, and try the
same examples each time. `pytest --hypothesis-profile=searching` tries others.
"""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable")
