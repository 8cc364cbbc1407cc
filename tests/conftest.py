"""Settings for all tests.

Property tests have no time limit, because machines may be busy. They try the same cases in each run. `pytest
--hypothesis-profile=searching` tries other cases.
"""

import gc
import os
import re
import subprocess
import sys
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests import environment, shared_kernels, tiers  # noqa: F401 - `environment` first

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_options(parser)
    parser.addoption("--kernels", metavar="FOLDER", help="keep compiled kernels there, and not in the cache of pytest")


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "wasi":
        os.getuid = lambda: 0  # WebAssembly has no user ids, but pytest requests the owner of temporary folders
    tiers.choose_share(config)
    if folder := shared_kernels.folder_of(config):
        shared_kernels.share(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return tiers.is_left_out(collection_path, config.getoption("family")) or None


def pytest_report_header(config: pytest.Config) -> str:
    return tiers.report(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable the garbage collector while pytest collects tests, because all collected objects stay in memory."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test marked `alone` in a new process, which contains as few objects as a user's program."""
    if pyfuncitem.get_closest_marker("alone") is None or "ADJOINT_TEST_ALONE" in os.environ:
        return None
    pytest_s = [name for name in os.environ if name.startswith("PYTEST")]
    variables = {name: value for name, value in os.environ.items() if name not in pytest_s}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", pyfuncitem.nodeid]
    variables["ADJOINT_TEST_ALONE"] = "1"
    done = subprocess.run(command, env=variables, cwd=pyfuncitem.config.rootpath, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return True


@cache
def lacking() -> set[str]:
    """Return the modules that this platform lacks. On most systems, the list is empty."""
    from adjoint._runtime import platform

    return {name for name in platform.PARTS if not getattr(platform, name)}


WITHOUT = "not support processes|start new thread|is unavailable on"
"""The error messages about processes, threads and ctypes of CPython in WebAssembly."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Skip tests that need a missing module or, on WebAssembly, processes or threads."""
    try:
        return (yield)
    except Exception as error:
        for cause in (error, error.__cause__, error.__context__):
            if getattr(cause, "name", None) in lacking():
                pytest.skip(str(cause))
            if sys.platform in ("wasi", "emscripten") and re.search(WITHOUT, str(cause)):
                pytest.skip(str(cause))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip test modules that import a missing module."""
    report = yield
    for name in lacking() if report.failed else ():
        if f"No module named '{name}'" in str(report.longrepr):
            report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: no module {name}")
    return report


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    tiers.choose_cases(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("family"):
        tiers.keep_family(config, items, config.getoption("family"))
    if config.getoption("share"):
        tiers.keep_share(config, items)


@pytest.fixture(scope="module", autouse=True)
def nothing_old_for_the_collector():
    """Freeze all existing objects, so that the garbage collector does not visit these objects during tests."""
    gc.collect()
    gc.freeze()
    gc.collect()  # the collector then counts few objects, and runs as often as in a small process
