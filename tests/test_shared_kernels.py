"""Test processes load kernels that other processes have compiled and stored in the folder of the tests."""

import ctypes

import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.llvm.host import Host
from tests import shared_kernels

TEXT = """
define i64 @{name}(i64 %x) {{
  %y = mul i64 %x, {factor}
  ret i64 %y
}}
"""


def call(host, name, factor, argument):
    code = host.compile(name, TEXT.format(name=name, factor=factor))
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)(argument)


def test_machine_code_is_loaded_by_all_that_it_depends_on(monkeypatch, tmp_path):
    monkeypatch.setattr(Host, "_engine", Host._engine)
    shared_kernels.share(tmp_path)
    one, other = Host(), Host()
    assert call(one, "times", 3, 14) == 42
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr(Host, "_optimized", None)  # only compilation needs this function
    assert call(other, "times", 3, 5) == 15
    assert list(tmp_path.iterdir()) == [kept]
    with pytest.raises(TypeError):
        call(other, "times", 4, 5)
