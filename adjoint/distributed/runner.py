"""The program that `adjoint launch` runs in each process: `runner (SCRIPT | -m MODULE) [ARGUMENT ...]`.

It sets the variables that tell programs their rank, and then runs the program like `adjoint run`. An uncaught
exception, or an exit status other than 0, ends all processes, as in mpi4py's runner. Otherwise the other processes
would wait for this process.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import NoReturn

from ..torch_names.as_torch.programs import ProgramNotFoundError, run_module, run_script
from .groups import end_all, show_error, tell_launcher

RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
LOCAL_RANK = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")
LOCAL_SIZE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")


def set_variables() -> None:
    """Set the variables of `torchrun` from the variables of MPI's launcher."""
    for name, sources in (
        ("RANK", RANK),
        ("WORLD_SIZE", SIZE),
        ("LOCAL_RANK", LOCAL_RANK),
        ("LOCAL_WORLD_SIZE", LOCAL_SIZE),
    ):
        found = next((os.environ[source] for source in sources if source in os.environ), None)
        if found is not None:
            os.environ[name] = found


def _report_exits() -> None:
    """Make `os._exit` inform the launcher. The launcher can then conclude that an unreported status is a signal."""
    own, leave = os.getpid(), os._exit

    def report_and_exit(status: int) -> NoReturn:
        if status and os.getpid() == own:
            tell_launcher(status)
        leave(status)

    os._exit = report_and_exit


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    show_error(error, int(os.environ.get("RANK", "0")))


def main(arguments: list[str]) -> NoReturn:
    """Run the program in the arguments, and end with its exit status."""
    set_variables()
    _report_exits()
    sys.excepthook = _show
    status = 0
    arguments = [each.replace("${local_rank}", os.environ.get("LOCAL_RANK", "0")) for each in arguments]
    try:
        if arguments[0] == "-m":
            run_module(*arguments[1:])
        else:
            run_script(*arguments)
    except ProgramNotFoundError as error:
        print(f"adjoint: {error}", file=sys.stderr)
        status = 2
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException as error:  # noqa: BLE001  (whatever the program has not caught)
        sys.excepthook(type(error), error, error.__traceback__)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    if status:
        end_all(status)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
