"""`torch.nn`: modules and what they are made of; names, no logic."""

from . import functional, init, utils
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter
