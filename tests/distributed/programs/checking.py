"""Run the functions `check_...` of a program one by one in all ranks, and print the names of the passed functions."""

import sys
from datetime import timedelta

import adjoint.distributed as dist


def run_checks(names):
    dist.init_process_group("mpi", timeout=timedelta(seconds=30))
    wanted = sys.argv[1:]
    for name, check in list(names.items()):
        if name.startswith("check_") and (not wanted or name in wanted):
            check(dist.get_rank(), dist.get_world_size())
            dist.barrier()
            if dist.get_rank() == 0:
                print("passed", name, flush=True)
    dist.destroy_process_group()
