"""`torch.nn`: modules and what they are made of; names, no logic."""

from . import functional, init, utils
from .modules import *
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
