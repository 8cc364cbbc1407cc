"""The Python code in README.md, CONTRIBUTING.md and docs/ runs and prints the output on the page."""

import doctest
import linecache
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "understand").glob("*.md")),
]
WRITE_A_KERNEL = ROOT / "docs" / "understand" / "write-a-kernel.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.thorough
@pytest.mark.alone  # the page declares an operator
def test_a_kernel_is_written_as_the_page_says():
    pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")
    check_examples(WRITE_A_KERNEL)


@pytest.mark.parametrize("page", [page for page in PAGES if page != WRITE_A_KERNEL], ids=lambda page: page.name)
def test_examples_run(page):
    check_examples(page)


def check_examples(page):
    """Run the blocks of a page as one session. Later blocks may use the names of earlier blocks."""
    names = {}
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        title = f"{page.name}, block {number}"
        if ">>>" in block:
            example = doctest.DocTestParser().get_doctest(block, names, title, str(page), 0)
            output = []
            results = doctest.DocTestRunner().run(example, out=output.append, clear_globs=False)
            assert results.failed == 0, "".join(output)
            names.update(example.globs)
        else:
            linecache.cache[title] = (
                len(block),
                None,
                block.splitlines(True),
                title,
            )  # kernels read their source from `linecache`
            exec(compile(block, title, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    if not (ROOT / "adjoint").exists():  # the tests run on an installed package, without the source
        links = [link for link in links if "adjoint/" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


LONGEST_EVENING = 3750
"""The number of lines that can be read in an evening."""


@pytest.mark.skipif(
    not (ROOT / "adjoint").exists(), reason="of an installed package, without its source beside the tests"
)
def test_the_files_to_read_first_are_as_long_as_the_page_says():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    written, total = runpy.run_path(str(ROOT / "scripts" / "write_line_counts.py"))["counted"](page)
    assert page == written, "run scripts/write_line_counts.py"
    assert total < LONGEST_EVENING


DRAW_GRAPH = runpy.run_path(str(ROOT / "docs" / "draw_graph.py"))


@pytest.mark.parametrize("name", DRAW_GRAPH["PICTURES"])
def test_pictures_are_what_the_script_draws(name, tmp_path):
    DRAW_GRAPH["PICTURES"][name]().save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8") == (ROOT / "docs" / name).read_text(encoding="utf-8")


PRINTED = """
import adjoint as torch
x = torch.tensor(2.0)
w = torch.tensor(3.0, requires_grad=True)
y = w * x
print(torch.inspect.graph(y))
"""

MISTAKEN = """
import numpy
from adjoint import nn

model = nn.Linear(4, 2)

model(numpy.ones((3, 4)))
"""


@pytest.mark.thorough
def test_what_the_readme_shows_of_programs_is_what_they_print(tmp_path):
    shown = re.findall(
        r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for name, program in (("example.py", PRINTED), ("train.py", MISTAKEN)):
        (tmp_path / name).write_text(program, encoding="utf-8")
        done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        lines = (done.stdout or done.stderr).replace(f"{tmp_path}{os.sep}", "").splitlines(True)
        marks = re.compile(r"\s*[~^]+\s*")  # newer versions of Python underline the expression
        printed = "".join(line for line in lines if "Traceback" not in line and not marks.fullmatch(line))
        assert any(printed.rstrip() == re.sub("^>>>.*\n", "", block, flags=re.MULTILINE).rstrip() for block in shown), (
            printed
        )
