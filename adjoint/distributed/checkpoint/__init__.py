"""`torch.distributed.checkpoint`: each rank writes its part of a state, and any number of ranks can read it."""

from . import format_utils as format_utils
from . import metadata as metadata
from . import state_dict as state_dict
from .files import FileSystemReader as FileSystemReader
from .files import FileSystemWriter as FileSystemWriter
from .files import load as load
from .metadata import BytesStorageMetadata as BytesStorageMetadata
from .metadata import ChunkStorageMetadata as ChunkStorageMetadata
from .metadata import Metadata as Metadata
from .metadata import TensorStorageMetadata as TensorStorageMetadata
from .saving import CheckpointException as CheckpointException
from .saving import async_save as async_save
from .saving import save as save
from .state_dict import get_model_state_dict as get_model_state_dict
from .state_dict import get_optimizer_state_dict as get_optimizer_state_dict
from .state_dict import get_state_dict as get_state_dict
from .state_dict import set_state_dict as set_state_dict
