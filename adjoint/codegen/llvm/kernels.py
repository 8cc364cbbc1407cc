"""The names that a module of kernels needs: the language, the launcher, and the functions that plan calls."""

from __future__ import annotations

import functools as functools
import math as math
from collections.abc import Callable as Callable
from collections.abc import Sequence as Sequence
from typing import Any as Any

import numpy as numpy
from numpy import ndarray as ndarray

from ..plans import Memory as Memory
from ..plans import Plan as Plan
from ..plans import empty as empty
from ..plans import is_set as is_set
from ..plans import new_flag as new_flag
from ..plans import workspace as workspace
from ..plans import zeros as zeros
from ..recording import keeping as keeping
from ..recording import recordable as recordable
from ..recording import unchanged as unchanged
from .calls import NativeCall as NativeCall
from .calls import array_at as array_at
from .language import *
from .launch import launch as launch
from .launch import loops as loops  # type: ignore[no-redef]
from .vectors import first_lanes as first_lanes
