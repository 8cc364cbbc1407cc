"""`torch.distributed.checkpoint`: each rank writes its part of a state; any number of ranks reads it."""

from .files import load as load
from .files import save as save
from .state_dict import get_model_state_dict as get_model_state_dict
from .state_dict import get_optimizer_state_dict as get_optimizer_state_dict
from .state_dict import get_state_dict as get_state_dict
from .state_dict import set_state_dict as set_state_dict
