"""The order of recording: a number for each node, and between which numbers each call of a module lay.

`Module.__call__` notes its calls here and the graph's pictures read them, so that a picture knows the module that recorded
each node. A note costs about 50 ns. The latest notes are kept, without keeping any module alive.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

MOST_CALLS = 8192

sequence_numbers = count()

next_number = sequence_numbers.__next__

module_calls: deque[tuple[Any, int, int]] = deque(maxlen=MOST_CALLS)
"""Calls in the order in which they ended: a weak reference to the module, a number before its first node, and one after its last.

Calls that recorded nothing are not among them.
"""
