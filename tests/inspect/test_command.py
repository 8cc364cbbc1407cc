"""The command `adjoint`, run in a separate process and called directly."""

import os
import subprocess
import sys
import webbrowser

import pytest

import adjoint
from adjoint.__main__ import main

SCRIPT = """
import sys
import adjoint as torch

print(sys.argv[1:], __name__)
w = torch.ones(3, requires_grad=True)

def train():
    for step in range(3):
        loss = (w.exp() * step).sum()
        loss.backward()

train()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_graph_of_the_last_backward(script, tmp_path, capsys):
    target = tmp_path / "graph.txt"
    before = sys.argv, sys.path[:]
    assert main(["graph", "-o", str(target), str(script), "one", "--two"]) == 0
    output = capsys.readouterr()
    assert output.out == "['one', '--two'] __main__\n"
    assert f"the graph of the last of 3 backwards: {target}" in output.err
    text = target.read_text()
    assert "graph of loss: 3 operations" in text
    assert "train.py:10  loss = (w.exp() * step).sum()" in text
    assert "saved result" in text
    assert "freed" not in text
    assert "w float32[3] = [1, 1, 1]  AccumulateGrad  grad [2.718, 2.718, 2.718]" in text
    assert (sys.argv, sys.path) == before


@pytest.mark.parametrize("order", range(3))
def test_options_stand_on_either_side_of_the_script(script, tmp_path, capsys, order):
    target = str(tmp_path / "graph.txt")
    words = [
        ["--values", "-o", target, str(script), "one"],
        [str(script), "-o", target, "one", "--values"],
        ["--values", str(script), "one", "-o", target],
    ][order]
    assert main(["graph", *words]) == 0
    assert capsys.readouterr().out == "['one'] __main__\n"
    assert "MulBackward0 n3  → float32[3] = [5.437, 5.437, 5.437]" in (tmp_path / "graph.txt").read_text()


def test_what_stands_after_two_dashes_is_for_the_script(script, tmp_path, capsys):
    assert main(["graph", "-o", str(tmp_path / "graph.txt"), str(script), "--", "-o", "mine", "--trace"]) == 0
    assert capsys.readouterr().out == "['-o', 'mine', '--trace'] __main__\n"


def test_where_it_cannot_write_it_does_not_run(script, tmp_path, capsys):
    for target in (tmp_path / "none" / "graph.svg", tmp_path / "folder.svg"):
        (tmp_path / "folder.svg").mkdir(exist_ok=True)
        assert main(["graph", str(script), "-o", str(target)]) == 2
        output = capsys.readouterr()
        assert "folder" in output.err
        assert output.out == ""


def test_with_its_steps(script, tmp_path):
    target = tmp_path / "graph.txt"
    assert main(["graph", "--trace", "-o", str(target), str(script)]) == 0
    assert "backward of loss: 4 steps, 12 bytes freed" in target.read_text()
    assert "w.grad = [8.155, 8.155, 8.155]" in target.read_text()


def test_without_a_file_a_page_is_opened(script, monkeypatch):
    pages = []
    monkeypatch.setattr(webbrowser, "open", pages.append)
    assert main(["graph", str(script)]) == 0
    assert pages[0].startswith("file://")
    assert pages[0].endswith("graph.html")


def test_a_script_that_fails_still_has_a_graph(script, tmp_path, capsys):
    script.write_text(SCRIPT + "\nraise ValueError('afterwards')\n")
    assert main(["graph", "-o", str(tmp_path / "graph.mmd"), str(script)]) == 1
    error = capsys.readouterr().err
    assert "ValueError: afterwards" in error
    assert "runpy" not in error
    assert (tmp_path / "graph.mmd").exists()


@pytest.mark.parametrize(("ending", "code"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('no')", 1)])
def test_the_code_of_a_script_that_exits(script, tmp_path, ending, code):
    script.write_text(SCRIPT + f"\n{ending}\n")
    assert main(["graph", "-o", str(tmp_path / "graph.dot"), str(script)]) == code


def test_mistakes_are_reported(script, tmp_path, capsys):
    assert main(["graph", str(tmp_path / "none.py")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["graph", "-o", "graph.doc", str(script)]) == 2
    output = capsys.readouterr()
    assert "expected a name that ends in" in output.err
    assert output.out == ""  # the script has not been run
    script.write_text("print('nothing')")
    assert main(["graph", "-o", str(tmp_path / "graph.svg"), str(script)]) == 1
    assert "has run no backward" in capsys.readouterr().err


def test_the_engine_is_as_before(script, tmp_path):
    engine = sys.modules["adjoint.autograd.backward"]
    run = engine.run
    main(["graph", "-o", str(tmp_path / "graph.txt"), str(script)])
    assert engine.run is run


def test_backwards_within_hooks_do_not_count(script, tmp_path, capsys):
    script.write_text(
        "import adjoint as torch\n"
        "w = torch.ones(2, requires_grad=True)\n"
        "def hook(grad):\n"
        "    with torch.enable_grad():\n"
        "        torch.autograd.grad((w * 2).sum(), w)\n"
        "y = w.exp()\n"
        "y.register_hook(hook)\n"
        "y.sum().backward()\n"
    )
    assert main(["graph", "-o", str(tmp_path / "graph.txt"), str(script)]) == 0
    assert "the graph of the only backward" in capsys.readouterr().err
    assert "ExpBackward0" in (tmp_path / "graph.txt").read_text()


def test_info(capsys):
    assert main(["info"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["adjoint"] == adjoint.__version__
    assert lines["threads"] == str(adjoint.get_num_threads())
    assert {"Python", "NumPy", "BLAS", "scipy", "matplotlib", "rich"} <= set(lines)


def test_in_a_process_of_its_own():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run(
        [sys.executable, "-m", "adjoint", "--version"], capture_output=True, text=True, check=True, env=environment
    )
    assert finished.stdout == f"adjoint {adjoint.__version__}\n"


@pytest.mark.thorough
def test_inspection_is_imported_when_it_is_used():
    program = (
        "import sys, adjoint; assert 'adjoint.inspect' not in sys.modules; adjoint.inspect.graph; "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'rich', 'matplotlib', 'webbrowser', 'argparse'}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert finished.stdout == "[]\n"


@pytest.mark.thorough
def test_a_script_for_pytorch_is_drawn_as_it_is(tmp_path):
    script, target = tmp_path / "train.py", tmp_path / "graph.txt"
    script.write_text("import torch\ntorch.ones(3, requires_grad=True).exp().sum().backward()\n")

    def run(*options):
        command = [sys.executable, "-m", "adjoint", "graph", *options, str(script), "-o", str(target)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert "with --as-torch, its `import torch` means adjoint" in run().stderr
    assert run("--as-torch").returncode == 0
    assert "ExpBackward0" in target.read_text()
