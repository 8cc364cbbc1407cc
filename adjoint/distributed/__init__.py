"""`torch.distributed`: there is one process. Programs that ask whether it is available find that it is not."""

from __future__ import annotations

from ..absent import absent

_ONE = "there is one process; ask torch.distributed.is_available() first"


def is_available() -> bool:
    """Whether processes can work together; never."""
    return False


def is_initialized() -> bool:
    """Whether processes work together; never."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether this process was started by torchelastic; never."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_available

for _name in """
    DistributedDataParallel DeviceMesh ProcessGroup ReduceOp Store TCPStore FileStore HashStore Work P2POp Backend
    all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier batch_isend_irecv
    broadcast broadcast_object_list destroy_process_group gather gather_object get_backend get_global_rank get_group_rank
    get_process_group_ranks get_rank get_world_size init_device_mesh init_process_group irecv isend monitored_barrier
    new_group recv reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send
""".split():
    globals()[_name] = absent(f"torch.distributed.{_name}", _ONE)


class group:
    """The groups of processes: there is none."""

    WORLD = None


GroupMember = group
