"""What holds for all tests.

Property tests may take their time, as they do on a machine that does other things too, and try the same examples each time;
`pytest --hypothesis-profile=searching` tries others.
"""

import gc

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable")


def pytest_collection_finish():
    """The tests themselves are no garbage: the collector, which many tests call, need not look at them each time."""
    gc.collect()
    gc.freeze()
    gc.collect()  # which then knows that few objects are left, and comes by itself as often as for so few
