"""Tests that use the helpers of PyTorch's own tests run under `adjoint run`, if a copy of the helpers is on the path."""

import os
import subprocess
import sys
import types
import unittest
from pathlib import Path

import pytest

import adjoint

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

PROGRAM = """
import torch
from torch.testing._internal.common_device_type import OpDTypes, dtypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import (
    TestCase, gradcheck, instantiate_parametrized_tests, parametrize, run_tests, subtest
)
from torch.testing._internal.logging_tensor import LoggingTensor, capture_logs
from torch.testing._internal.two_tensor import TwoTensor


class TestPlain(TestCase):
    def test_equal(self):
        self.assertEqual({"a": [1, 2.0, "x", {3}, None, True]}, {"a": [1, 2.0, "x", {3}, None, True]})
        self.assertEqual(torch.tensor(1), 1)
        self.assertEqual(torch.ones(2), torch.ones(2) + 1e-3, atol=1e-2, rtol=0)
        self.assertEqual(torch.eye(3).to_sparse(), torch.eye(3).to_sparse())
        self.assertEqual(torch.ones(2).storage(), torch.ones(2).storage())
        self.assertEqual(torch.ones(2), torch.ones(2, dtype=torch.float64), exact_dtype=False)
        for first, second, words in [
            (torch.ones(2), torch.zeros(2), "Mismatched elements: 2 / 2"),
            ({"a": [1]}, {"a": [2]}, r"for item \\['a'\\]\\[0\\]"),
            ([1], [1, 2], "length of the sequences"),
            (True, False, "Booleans mismatch"),
            (None, 2, "None mismatch"),
            (torch.ones(2), torch.ones(2, dtype=torch.float64), "'dtype' do not match"),
        ]:
            with self.assertRaisesRegex(AssertionError, words):
                self.assertEqual(first, second)
        with self.assertRaisesRegex(AssertionError, "own words"):
            self.assertEqual(1, 2, msg="own words")

    @parametrize("n", [1, subtest(3, name="three")])
    def test_parameters(self, n):
        self.assertTrue(gradcheck(torch.sin, torch.rand(n, dtype=torch.double, requires_grad=True)))

    def test_subclasses(self):
        pair = TwoTensor(torch.ones(2), torch.zeros(2)) + 1
        self.assertEqual((pair.a, pair.b), (torch.full((2,), 2.0), torch.ones(2)))
        with capture_logs() as logs:
            LoggingTensor(torch.ones(2)) + 1
        self.assertIn("aten.add", "".join(logs))


class TestDevices(TestCase):
    @ops([op for op in op_db if op.name in ("sin", "add", "linalg.det")], dtypes=OpDTypes.any_one)
    def test_operator(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            op(sample.input, *sample.args, **sample.kwargs)

    @modules([info for info in module_db if info.name == "nn_Linear" or "Linear" in info.name])
    def test_module(self, device, dtype, module_info, training):
        inputs = module_info.module_inputs_func
        for given in inputs(module_info, device=device, dtype=dtype, requires_grad=False, training=training):
            module = module_info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).to(dtype)
            module(*given.forward_input.args, **given.forward_input.kwargs)

    @dtypes(torch.float32, torch.float64)
    def test_dtype(self, device, dtype):
        self.assertEqual(torch.ones(2, device=device, dtype=dtype).dtype, dtype)


instantiate_parametrized_tests(TestPlain)
instantiate_device_type_tests(TestDevices, globals())
if __name__ == "__main__":
    run_tests()
"""


def count_of_pytorch():
    """Return the number of tests that PyTorch collects from the program."""
    module = types.ModuleType("program_of_tests")
    exec(PROGRAM, module.__dict__)
    return unittest.TestLoader().loadTestsFromModule(module).countTestCases()


@pytest.mark.thorough
def test_a_test_file_runs_to_its_end_and_has_as_many_tests(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    helpers = tmp_path / "torch" / "testing" / "_internal"
    helpers.parent.mkdir(parents=True)
    helpers.symlink_to(Path(torch.__file__).parent / "testing" / "_internal")
    names = {**os.environ, "PYTHONPATH": str(Path(adjoint.__file__).parents[1])}
    names.pop("CI", None)  # with this variable, PyTorch's helpers write reports with another package
    command = [sys.executable, "-m", "adjoint", "run", "program.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=names, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert f"Ran {count_of_pytorch()} tests " in ran.stderr
