# ruff: noqa: E501
"""A number among the arguments becomes an input of the program after its first change.

If code depends on the number, the compiler captures the function again.
"""

import math
import random
import textwrap
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike, reason_of

F = torch.nn.functional
NUMBERS = {"float": [2.5, 0.5, 1.5, -1.25, 3.0, 1.0, 0.0, -0.0, 2.0], "int": [3, 2, 5, -1, 4, 1, 0, 2, 7]}
DTYPES = ["float32", "float64", "bfloat16", "int64", "bool", "complex64"]
OPERATORS = {
    **{
        f"x {operator} n": (lambda source: lambda x, n: eval(source))(f"x {operator} n")
        for operator in "+ - * / // % ** < <= > >= == !=".split()
    },
    **{
        f"n {operator} x": (lambda source: lambda x, n: eval(source))(f"n {operator} x")
        for operator in "+ - * / // % ** < ==".split()
    },
}
CALLS = {
    "add": "torch.add(x, x, alpha=n)", "sub": "torch.sub(x, x, alpha=n)", "rsub": "torch.rsub(x, n)", "mul": "x.mul(n)",
    "pow": "torch.pow(x, n)", "pow of a number": "torch.pow(n, x)", "fmod": "torch.fmod(x, n)", "lerp": "x.lerp(x * 2, n)",
    "addcmul": "torch.addcmul(x, x, x, value=n)", "addcdiv": "torch.addcdiv(x, x, x + 3, value=n)", "clamp": "x.clamp(n, 2)",
    "clamp max": "x.clamp(max=n)", "masked_fill": "x.masked_fill(x > 0, n)", "leaky_relu": "F.leaky_relu(x, n)",
    "elu": "F.elu(x, n)", "full": "x + torch.full((4,), n)", "full with a dtype": "x + torch.full((4,), n, dtype=torch.float64)",
    "arange": "x + torch.arange(n, n + 4)[:4]", "zeros of a size": "torch.zeros(abs(int(n)) + 1) + x[:1]", "index": "x[int(n) % 4]",
    "slice": "x[:int(n)]", "repeat": "x.repeat(abs(int(n)) + 1)", "sum of dim": "x.sum(0 if n > 1 else -1)", "tensor": "x * torch.tensor(n)",
    "where": "torch.where(x > 0, x, n)", "dropout": "F.dropout(x, 0.5, n > 1)", "softplus": "F.softplus(x, n)", "stack": "torch.stack([x * n, x])",
    "list": "[x * n, n, (n, x + n)]", "dict": "{'a': x * n, 'b': n}", "alone": "n", "a tuple": "(n, n * 2, x)", "formatted": "(x * n, f'{n:.1f}')",
    "in place": "x.clone().mul_(n).add_(n).sub_(x, alpha=n)", "assigned": "torch.stack([x, x]).index_fill(0, torch.tensor([1]), n)",
    "math": "x * math.sqrt(abs(n)) + math.cos(n) * math.exp(-n)", "float": "x * float(n)", "int": "x * int(n)", "round": "x * round(n)",
    "max": "x * max(n, 1)", "a schedule": "x * (n / 2 if n < 2 else 1 - 0.9 ** n)", "a chain": "x * n if 0 < n < 2 else x - n", "in": "x * n if n in (1, 2.5) else x",
    "complex": "x * (1j * n)", "floats first": "x * (0.5 * n) + (1.5 - n) * x + (2.0 ** n)", "a hash": "x * {2: 5, 3: 7}.get(n, 1)",
    "a string": "x * n if '2' in str(n) else x", "many": "sum([x * n for _ in range(3)])", "power": "x * n ** 2", "a boolean": "x * n if n else x",
    "attributes": "x * n.real + n.imag", "its bits": "x * (n & 1 if isinstance(n, int) else n)", "divmod": "x * divmod(n, 2)[1]",
}  # fmt: skip
for _name, _source in CALLS.items():
    OPERATORS[_name] = (lambda source: lambda x, n: eval(source))(_source)


