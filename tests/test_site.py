"""The pages of the documentation: the code runs, links have targets, and each public name has an example that runs."""

import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

from adjoint.dispatch.operator_index import FAMILIES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from building import examples  # noqa: E402
from building.public_names import public_names  # noqa: E402

PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "generated" not in path.parts]
NOTEBOOKS = [path for path in PAGES if path.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb")]
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#|path:)([^)#\s]+)")
WITHOUT_EFFECT = """
    torch.accelerator torch.ao.quantization torch.backends.cuda torch.backends.mkl torch.backends.mps torch.backends.nnpack
    torch.backends.openmp torch.cuda torch.cuda.amp torch.cuda.nvtx torch.mps torch.mtia torch.xpu
""".split()
"""Modules that exist for compatibility only. An example would show nothing, so their names need none."""

TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def title(path: Path) -> str:
    return str(path.relative_to(DOCS))


def cells(path: Path) -> str:
    """Return the code of a page as one program. The program asserts that cells that are marked as failing raise errors."""
    blocks = []
    for block in CELL.findall(path.read_text(encoding="utf-8")):
        options = [line for line in block.splitlines() if line.startswith(":")]
        code = "\n".join(line for line in block.splitlines() if not line.startswith((":", "%")))
        if any("raises-exception" in option for option in options):
            code = (
                f"try:\n{textwrap.indent(code, '    ')}\nexcept Exception: pass\nelse: raise AssertionError('no error')"
            )
        blocks.append(code)
    return "\n".join(blocks)


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=title)
def test_the_code_of_a_page_runs(path, tmp_path):
    for package in ("matplotlib", "sklearn"):
        if re.search(rf"^(import|from) {package}\b", cells(path), re.MULTILINE):
            pytest.importorskip(package)
    program = tmp_path / "page.py"
    program.write_text(cells(path), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DOCS), str(ROOT)]), "MPLBACKEND": "Agg"}
    environment["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PAGES, ids=title)
def test_links_of_a_page_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    links = [link for link in LINK.findall(text) if "generated/" not in link]
    if not (DOCS.parent / "adjoint").exists():  # the tests run on an installed package
        links = [link for link in links if "../adjoint/" not in link]
    missing = [link for link in links if not (path.parent / link).exists()]
    assert missing == []


def test_every_page_is_in_a_table_of_contents():
    listed = {(DOCS / "index.md").resolve()}
    for path in PAGES:
        for block in TOCTREE.findall(path.read_text(encoding="utf-8")):
            for line in block.splitlines():
                if line and not line.startswith(":"):
                    listed.add((path.parent / f"{line.split('<')[-1].rstrip('>')}.md").resolve())
    assert [title(path) for path in PAGES if path.resolve() not in listed] == []


def test_every_folder_of_operators_has_a_heading_in_the_reference():
    pytest.importorskip("sphinx")
    from building.reference import title_of

    headings = [title_of(area, "[:;] ") for area in {family.split(".")[0] for family in FAMILIES}]
    assert len(set(headings)) == len(headings) > 5
    assert all(10 < len(heading) < 80 for heading in headings)


def test_every_public_name_is_described_and_has_an_example():
    described = [public for public in public_names() if public.is_described]
    assert len(described) > 2000
    without = defaultdict(list)
    for public in described:
        needs_none = public.module in WITHOUT_EFFECT or ">>>" in public.docstring
        if not needs_none and examples.example_of(public) is None:
            without["an example"].append(public.path)
        if not public.docstring:
            without["a docstring"].append(public.path)
    assert dict(without) == {}


def test_a_signature_is_shown_without_quotes_around_annotations():
    def function(devices: "list[int]", *, kind: "str | None" = None, mode: str = "sum", key=len) -> "None": ...

    pytest.importorskip("sphinx")
    from building.signatures import readable, signatures

    shown = "(devices: list[int], *, kind: str | None = None, mode: str = 'sum', key=...) -> None"
    assert readable(inspect.signature(function)) == shown
    found = {public.path: signature for public in public_names() for signature in signatures(public)}
    assert [path for path, each in found.items() if ": '" in each or "-> '" in each or "ForwardRef" in each] == []


def test_a_name_is_linked_to_the_line_that_declares_it():
    pytest.importorskip("sphinx")
    from building.signatures import declaration

    names = {public.path: public for public in public_names()}
    declared = "torch.exp torch.Tensor.exp_ torch.absolute torch.nn.Linear torch.nn.Module.state_dict torch.func.functional_call"
    for path in declared.split():
        file, line = declaration(names[path])
        name = path.rpartition(".")[2].rstrip("_")
        assert name in "".join((ROOT / file).read_text(encoding="utf-8").splitlines()[line - 1 : line + 8]), path


@pytest.mark.parametrize("name", ["ten-pictures", "your-own-function", "explain", "transforms"])
def test_a_lesson_is_a_notebook_that_needs_the_library_alone(name):
    pytest.importorskip("myst_nb")
    from building import browser

    assert name in browser.LESSONS
    assert f"?path={name}.ipynb" in (DOCS / "learn" / "in-your-browser.md").read_text(encoding="utf-8")
    first, *cells = browser.notebook((DOCS / "learn" / f"{name}.md").read_text(encoding="utf-8")).cells
    assert first.source == "%pip install -q adjoint-autograd"
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert "building" not in code and "show(" not in code
    compile(code, name, "exec")


def test_an_example_shows_more_than_that_its_name_exists():
    nothing_but = re.compile(r"(callable\(\S+\)|isinstance\(\S+, type\)|\S+ is not None|issubclass\(\S+, \w+\))")
    assert [path for path, statements in examples.declared().items() if nothing_but.fullmatch(statements)] == []


def test_an_example_may_have_several_lines_and_end_in_a_warning():
    source = "import warnings\nfor text in ('one', 'two'):\n    warnings.warn(text)  # warns"
    shown = ">>> import warnings\n>>> for text in ('one', 'two'):\n...     warnings.warn(text)\n"
    assert examples.session(source, "warnings.warn") == f"{shown}UserWarning: one\nUserWarning: two"
    with pytest.raises(AssertionError, match="no warning came"):
        examples.session("1 + 1  # warns", "int.__add__")


def test_a_method_and_an_in_place_variant_have_the_example_of_their_function():
    names = {public.path: public for public in public_names()}
    function = examples.example_of(names["torch.acos"])
    assert function is not None and "torch.acos(" in function
    assert [examples.example_of(names[f"torch.{name}"]) for name in ("Tensor.acos", "Tensor.acos_")] == [function] * 2


@pytest.mark.thorough
def test_declared_examples_are_of_public_names_and_run():
    names = {public.path: public for public in public_names()}
    assert [path for path in examples.declared() if path not in names] == []
    failures = {}
    for path, public in names.items():
        statements = examples.example_of(public)
        if statements and public.is_described and ">>>" not in public.docstring and examples.can_run(public):
            try:
                examples.session(statements, path)
            except Exception as error:
                failures[path] = f"{statements}: {error!r}"
    assert failures == {}
