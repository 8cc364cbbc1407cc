"""Compiled kernels in many threads, after a fork, at exit, and after a failed compilation."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.language import CompilationError, Int, loops
from adjoint.codegen.observed_kernels import KERNELS
from adjoint.codegen.plans import compiled
from adjoint.kernels.create.random import uniform


def _run(program: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@loops
def double(n: Int, shift: Int) -> Int:
    return n * 2 + shift


def test_threads_that_want_one_kernel_at_once_share_it():
    before = len(KERNELS.functions)
    barrier, found = threading.Barrier(8), []

    def want():
        barrier.wait()
        found.append(double.compiled())

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert len(KERNELS.functions) == before + 1
    assert found[0](20, 2) == 42


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_while_a_kernel_is_compiled_compiles_its_own():
    told = _run(
        """
        import os, threading, time
        import adjoint as torch
        from adjoint.codegen.llvm.host import HOST

        torch.randn(64, 64)
        HOST.lock.acquire()  # as a thread does that is compiling
        children = []
        def fork():
            child = os.fork()
            if child == 0:
                torch.manual_seed(0)
                print(len(torch.randperm(1000).unique()), torch.poisson(torch.ones(100)).sum().item() > 0, flush=True)
                os._exit(0)
            children.append(child)
        thread = threading.Thread(target=fork)
        thread.start()
        time.sleep(0.5)
        HOST.lock.release()
        thread.join()
        _, status = os.waitpid(children[0], 0)
        print(status)
        """
    )
    assert told.split() == ["1000", "True", "0"]


@pytest.mark.thorough
def test_the_environment_turns_compiled_kernels_off():
    program = """
    import sys
    import adjoint as torch
    torch.randn(1000, 1000)
    print("llvmlite" in sys.modules, torch.backends.llvm.enabled, torch.backends.llvm.describe())
    """
    assert _run(program, ADJOINT_LLVM="0").split(maxsplit=2) == ["False", "False", "turned off\n"]
    assert _run(program, ADJOINT_LLVM="1").split()[:2] == ["True", "True"]


def test_nothing_is_compiled_at_import():
    assert _run("import sys, adjoint; print('llvmlite' in sys.modules)") == "False\n"


def test_a_kernel_that_cannot_be_compiled_is_given_up_once(monkeypatch):
    calls = []

    def failing(*arguments):
        calls.append(arguments)
        raise CompilationError("no such instruction")

    monkeypatch.setattr(LOOPS, "_forms", {"create.twister.permutation": failing})
    unused = compiled("create.twister.permutation", least=uniform._PERMUTATION.least, cost=1)
    monkeypatch.setattr(uniform, "_PERMUTATION", unused)
    monkeypatch.setattr(LOOPS, "failures", {})
    monkeypatch.setattr(LOOPS, "_enabled", True)
    for _ in range(2):
        assert sorted(torch.randperm(500).tolist()) == list(range(500))
    assert len(calls) == 1
    assert torch.backends.llvm.failures == {"create.twister.permutation": "no such instruction"}
    assert "1 given up (create.twister.permutation)" in torch.backends.llvm.describe()


def test_without_llvmlite_numpy_computes(monkeypatch):
    monkeypatch.setitem(vars(LOOPS), "available", False)
    monkeypatch.setattr(LOOPS, "_enabled", None)
    assert not torch.backends.llvm.is_available()
    assert not torch.backends.llvm.enabled
    assert sorted(torch.randperm(500).tolist()) == list(range(500))
    torch.backends.llvm.enabled = True
    assert not torch.backends.llvm.enabled


def test_what_ran_can_be_read(monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", True)
    torch.randperm(1000)
    told = torch.backends.llvm.source("exchange")
    assert "order[place] = order[partner]" in told
    assert "define void @exchange" in told
    with pytest.raises(LookupError, match="no kernel 'nothing' has been compiled"):
        torch.backends.llvm.source("nothing")