def made(source):
    """Return a function whose source the compiler can read."""
    import linecache

    name = f"<numbers {len(linecache.cache)}>"
    text = f"def f(x, n):\n    return {source}\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"torch": torch, "F": F, "math": math}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def ran(function, dtype, n):
    """Return the result of a call and its gradient, or the error."""
    torch.manual_seed(1)
    x = torch.tensor([0.5, -1.0, 2.0, 1.0]).to(getattr(torch, dtype))
    if dtype != "int64" and dtype != "bool":
        x.requires_grad_()
    try:
        result = function(x, n)
        total = [t for t in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(t, torch.Tensor)]
        roots = [t for t in total if t.requires_grad]
        grads = torch.autograd.grad([t.abs().sum() for t in roots], x) if roots else ()
    except Exception as error:
        return type(error).__name__
    return [result, *grads]


SOURCES = [*(name for name in OPERATORS if name not in CALLS), *CALLS.values()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", SOURCES)
def test_numbers_that_change(source, dtype):
    function = made(source)
    for kind, numbers in NUMBERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = torch.compile(function)
            for number in numbers:
                found, expected = ran(compiled, dtype, number), ran(function, dtype, number)
                assert_alike(found, expected, f"{kind} {number}", strides=False)


@pytest.mark.parametrize(
    "source",
    [name for name in OPERATORS if name not in CALLS and "//" not in name and not name.startswith(("n **", "n %"))]
    + [CALLS[name] for name in ("add", "mul", "clamp", "full", "math", "list")]
    + [CALLS["in place"], CALLS["floats first"]],
)
def test_arithmetic_has_one_program_more(source):
    function = made(source)
    compiled = torch.compile(function)
    for n in (1.5, 2.5, 3.5, 4.5, 5.25, 6.5, 7.0, 8.0, 9.0, 10.0, 11.0):
        assert_alike(ran(compiled, "float32", n), ran(function, "float32", n), strides=False)
    assert reason_of(compiled) is None
    assert len(compiled.compiled.variants) <= 3


def test_dynamic():
    for dynamic, count in ((True, 1), (None, 2), (False, 5)):
        compiled = torch.compile(lambda x, n: x * n, dynamic=dynamic)
        for n in range(2, 7):
            assert compiled(torch.ones(2), n=n).tolist() == [n] * 2
        assert len(compiled.compiled.variants) == count


def test_an_outcome_is_a_condition():
    compiled = torch.compile(lambda x, step: x * (step / 100 if step < 100 else 1.0))
    for step in range(1, 200, 7):
        assert compiled(torch.ones(1), step).item() == pytest.approx(min(step / 100, 1.0))
    assert len(compiled.compiled.variants) == 3
    assert compiled.compiled.variants[0].because[0] == "lt(args[1], 100) is True"


def test_the_numbers_are_plain_afterwards():
    seen = []
    compiled = torch.compile(lambda x, n: (x * n, n * 2, [n]))
    for n in (1.0, 2.0, 3.0):
        result = compiled(torch.ones(1, requires_grad=True), n)
        seen.append(result)
    assert [[type(each[1]), type(each[2][0])] for each in seen] == [[float] * 2] * 3
    assert torch.autograd.grad(result[0].sum(), torch.ones(1, requires_grad=True), allow_unused=True) == (None,)


def test_numbers_stored_in_returned_lists_are_those_of_each_call():
    def function(x, n):
        listed, named = [0, x], {}
        listed[0] = n
        named["a"] = n * 2
        return listed, named

    compiled = torch.compile(function, dynamic=True)
    for n in (1.5, 2.5, -3.5):
        (first, _), named = compiled(torch.ones(2), n)
        assert (first, named) == (n, {"a": n * 2}) and type(first) is type(named["a"]) is float
    assert len(compiled.compiled.variants) == 1


def test_a_learning_rate_by_hand():
    torch.manual_seed(0)
    weights = [torch.randn(3, 3, requires_grad=True) for _ in range(2)]

    def step(x, rate):
        loss = ((x @ weights[0]).tanh() @ weights[1]).pow(2).mean()
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, grad in zip(weights, grads, strict=True):
                weight.sub_(grad, alpha=rate)
        return loss

    x = torch.randn(5, 3)
    start = [each.detach().clone() for each in weights]
    runs = []
    for called in (step, torch.compile(step)):
        with torch.no_grad():
            for each, value in zip(weights, start, strict=True):
                each.copy_(value)
        runs.append([called(x, 0.1 * 0.9**number).item() for number in range(20)])
    assert runs[0] == pytest.approx(runs[1], rel=1e-4)


@pytest.mark.parametrize("seed", range(40))
def test_random_arithmetic(seed):
    choose = random.Random(seed)
    names = ["n", "m"]
    lines = []
    for number in range(8):
        a, b = choose.choice(names), choose.choice([*names, "2", "0.5", "3"])
        form = choose.choice(
            [
                "{a} + {b}", "{a} * {b}", "{b} - {a}", "{a} / (abs({b}) + 1)", "{b} * {a}", "min({a}, {b})", "math.sin({a})",
                "{a} if {a} < {b} else {b}", "-{a}", "float({a})", "int({a}) + {b}", "round({a}, 1)", "(lambda q: q + {a})({b})",
                "sum([{a}, {b}])", "{a} % 3", "{a} // 2", "[{a}, {b}][0]", "({a} > {b}) * {b}", "abs({a})",
            ]
        )  # fmt: skip
        lines.append(f"v{number} = {form.format(a=a, b=b)}")
        names.append(f"v{number}")
    text = "def f(x, n, m):\n" + textwrap.indent("\n".join(lines), "    ")
    text += f"\n    return x * {names[-1]} + {names[-2]}, {names[-1]} * 1, x.add(x, alpha=float({names[-3]}))\n"
    import linecache

    name = f"<arithmetic {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"math": math}
    exec(compile(text, name, "exec"), namespace)
    function = namespace["f"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(function)
        for _ in range(8):
            n, m = choose.choice([1, 2, 3, 0, -2]), choose.choice([0.5, 1.5, -0.25, 2.0])
            x = torch.tensor([1.0, -2.0])
            assert_alike(list(compiled(x, n, m)), list(function(x, n, m)), text)


LEAVING = {
    "an attribute": ("o.a = n", "o.a"),
    "an item": ("d['a'] = n", "d['a']"),
    "a nested item": ("d['a'] = [(n,)]", "d['a'][0][0]"),
    "setattr": ("setattr(o, 'a', n)", "o.a"),
    "an element that is appended": ("l.append(n)", "l[-1]"),
    "an element that is appended later": ("l.append(0); l.append(n)", "l[-1]"),
    "a cached function": ("l.append(cached(n))", "l[-1]"),
    "the class after a break": ("print(end=''); l.append(type(n)())", "l[-1]"),
    "an exception": ("l.append(n + 1)\n    raise KeyError(n)", "error.args[0]"),
    "an attribute of a size": ("o.a = x.shape[0]", "o.a"),
}


@pytest.mark.parametrize("case", LEAVING)
def test_numbers_that_leave_a_capture_are_numbers(case, tmp_path):
    lines, read = LEAVING[case]
    path = tmp_path / "program.py"
    path.write_text(
        "import functools\nclass O: pass\no = O(); d = {}; l = []\n@functools.lru_cache\ndef cached(n): return n\n"
        f"def f(x, n):\n    {lines}\n    return x * n\n"
    )
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(names["f"], dynamic=True)
        for number in (3, 4, 5):
            try:
                compiled(torch.ones(number), number)
            except KeyError as error:
                names["error"] = error
            assert type(eval(read, names)) is int
