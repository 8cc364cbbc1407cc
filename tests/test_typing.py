"""Type checkers accept correct programs, and report the line of each mistake in wrong programs.

The correct programs are `typing/right`, the examples, and the learn pages of the documentation. The learn pages may lack
annotations. In strict mode, mypy and pyright check the programs, each once for all tests.
"""

import json
import re
import runpy
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from adjoint._runtime.places import ONE_FILE

ROOT = Path(__file__).parent.parent
TYPED = ROOT / "tests" / "typing"
PROGRAMS = sorted((TYPED / "right").glob("*.py"))
WRONG = TYPED / "wrong" / "type_errors.py"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OF_THE_PAGE = re.compile(r"^(:tags:.*|.*building.*|show\(.*)$", re.MULTILINE)
"""Lines of a page that do not belong to the program: the display of cells, and players of the site."""

NOT_TYPED = (
    *(f"reportUnknown{what}Type" for what in ("Parameter", "Argument", "Member", "Variable", "Lambda")),
    *("reportMissingParameterType", "reportMissingTypeStubs", "reportUnusedExpression", "reportUnusedImport"),
    *("reportPrivateUsage", "reportPossiblyUnboundVariable", "reportMissingTypeArgument", "reportMissingImports"),
    *("reportOptionalMemberAccess", "reportMissingModuleSource"),
)
"""Rules of pyright about programs, not about the library: functions without annotations, other libraries without types, a `.grad`
that a reader sees is there."""


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the examples, and with the code of each learn page as a module."""
    folder = tmp_path_factory.mktemp("documentation")
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, folder)
    for page in sorted((ROOT / "docs" / "learn").glob("*.md")):
        cells = [found["code"] for found in CELL.finditer(page.read_text(encoding="utf-8"))]
        code = OF_THE_PAGE.sub("", "\n".join(cells))
        (folder / f"learn_{page.stem.replace('-', '_')}.py").write_text(code, encoding="utf-8")
    return folder


def run(*command: str, cwd: Path) -> str:
    return subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=cwd, check=False).stdout


@cache
def of_mypy(folder: Path, *options: str) -> dict[tuple[str, int], str]:
    pytest.importorskip("mypy")
    text = run("mypy", "--strict", "--config-file=", "--ignore-missing-imports", *options, str(folder), cwd=ROOT)
    found = re.finditer(r"^(?P<file>[^\n]*?)([^/\n]+\.py):(\d+): error: (.*)$", text, re.MULTILINE)
    assert "error" in text or "Success" in text, text
    return {(match[2], int(match[3])): match[4] for match in found}


@cache
def of_pyright(folder: Path, *ignored: str) -> dict[tuple[str, int], str]:
    pytest.importorskip("pyright")
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)], **dict.fromkeys(ignored, "none")}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    try:
        text = run("pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(folder), cwd=folder)
    finally:
        (folder / "pyrightconfig.json").unlink()
    if not text.startswith("{"):
        pytest.skip("pyright does not start: its program for Node is not there")
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in json.loads(text)["generalDiagnostics"]
        if each["severity"] == "error"
    }


CHECKERS = pytest.mark.parametrize("check", [of_mypy, of_pyright], ids=["mypy", "pyright"])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_right_programs_run(program):
    runpy.run_path(str(program))["run"]()


@pytest.mark.thorough
@CHECKERS
def test_right_programs_are_right(check):
    assert {place: words for place, words in check(TYPED).items() if place[0] != WRONG.name} == {}


@pytest.mark.thorough
def test_mypy_accepts_the_documentation(documentation):
    options = "--allow-untyped-defs --allow-untyped-calls --no-warn-return-any --disable-error-code=union-attr".split()
    assert of_mypy(documentation, *options) == {}


@pytest.mark.thorough
def test_pyright_accepts_the_documentation(documentation):
    assert of_pyright(documentation, *NOT_TYPED) == {}


@pytest.mark.thorough
@CHECKERS
def test_each_mistake_is_found(check):
    found = {line for name, line in check(TYPED) if name == WRONG.name}
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    planted = {number for number, line in enumerate(lines, start=1) if line.endswith("# error")}
    assert len(planted) > 60
    assert {number: lines[number - 1] for number in found ^ planted} == {}


SECOND_NAMES = ROOT / "scripts" / "second_names.py"


@pytest.mark.skipif(not (ROOT / "adjoint").exists(), reason="the tests of an installed package, without its source")
def test_the_stubs_in_a_wheel_name_what_is_in_the_modules():
    second_names = runpy.run_path(str(SECOND_NAMES))
    assert {each: file for file, modules in second_names["ONE_FILE"].items() for each in modules} == ONE_FILE
    stubs = second_names["stubs"](ROOT)
    assert {"adjoint/cuda/amp.pyi", "adjoint/library.pyi", "adjoint/mps.pyi"} <= stubs.keys()
    assert "import is_available as" in stubs["adjoint/mps.pyi"]
    for place, text in stubs.items():
        module = import_module(place.removesuffix(".pyi").removesuffix("/__init__").replace("/", "."))
        names = re.findall(r"^from .* as (\w+)$", text, re.MULTILINE)
        assert [name for name in names if not hasattr(module, name)] == []
