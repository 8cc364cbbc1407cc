"""`torch.nn`: modules and what they are made of; names, no logic."""

from . import functional as functional
from . import init as init
from . import utils as utils
from .modules import *
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
