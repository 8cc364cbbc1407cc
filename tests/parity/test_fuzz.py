"""Random small programs of operators, views, in-place changes and backward, run line by line by both libraries.

`ADJOINT_FUZZ_EXAMPLES` sets how many are tried (and makes them different each time).
"""

import os
import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .candidate import candidate
from .comparison import arrays_differ, errors_differ
from .conversion import to_array

_EXAMPLES = os.environ.get("ADJOINT_FUZZ_EXAMPLES")

# A line of a program: {x}, {y} and {z} stand for tensors, {n} for 0 to 2, {r} for the name of the result.
MAKES = """
{r} = {x} + {y}
{r} = {x} - {y}
{r} = {x} * {y}
{r} = {x} / ({y} * {y} + 1)
{r} = {x} * 0.5
{r} = 1 - {x}
{r} = {x} ** 2
{r} = {x}.tanh()
{r} = {x}.sigmoid()
{r} = {x}.atan()
{r} = {x}.relu()
{r} = {x}.abs()
{r} = {x}.clamp(-0.5, 0.5)
{r} = torch.maximum({x}, {y})
{r} = torch.where({x} > 0, {x}, {y})
{r} = {x} @ {y}
{r} = {x} @ {y}.mT
{r} = torch.cat([{x}, {y}])
{r} = torch.stack([{x}, {y}, {x}])
{r} = torch.addcmul({x}, {y}, {z})
{r} = {x}.lerp({y}, 0.25)
{r} = {x}.softmax(-1)
{r} = {x}.sum()
{r} = {x}.sum({n})
{r} = {x}.mean(-1, keepdim=True)
{r} = {x}.prod(-1)
{r} = {x}.max(-1).values
{r} = {x}.amax(0)
{r} = {x}.cumsum(-1)
{r} = {x}.clone()
{r} = {x}.contiguous()
{r} = {x}.masked_fill({y} > 0, 0.5)
{r} = {x}.index_select(0, torch.tensor([0, 0]))
{r} = {x}[[0, 0]]
{r} = {x}[{x} > 0]
{r} = {x}.flip(0)
{r} = {x}.repeat(2, 1)
{r} = {x}.tril()
{r} = {x}.norm()
{r} = {x}.var(0)
""".strip().split("\n")

VIEWS = """
{r} = {x}.t()
{r} = {x}.mT
{r} = {x}.view(-1)
{r} = {x}.view(3, 2)
{r} = {x}.reshape(-1)
{r} = {x}.flatten()
{r} = {x}[0]
{r} = {x}[{n}]
{r} = {x}[1:]
{r} = {x}[..., {n}]
{r} = {x}[:, 1:]
{r} = {x}[::2]
{r} = {x}[None]
{r} = {x}.unsqueeze({n})
{r} = {x}.squeeze()
{r} = {x}.squeeze({n})
{r} = {x}.expand(2, 3)
{r} = {x}.expand(2, -1, -1)
{r} = {x}.narrow(0, 0, 1)
{r} = {x}.select(-1, {n})
{r} = {x}.diagonal()
{r} = {x}.unbind()[{n}]
{r} = {x}.chunk(2)[0]
{r} = {x}.split(1)[{n}]
{r} = {x}.detach()
{r} = {x}.data
{r} = {x}.permute(1, 0)
{r} = {x}.transpose(0, -1)
{r} = {x}.as_strided((2,), (1,))
{r} = {x}.view_as({x})
{r} = {x}.expand_as({y})
{r} = {x}.movedim(0, -1)
{r} = {x}.unfold(-1, 2, 1)
{r} = {x}.unflatten(-1, (3, 1))
""".strip().split("\n")

CHANGES = """
{x}.add_({y})
{x}.sub_({y}, alpha=2)
{x}.mul_({y})
{x}.mul_(0.5)
{x}.div_(2)
{x}.tanh_()
{x}.sigmoid_()
{x}.relu_()
{x}.neg_()
{x}.zero_()
{x}.fill_(0.25)
{x}.fill_({y})
{x}.copy_({y})
{x}.clamp_(-1, 1)
{x}.pow_(2)
{x}.masked_fill_({y} > 0, 0.5)
{x}.lerp_({y}, 0.5)
{x}.addcmul_({y}, {z})
{x}.cumsum_(0)
{x}.t_()
{x}.unsqueeze_(0)
{x}.squeeze_()
{x}.index_add_(0, torch.tensor([0]), {y})
{x}[0] = {y}
{x}[0] = 0.75
{x}[..., {n}] = {y}
{x}[[0]] = {y}
{x}[{x} > 0] = 0.1
{x}[1:] += 1
{x} += {y}
{x} *= {y}
{x}.requires_grad_()
{x}.detach_()
{x}.retain_grad()
{x}.grad = None
{x}.data = {y}.detach().clone()
torch.add({x}, {y}, out={z})
{x}.register_hook(lambda g: g * 2)
""".strip().split("\n")

