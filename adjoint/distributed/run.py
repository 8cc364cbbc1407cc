"""`python -m torch.distributed.run` starts a program in several processes: options of `torchrun` for `adjoint launch`."""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Sequence

from .launcher import LaunchError, launch

_WITHOUT_EFFECT = (
    "rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method role local-addr"
)
"""Options of PyTorch that have no effect: MPI connects the processes, and failed processes are not started again."""


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Run a program in several processes, as `adjoint launch` does.")

    def add(name: str, default: str | None = None, text: str = "no effect") -> None:
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", default=default, help=text)

    add("nnodes", "1", "1; `adjoint launch --hosts` starts a program on several machines")
    add("nproc-per-node", "1", "how many processes: a number, or `auto` or `cpu` for one on each processor")
    add("node-rank", "0", "0, as there is one machine")
    add("master-addr", None, "the value of MASTER_ADDR")
    add("master-port", None, "the value of MASTER_PORT; by default a free port")
    for name in _WITHOUT_EFFECT.split():
        add(name)
    parser.add_argument("--standalone", action="store_true", help="no effect")
    parser.add_argument("-m", "--module", action="store_true", help="run a module instead of a script")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Run the program, and exit with the status of the first process that fails.

    Raises:
        ValueError: if more than one machine is requested, or if the number of processes is not a number.
    """
    if args.nnodes not in ("1", "1:1") or args.node_rank != "0":
        raise ValueError("torch.distributed.run starts processes on one machine. Use `adjoint launch --hosts FILE`.")
    every = args.nproc_per_node in ("auto", "cpu")
    if not every and not args.nproc_per_node.isdecimal():
        raise ValueError(f"Unsupported nproc_per_node value: {args.nproc_per_node}")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        value = getattr(args, name.lower())
        if value is not None:
            os.environ[name] = value
    os.environ |= {"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "0"}
    os.environ |= {"TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RUN_ID": args.rdzv_id or str(uuid.uuid4())}
    program = [*["-m"][: args.module], args.training_script, *args.training_script_args]
    try:
        status = launch(None if every else int(args.nproc_per_node), None, program)
    except LaunchError as error:
        sys.exit(f"torch.distributed.run: {error}")
    if status:
        sys.exit(status)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
