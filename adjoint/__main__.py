"""The command `adjoint` (or `python -m adjoint`): `run SCRIPT`, `launch SCRIPT`, `graph SCRIPT`, `info`, `--version`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ._version import __version__

SUFFIXES = ".html, .svg, .png, .dot, .json, .mmd, .txt"


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command = argparse.ArgumentParser(prog="adjoint", description="Automatic differentiation: look into it.")
    command.add_argument("--version", action="version", version=f"adjoint {__version__}")
    parts = command.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = parts.add_parser(
        "run",
        usage="adjoint run [-h] (SCRIPT | -m MODULE) [ARGUMENT ...]",
        help="run a program written for PyTorch",
        description="Run SCRIPT, or a module, as `python SCRIPT ARGUMENT ...` would; in it, `import torch` imports adjoint.",
    )
    run.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module, such as pytest"
    )
    run.add_argument("script", nargs="?", metavar="SCRIPT")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="for the program")
    launch = parts.add_parser(
        "launch",
        usage="adjoint launch [-h] [-n N] [--hosts FILE] (SCRIPT | -m MODULE) [ARGUMENT ...]",
        help="run a program in several processes, on MPI",
        description="Run SCRIPT, or a module, in N processes, each as `adjoint run` does. RANK, WORLD_SIZE, LOCAL_RANK, "
        "MASTER_ADDR and MASTER_PORT are set. When one process fails, all end; the exit status is that of the first that fails.",
    )
    launch.add_argument("-n", type=int, dest="count", metavar="N", help="how many; by default one for each processor")
    launch.add_argument("--hosts", metavar="FILE", help="a file that names a machine on each line")
    launch.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module, such as pytest"
    )
    launch.add_argument("script", nargs="?", metavar="SCRIPT")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="for the program")
    graph = parts.add_parser(
        "graph",
        help="run a script and show the graph of its last backward",
        description="Run SCRIPT as `python SCRIPT ARGUMENT ...` would, and show the graph of its last backward.",
    )
    graph.add_argument(
        "-o", "--output", metavar="FILE", help=f"write to FILE ({SUFFIXES}) instead of opening a browser"
    )
    graph.add_argument("--trace", action="store_true", help="note the steps of backward too; the page plays them")
    graph.add_argument("script", metavar="SCRIPT")
    graph.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="for the script")
    parts.add_parser("info", help="show versions, BLAS, threads and which optional packages are installed")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`; return the exit code."""
    command = parser()
    wanted = command.parse_args(arguments)
    if wanted.command == "info":
        return info()
    if wanted.command == "graph":
        return graph(wanted)
    if not (wanted.module or wanted.script):
        command.error(f"{wanted.command}: which program? Give SCRIPT or -m MODULE")
    return launch(wanted) if wanted.command == "launch" else run(wanted)


def run(wanted: argparse.Namespace) -> int:
    """Run a program in which `torch` is this package; return once it has ended without an error."""
    from .as_torch.programs import ProgramNotFoundError, run_module, run_script

    try:
        if wanted.module:
            run_module(*wanted.module)
        else:
            run_script(wanted.script, *wanted.arguments)
    except ProgramNotFoundError as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return 2
    return 0


def launch(wanted: argparse.Namespace) -> int:
    """Run a program in several processes; return the exit status of the first that fails, or 0."""
    from .distributed.launch import LaunchError
    from .distributed.launch import launch as start

    program = ["-m", *wanted.module] if wanted.module else [wanted.script, *wanted.arguments]
    try:
        return start(wanted.count, wanted.hosts, program)
    except LaunchError as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return 2


def info() -> int:
    """Print what is installed."""
    from .inspect.installation import installation

    found = installation()
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:{width}}  {value}")
    return 0


def graph(wanted: argparse.Namespace) -> int:
    """Run a script, and save or open the graph of its last backward."""
    from .inspect.drawing import form_of
    from .inspect.script import exit_code, run_script, traceback_of

    if not Path(wanted.script).is_file():
        print(f"adjoint: {wanted.script}: no such file", file=sys.stderr)
        return 2
    try:
        form_of(wanted.output or "graph.html")
    except ValueError as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return 2
    kept = run_script(wanted.script, wanted.arguments, wanted.trace)
    code = exit_code(kept.error)
    if kept.error is not None and not isinstance(kept.error, SystemExit):
        sys.stderr.write(traceback_of(kept.error, wanted.script))
    if kept.graph is None:
        print(f"adjoint: {wanted.script} has run no backward, so there is no graph to show", file=sys.stderr)
        return code or 1
    target = wanted.output or str(Path(tempfile.mkdtemp(prefix="adjoint-")) / "graph.html")
    try:
        path = kept.graph.save(target)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return code or 1
    which = "the only backward" if kept.count == 1 else f"the last of {kept.count} backwards"
    print(f"the graph of {which}: {path}", file=sys.stderr)
    if wanted.output is None:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
    return code


if __name__ == "__main__":
    sys.exit(main())
