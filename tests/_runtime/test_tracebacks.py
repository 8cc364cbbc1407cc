"""Errors end at the line of the user's program."""

import os
import subprocess
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path

import pytest

import adjoint
from tests.typical_mistakes import MISTAKES, outcome

PACKAGE = str(Path(adjoint.__file__).parent)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_frame_of_adjoint_is_shown(mistake):
    _, trace = outcome(adjoint, mistake)
    assert PACKAGE not in trace
    assert "<adjoint" not in trace
    assert "During handling" not in trace


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: adjoint.nn.ReLU(1, 2, 3), "ReLU.__init__()"),
        (lambda: adjoint.nn.Conv2d(*range(40)), "Conv2d.__init__()"),
        (lambda: adjoint.nn.MaxUnpool2d(), "MaxUnpool2d.__init__()"),
        (lambda: adjoint.ones(2).numpy(1, 2), "Tensor.numpy()"),
        (lambda: adjoint.ones(2).is_contiguous(1, 2, 3), "Tensor.is_contiguous()"),
    ],
)
def test_errors_of_wrong_calls_name_the_called_function(call, named):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(named)


def test_an_argument_given_by_keyword_has_no_position():
    x = adjoint.ones(2, 3)
    for call, where in (
        (lambda: x.argmax(dim="a"), "argument 'dim' must"),
        (lambda: x.argmax("a"), "argument 'dim' (position 1) must"),
        (lambda: adjoint.argmax(x, "a"), "argument 'dim' (position 2) must"),
        (lambda: x.pow(exponent="a"), "got (exponent=str, )"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert where in str(caught.value)


def test_frames_of_the_user_between_frames_of_adjoint_stay():
    class Broken(adjoint.nn.Module):
        def forward(self, x):
            return x.view(5)

    model = adjoint.nn.Sequential(adjoint.nn.Identity(), Broken())
    with pytest.raises(RuntimeError) as caught:
        model(adjoint.ones(2, 3))
    assert [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)] == [
        "test_frames_of_the_user_between_frames_of_adjoint_stay",
        "forward",
    ]


def test_errors_of_hooks_show_the_hook_alone():
    def hook(grad):
        raise ValueError("no such gradient")

    x = adjoint.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(ValueError) as caught:
        y.sum().backward()
    names = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_errors_of_hooks_show_the_hook_alone", "hook"]


@pytest.mark.parametrize("mode", [adjoint.no_grad(), adjoint.autocast("cpu"), adjoint.inference_mode()])
def test_errors_of_decorated_functions_show_the_function_alone(mode):
    @mode
    def evaluate():
        raise ValueError("no data")

    @mode
    def batches():
        yield 1
        raise ValueError("no data")

    for call, name in ((evaluate, "evaluate"), (lambda: list(batches()), "batches")):
        with pytest.raises(ValueError, match="no data") as caught:
            call()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == name
        assert not any(PACKAGE in frame.filename for frame in frames)


def test_an_error_that_the_user_handles_stays_visible():
    try:
        try:
            adjoint.ones(3).view(5)
        except RuntimeError:
            adjoint.ones(3).view(7)
    except RuntimeError as error:
        trace = "".join(traceback.format_exception(error))
    assert "shape '[5]'" in trace
    assert "During handling" in trace
    assert trace.count("Traceback") == 2


PROGRAM = """
import adjoint

def main():
    adjoint.ones(3).view(5)

main()
"""


@pytest.mark.parametrize("full", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_the_environment_asks_for_full_tracebacks(full):
    environment = {**os.environ, "ADJOINT_FULL_TRACEBACK": str(int(full))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert ("infer_size" in done.stderr) == full
    assert (PACKAGE in done.stderr) == full


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: adjoint.distributed.tensor.ones(2), "Default process group has not been initialized"),
        (lambda: adjoint.distributed.fsdp.fully_shard(adjoint.nn.Linear(2, 2)), "Default process group has not been"),
        (lambda: adjoint.distributed.checkpoint.save({}), "checkpoint_id is needed"),
    ],
)
def test_calls_that_need_processes_raise_errors(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert PACKAGE not in "".join(traceback.format_tb(caught.value.__traceback__))


def test_only_one_function_warns():
    """It finds the user's line at any depth of calls. A `stacklevel` names a wrapper as soon as a function gets one."""
    package = Path(adjoint.__file__).parent
    calls = {
        str(path.relative_to(package)) for path in package.rglob("*.py") if "warnings.warn(" in path.read_text("utf-8")
    }
    assert calls == {"_runtime/tracebacks.py"}


def test_modules_warn_at_the_users_line():
    with pytest.warns(UserWarning, match="norm_first was True") as caught:
        adjoint.nn.TransformerEncoder(adjoint.nn.TransformerEncoderLayer(4, 2, 4, norm_first=True), 1)
    assert caught[0].filename == __file__
