"""`torch.nn`: modules, parameters, and the functions they call; names, no logic."""

from . import functional, init, utils
from .modules import *
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
