"""Anomaly detection: errors, and the warnings that locate the errors, with PyTorch's messages."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

SETUP = """
import warnings
A = torch.autograd
def traced(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        raises(function)
    for each in caught:
        # The library's own lines are in the trace of PyTorch's Python, and not in ours.
        lines = str(each.message).split(' (Triggered')[0].rstrip('\\n').split('\\n')
        own = [line for line in lines if '<program>' in line or not line.startswith('  ')]
        show(each.category, [line for line in own if 'in traced' not in line and 'in raises' not in line])
"""

PROGRAMS = {
    "switching": """
        warns(lambda: A.detect_anomaly().check_nan)
        A.set_detect_anomaly(True)
        show(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        A.set_detect_anomaly(False)
        show(torch.is_anomaly_enabled())
        with A.set_detect_anomaly(True, check_nan=False):
            show(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        show(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        raises(A.set_detect_anomaly, 'a')
    """,
    "nan": """
        x = torch.zeros(1, requires_grad=True)
        def inside():
            with A.set_detect_anomaly(True):
                y = x * 0
                z = y / x
                z.sum().backward()
        traced(inside)
        def only_backward():
            z = x * 0 / x
            with A.set_detect_anomaly(True):
                z.sum().backward()
        traced(only_backward)
        def grad():
            with A.set_detect_anomaly(True):
                A.grad((x * 0 / x).sum(), x)
        traced(grad)
        with A.set_detect_anomaly(True, check_nan=False):
            (x * 0 / x).sum().backward()
        show(x.grad)
        def seed():
            with A.set_detect_anomaly(True):
                (x * 2).backward(torch.tensor([float('nan')]))
        traced(seed)
        def hooked():
            with A.set_detect_anomaly(True):
                y = x.exp()
                y.register_hook(lambda g: g * float('nan'))
                (y * 2).sum().backward()
        traced(hooked)
    """,
    "errors": """
        x = torch.ones(2, requires_grad=True)
        class Fails(A.Function):
            @staticmethod
            def forward(ctx, a): return a.clone()
            @staticmethod
            def backward(ctx, g): raise ValueError('in the backward')
        def function():
            with A.set_detect_anomaly(True):
                Fails.apply(x).sum().backward()
        traced(function)
        def changed():
            with A.set_detect_anomaly(True):
                y = x.exp()
                z = y * y
                y.add_(1)
                z.sum().backward()
        traced(changed)
        def hook():
            def fail(g): raise KeyError(3)
            with A.set_detect_anomaly(True):
                y = x.exp()
                y.register_hook(fail)
                y.sum().backward()
        traced(hook)
    """,
    "nested": """
        x = torch.ones(1, requires_grad=True)
        def second():
            with A.set_detect_anomaly(True):
                y = x ** 3
                g, = A.grad(y.sum(), x, create_graph=True)
                h, = A.grad(g.sum(), x, create_graph=True)
                h.grad_fn.register_hook(lambda gi, go: 1 / 0)
                show(h.grad_fn.metadata['parent_'])
                A.grad(h.sum(), x)
        traced(second)
    """,
    "a_filter_that_makes_warnings_errors": """
        import contextlib, io
        x = torch.ones(2, requires_grad=True)
        with A.set_detect_anomaly(True), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as errors:
            warnings.simplefilter('error')
            y = x + 1
            z = y ** 2
            y += 1
            raises(lambda: A.grad(z.sum(), x))
        show('Error detected in PowBackward0' in errors.getvalue())
    """,
    "a_view_that_has_become_ambiguous_is_detached": """
        import warnings
        warnings.simplefilter('ignore')
        with torch.autograd.set_detect_anomaly(True):
            x = torch.tensor([.5, 1.5], requires_grad=True)
            y = x.unbind(0)[-1]
            with torch.no_grad(): y.fill_(1)
            show(y.detach(), y.data)
    """,
}

test_program_shows_the_same = program_test(
    {name: SETUP + "\n".join(line[8:] for line in program.split("\n")) for name, program in PROGRAMS.items()}
)
