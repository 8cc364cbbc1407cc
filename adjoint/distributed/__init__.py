"""`torch.distributed`: processes that communicate, on top of MPI.

This file contains names only. Everything is imported on first use.

`mpi` finds the MPI. `bootstrap` connects processes that no MPI launcher has started. `groups` forms groups of
processes. `collectives` contains the calls on tensors, `steps` their MPI requests, and `node_memory` the reductions in
shared memory. `messages` contains the calls between two ranks, `objects` the calls on Python objects, and `reductions`
the reduction operations. `work` waits for collectives, and reports missing ranks. `checks` compares calls between
ranks. `launch` starts processes. `stores` contains stores of shared values. `device_mesh` arranges processes in grids.
`tensor` divides tensors among processes. `records` records these calls in profiles.
"""

from __future__ import annotations

from typing import Any

from .._runtime.first_use import import_late, late_names

_PLACES = {
    name: module
    for module, names in {
        "groups": """
            Backend GroupMember ProcessGroup default_pg_timeout destroy_process_group get_backend get_backend_config
            get_global_rank get_group_rank get_node_local_rank get_pg_count get_process_group_ranks get_rank
            get_world_size group init_process_group is_backend_available is_initialized new_group new_subgroups
            new_subgroups_by_enumeration
        """,
        "mpi": "is_available",
        "collectives": """
            all_gather all_gather_coalesced all_gather_into_tensor all_gather_single all_reduce all_reduce_coalesced
            all_to_all all_to_all_single barrier broadcast gather reduce reduce_scatter reduce_scatter_single
            reduce_scatter_tensor scatter
        """,
        "messages": "P2POp batch_isend_irecv irecv isend recv send",
        "objects": """
            all_gather_object broadcast_object_list gather_object recv_object_list scatter_object_list
            send_object_list
        """,
        "monitored": "monitored_barrier",
        "reductions": "ReduceOp",
        "work": "Work",
        "checks": "DebugLevel get_debug_level set_debug_level set_debug_level_from_env",
        "errors": "DistBackendError DistError DistNetworkError DistStoreError QueueEmptyError",
        "distributed_c10d": "distributed_c10d",
        "buckets": "BuiltinCommHookType GradBucket",
        "device_mesh": "DeviceMesh init_device_mesh",
        "stores": "FileStore HashStore PrefixStore Store TCPStore",
        "bootstrap": "rendezvous",
        "tensor": "tensor",
        "nn": "nn",
        "algorithms": "algorithms",
        "elastic": "elastic",
        "optim": "optim",
        "fsdp": "fsdp",
        "checkpoint": "checkpoint",
    }.items()
    for name in names.split()
}
__all__ = sorted(_PLACES) + ["is_gloo_available", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched"]

_late = late_names(__name__, _PLACES)


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed."""
    return bool(_late("is_available")())


def is_nccl_available() -> bool:
    """Return whether NCCL is available. It is never available, because there are no GPUs."""
    return False


is_ucc_available = is_xccl_available = is_nccl_available
is_gloo_available = is_mpi_available  # each backend's name means MPI


def is_torchelastic_launched() -> bool:
    """Return whether `torchrun` has started this process."""
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


def __getattr__(name: str) -> Any:
    """Import the module of a name, and return the object. An unsupported name raises an error when it is used."""
    if name in _PLACES:
        return _late(name)
    if name in ("autograd", "device_mesh", "rpc"):
        return import_late(f"{__name__}.{name}")
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