BACKWARD = """
{x}.sum().backward()
{x}.sum().backward(retain_graph=True)
({x} * {x}).sum().backward()
{x}.backward()
{x}.backward(torch.ones_like({x}))
{r} = torch.autograd.grad({x}.sum(), {y})[0]
{r} = torch.autograd.grad({x}.sum(), {y}, create_graph=True)[0]
{r} = torch.autograd.grad(({x} * {x}).sum(), {y}, create_graph=True)[0]
{r} = torch.autograd.grad({x}.sum(), [{y}, {z}], allow_unused=True)[1]
{r} = torch.autograd.grad({x}.sum(), {y}, materialize_grads=True)[0]
""".strip().split("\n")

START = """
a = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64, requires_grad=True)
b = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
c = torch.tensor([[2.0, 1.0, -0.5], [0.75, -1.25, 3.0]], dtype=torch.float64)
d = a * 1
""".strip()

LINES = (
    st.sampled_from(MAKES)
    | st.sampled_from(VIEWS)
    | st.sampled_from(CHANGES)
    | st.sampled_from(VIEWS + CHANGES + BACKWARD)
)


class Run:
    """One library's side of a program."""

    def __init__(self, module: Any) -> None:
        self.names: dict[str, Any] = {"torch": module}
        exec(START, self.names)

    def step(self, line: str) -> Exception | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(line, self.names)
        except Exception as error:  # compared
            return error
        return None

    def tensors(self) -> list[str]:
        return [
            name
            for name, value in self.names.items()
            if isinstance(value, self.names["torch"].Tensor) and len(name) <= 3
        ]


def is_defined(line: str, x: Any, y: Any) -> bool:
    """Whether PyTorch says what a line does.

    An in-place change of elements that share memory, or from elements that overlap those written to, depends on the order in
    which elements are visited.
    """
    if line not in CHANGES or ("_(" not in line and "[" not in line and "=" not in line):
        return True
    places = [_places(tensor.detach()) for tensor in (x, y)]
    if len(set(places[0])) < len(places[0]):
        return False
    return "{y}" not in line or x is y or not set(places[0]) & set(places[1])


def _places(tensor: Any) -> list[int]:
    """Where in memory the elements are."""
    places = torch.arange(tensor.untyped_storage().nbytes() // tensor.element_size() + 1)
    places = places.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return [tensor.untyped_storage().data_ptr() + place for place in places.flatten().tolist()]


def ask(run: Run, question: str) -> Any:
    """What an expression says, or the type of exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(question, run.names)
    except Exception as error:  # compared
        return type(error).__name__


@settings(
    max_examples=int(_EXAMPLES or 200),
    derandomize=_EXAMPLES is None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_random_programs_agree(data: st.DataObject) -> None:
    actual, expected, program = Run(candidate), Run(torch), [START]
    for number in range(data.draw(st.integers(1, 14), label="lines")):
        names = expected.tensors()
        template = data.draw(LINES)
        x, y, z = (data.draw(st.sampled_from(names[::-1])) for _ in range(3))
        if not is_defined(template, expected.names[x], expected.names[y]):
            continue
        line = template.format(x=x, y=y, z=z, n=data.draw(st.integers(0, 2)), r=f"t{number}")
        if data.draw(st.integers(0, 9)) == 9:
            line = f"with torch.no_grad(): {line}"
        program.append(line)
        text = "\n".join(program)
        error, expected_error = actual.step(line), expected.step(line)
        if expected_error is not None:
            difference = errors_differ(error, expected_error, words=0)
            assert difference is None, f"{text}\n{difference}"
            program[-1] += f"  # {type(expected_error).__name__}"
        else:
            assert error is None, f"{text}\nraised {type(error).__name__}: {error}"
    compare_all(actual, expected, "\n".join(program))


def compare_all(actual: Run, expected: Run, text: str) -> None:
    """Shapes, versions, histories, values and gradients of every tensor of a program."""
    gradients = set(re.findall(r"(\w+) = torch.autograd.grad", text))
    for name in expected.tensors():
        for question in (
            f"tuple({name}.shape)",
            f"{name}.requires_grad",
            f"{name}.is_leaf",
            f"type({name}.grad_fn).__name__",
            f"{name}.output_nr",
            f"{name}.grad is None",
            f"{name}.retains_grad",
        ):
            one, two = ask(actual, question), ask(expected, question)
            assert one == two, f"{text}\n{question} is {one}, expected {two}"
        if name not in gradients:  # how PyTorch's formulas make a gradient is no promise of theirs
            for question in (f"{name}._is_view()", f"{name}._version"):
                one, two = ask(actual, question), ask(expected, question)
                assert one == two, f"{text}\n{question} is {one}, expected {two}"
        for part in (name, f"{name}.grad"):
            two = ask(expected, part)
            if isinstance(two, torch.Tensor):
                difference = arrays_differ(to_array(ask(actual, part)), to_array(two))
                assert difference is None, f"{text}\n{part}: {difference}"
