"""The command `adjoint` (or `python -m adjoint`): `run SCRIPT`, `launch SCRIPT`, `graph SCRIPT`, `info`, `--version`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .torch_names.version import __version__

SUFFIXES = ".html, .svg, .png, .dot, .json, .mmd, .txt"


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command = argparse.ArgumentParser(prog="adjoint", description="Automatic differentiation: look into it.")
    command.add_argument("--version", action="version", version=f"adjoint {__version__}")
    parts = command.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = parts.add_parser(
        "run",
        usage="adjoint run [-h] (SCRIPT | FOLDER | ZIP | -m MODULE | -c CODE) [ARGUMENT ...]",
        help="run a program written for PyTorch",
        description="Run SCRIPT, the __main__.py in a folder or a zip file, a module, or CODE, as `python` would; in it, "
        "`import torch` imports adjoint.",
    )
    run.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module, such as pytest"
    )
    run.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help="run a program in a string")
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
        usage="adjoint graph [-h] [-o FILE] [--trace] [--values] [--as-torch] SCRIPT [ARGUMENT ...]",
        description="Run SCRIPT as `python SCRIPT ARGUMENT ...` would, and show the graph of its last backward. Options may "
        "stand on either side of the script; what stands after `--` is for the script.",
        parents=[graph_options()],
    )
    graph.add_argument("script", metavar="SCRIPT")
    graph.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="for the script")
    parts.add_parser("info", help="show versions, BLAS, threads and which optional packages are installed")
    return command


def graph_options() -> argparse.ArgumentParser:
    """Add the options of `adjoint graph`."""
    options = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    options.add_argument(
        "-o", "--output", metavar="FILE", help=f"write to FILE ({SUFFIXES}) instead of opening a browser"
    )
    options.add_argument("--trace", action="store_true", help="note the steps of backward too; the page plays them")
    options.add_argument("--values", action="store_true", help="keep the values of small intermediate tensors")
    options.add_argument(
        "--as-torch", action="store_true", help="let `import torch` mean adjoint, as `adjoint run` does"
    )
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, and return the exit code."""
    command = parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    rest: list[str] = []
    if given[:1] == ["graph"] and "--" in given:
        place = given.index("--")
        given, rest = given[:place], given[place + 1 :]
    wanted = command.parse_args(given)
    if wanted.command == "graph":  # options after the script
        wanted, own = graph_options().parse_known_args(wanted.arguments, wanted)
        wanted.arguments = [*own, *rest]
    if wanted.command == "info":
        return info()
    if wanted.command == "graph":
        return graph(wanted)
    if not (wanted.module or wanted.script or getattr(wanted, "code", None)):
        command.error(f"{wanted.command}: which program? Give SCRIPT or -m MODULE")
    return launch(wanted) if wanted.command == "launch" else run(wanted)


def run(wanted: argparse.Namespace) -> int:
    """Run a program in which `torch` is this package. Return if the program ends without an error."""
    from .torch_names.as_torch.programs import ProgramNotFoundError, run_code, run_module, run_script

    try:
        if wanted.module:
            run_module(*wanted.module)
        elif wanted.code:
            run_code(*wanted.code)
        else:
            run_script(wanted.script, *wanted.arguments)
    except ProgramNotFoundError as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return 2
    return 0


def launch(wanted: argparse.Namespace) -> int:
    """Run a program in several processes. Return the exit status of the first process that fails, or 0."""
    from .distributed.launcher import LaunchError
    from .distributed.launcher import launch as start

    program = ["-m", *wanted.module] if wanted.module else [wanted.script, *wanted.arguments]
    try:
        return start(wanted.count, wanted.hosts, program)
    except LaunchError as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return 2


def info() -> int:
    """Print the installed versions."""
    from .inspect.installation import installation

    found = installation()
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:{width}}  {value}")
    return 0


def graph(wanted: argparse.Namespace) -> int:
    """Run a script, and save or open the graph of its last backward."""
    from .inspect.script import exit_code, run_script, traceback_of

    output: str | None = getattr(wanted, "output", None)
    if not Path(wanted.script).is_file():
        print(f"adjoint: {wanted.script}: no such file", file=sys.stderr)
        return 2
    mistake = why_not_written(Path(output)) if output is not None else None
    if mistake is not None:
        print(f"adjoint: {mistake}", file=sys.stderr)
        return 2
    options = hasattr(wanted, "trace"), hasattr(wanted, "values")
    if hasattr(wanted, "as_torch"):
        from .torch_names.as_torch import install_as_torch

        install_as_torch()
    kept = run_script(wanted.script, wanted.arguments, *options)
    code = exit_code(kept.error)
    if kept.error is not None and not isinstance(kept.error, SystemExit):
        sys.stderr.write(traceback_of(kept.error, wanted.script))
    if kept.graph is None:
        theirs = sys.modules.get("torch") not in (None, sys.modules[__package__])
        missing = isinstance(kept.error, ModuleNotFoundError) and kept.error.name == "torch"
        hint = "; with --as-torch, its `import torch` means adjoint" if theirs or missing else ""
        print(f"adjoint: {wanted.script} has run no backward, so there is no graph to show{hint}", file=sys.stderr)
        return code or 1
    target = output or str(Path(tempfile.mkdtemp(prefix="adjoint-")) / "graph.html")
    try:
        path = kept.graph.save(target)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"adjoint: {error}", file=sys.stderr)
        return code or 1
    which = "the only backward" if kept.count == 1 else f"the last of {kept.count} backwards"
    print(f"the graph of {which}: {path}", file=sys.stderr)
    if output is None:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
    return code


def why_not_written(path: Path) -> str | None:
    """Return the reason why a picture cannot be written to `path`, or None if no reason is known in advance."""
    from .inspect.display import form_of
    from .inspect.drawing import Graph
    from .inspect.png import renderers

    try:
        form = form_of(path, Graph.forms)
    except ValueError as error:
        return str(error)
    if not path.parent.is_dir():
        return f"{path}: there is no folder {path.parent}"
    if path.is_dir():
        return f"{path} is a folder"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"{path}: no permission to write"
    if form == "png" and next(renderers(""), None) is None:
        return "a PNG needs Chromium, rsvg-convert, Inkscape or the package cairosvg; an .svg needs nothing"
    return None


if __name__ == "__main__":
    sys.exit(main())
