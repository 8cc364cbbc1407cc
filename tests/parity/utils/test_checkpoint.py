"""Checkpointing: values, gradients, the number of runs of the function, random numbers, errors and their messages."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

SETUP = """
import contextlib
if torch.__name__ == 'torch':
    import torch.utils.checkpoint as C
else:
    C = torch.utils.checkpoint
checkpoint = C.checkpoint
runs = [0]
def f(a, k=1):
    runs[0] += 1
    return (a.sin() * k).exp()
x = torch.tensor([1., 2.], requires_grad=True)
"""

PROGRAMS = {
    "arguments": """
        warns(lambda: checkpoint(f, x))
        show(checkpoint(f, x, use_reentrant=True), checkpoint(f, x, k=2, use_reentrant=False))
        raises(lambda: checkpoint(f, x, k=2, use_reentrant=True))
        warns(lambda: checkpoint(f, torch.ones(2), use_reentrant=True))
        show(checkpoint(f, torch.ones(2), use_reentrant=False))
        raises(lambda: checkpoint(f, x, use_reentrant=True, context_fn=lambda: (1, 2)))
        raises(lambda: checkpoint(f, x, use_reentrant=True, debug=True))
        raises(lambda: checkpoint(f, x, use_reentrant=False, determinism_check='foo'))
        raises(lambda: checkpoint(f, x, use_reentrant=False, foo=3))
        raises(lambda: checkpoint(f, x, use_reentrant=False, context_fn=lambda: 5))
    """,
    "how_often": """
        o = checkpoint(f, x, use_reentrant=True)
        raises(lambda: torch.autograd.grad(o.sum(), x))
        raises(lambda: o.sum().backward(inputs=[x]))
        o = checkpoint(f, x, use_reentrant=True)
        runs[0] = 0
        o.sum().backward()
        show(runs, x.grad)
        raises(lambda: o.sum().backward())
        o = checkpoint(f, x, use_reentrant=False)
        runs[0] = 0
        show(torch.autograd.grad(o.sum(), x), runs)
        raises(lambda: o.sum().backward())
        s = checkpoint(f, x, use_reentrant=False).sum()
        runs[0] = 0
        s.backward(retain_graph=True)
        show(runs)
        s.backward()
        show(runs, x.grad)
        with torch.no_grad():
            show(checkpoint(f, x, use_reentrant=False), checkpoint(f, x, use_reentrant=True))
        raises(lambda: checkpoint(lambda a: a.detach(), x, use_reentrant=True).sum().backward())
    """,
    "determinism": """
        count = [0]
        def run(second, **options):
            def function(a):
                count[0] += 1
                return a.sin().exp() if count[0] == 1 else second(a)
            count[0] = 0
            checkpoint(function, x, use_reentrant=False, **options).sum().backward()
        run(lambda a: (a.sin() + 1).cos().exp())
        raises(run, lambda a: a.sin())
        raises(run, lambda a: torch.cat([a, a]).sin().exp())
        run(lambda a: a.sin().exp().sin())
        with C.set_checkpoint_early_stop(False):
            raises(run, lambda a: a.sin().exp().sin())
        raises(run, lambda a: 1 / 0)
        run(lambda a: (a + 1).sin().exp(), determinism_check='none')
        show(x.grad)
    """,
    "early_stop": """
        log = []
        def function(a):
            log.append('start')
            b = a.sin().exp()
            log.append('end')
            return b + 1
        checkpoint(function, x, use_reentrant=False).sum().backward()
        show(log)
        with C.set_checkpoint_early_stop(False):
            o = checkpoint(function, x, use_reentrant=False)
        o.sum().backward()
        checkpoint(function, x, use_reentrant=False, early_stop=False).sum().backward()
        show(log, x.grad)
    """,
    "random_numbers": """
        def function(a): return F.dropout(a, 0.5) * torch.rand(2) * a
        for reentrant in (True, False):
            for preserve in (True, False):
                torch.manual_seed(0)
                x.grad = None
                o = checkpoint(function, x, use_reentrant=reentrant, preserve_rng_state=preserve)
                q = torch.rand(1)
                o.sum().backward()
                show(o, q, torch.rand(1), x.grad)
    """,
    "nested": """
        for outer in (True, False):
            for inner in (True, False):
                x.grad = None
                runs[0] = 0
                def function(a):
                    runs[0] += 1
                    return checkpoint(f, a, use_reentrant=inner).sin()
                checkpoint(function, x, use_reentrant=outer).sum().backward()
                show(runs, x.grad)
    """,
    "second_derivative": """
        o = checkpoint(f, x, use_reentrant=False)
        g, = torch.autograd.grad(o.sum(), x, create_graph=True)
        show(g)
        show(torch.autograd.grad(g.sum(), x))
    """,
    "structures": """
        def function(d, l): return {'a': d['x'] * 2}, [l[0] * 3], 5
        y = torch.ones(2, requires_grad=True)
        for reentrant in (True, False):
            warns(lambda: checkpoint(function, {'x': x}, [y], use_reentrant=reentrant))
        z = torch.ones(2)
        for reentrant in (True, False):
            o = checkpoint(lambda a, b: (a * 2, b * 3), x, z, use_reentrant=reentrant)
            show(o)
            o[0].sum().backward()
            show(x.grad)
    """,
    "contexts": """
        log = []
        class Context:
            def __init__(self, name): self.name = name
            def __enter__(self): log.append('enter ' + self.name)
            def __exit__(self, *error): log.append('exit ' + self.name)
        o = checkpoint(f, x, use_reentrant=False, context_fn=lambda: (Context('forward'), Context('again')))
        o.sum().backward()
        show(log, x.grad)
    """,
    "sequential": """
        layers = [torch.nn.Linear(2, 2) for _ in range(5)]
        model = torch.nn.Sequential(*layers)
        value = torch.ones(1, 2, requires_grad=True)
        for reentrant in (True, False):
            for segments in (1, 2, 5):
                out = C.checkpoint_sequential(model, segments, value, use_reentrant=reentrant)
                show(bool((out == model(value)).all()))
                out.sum().backward()
                show(value.grad, layers[0].weight.grad)
            raises(C.checkpoint_sequential, model, 6, value, use_reentrant=reentrant)
            raises(C.checkpoint_sequential, model, 0, value, use_reentrant=reentrant)
        warns(lambda: C.checkpoint_sequential(layers, 2, value))
        raises(C.checkpoint_sequential, layers, 2, value, use_reentrant=False, foo=3)
    """,
    "parts": """
        show(C.detach_variable((x, x * 2, 3)))
        raises(C.detach_variable, x)
        warns(lambda: C.check_backward_validity([x]))
        warns(lambda: C.check_backward_validity([torch.ones(2)]))
        show(C.get_device_states(x), issubclass(C.CheckpointError, RuntimeError))
    """,
}

test_program_shows_the_same = program_test(
    {name: SETUP + "\n".join(line[8:] for line in program.split("\n")) for name, program in PROGRAMS.items()}
)
