"""Schedulers set PyTorch's learning rates, momenta and states."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same

SETUP = """
import pickle
S = optim.lr_scheduler
P = lambda: nn.Parameter(torch.ones(2))
def O(lr=1.0, kind=None, **options):
    return (kind or optim.SGD)([{'params': [P()]}, {'params': [P()], 'lr': lr / 2}], lr=lr, **options)
def run(make, steps=12, **options):
    o = O(**options)
    s = make(o)
    seen = []
    for _ in range(steps):
        seen.append([[g[k] for k in ('lr', 'momentum', 'betas') if k in g] for g in o.param_groups])
        o.step()
        s.step()
    return seen, s.get_last_lr(), s.state_dict(), o.state_dict()
def plateau(metrics, **options):
    o = O()
    s = S.ReduceLROnPlateau(o, **options)
    seen = []
    for m in metrics:
        s.step(m)
        seen.append([g['lr'] for g in o.param_groups])
    return seen, s.state_dict(), s.get_last_lr()
"""

SCHEDULES = """
S.LambdaLR(o, lambda e: 0.9**e)
S.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)])
S.LambdaLR(o, [lambda e: 1])
S.LambdaLR(o, 3)
S.MultiplicativeLR(o, lambda e: 0.9)
S.StepLR(o, 3)
S.StepLR(o, 3, 0.5)
S.StepLR(3, 3)
S.MultiStepLR(o, [2, 2, 5])
S.ConstantLR(o)
S.ConstantLR(o, factor=2)
S.LinearLR(o)
S.LinearLR(o, 0)
S.LinearLR(o, end_factor=2)
S.LinearLR(o, 0.5, 0.1, 4)
S.ExponentialLR(o, 0.9)
S.ExponentialLR(o, 0.9, last_epoch=3)
S.PolynomialLR(o)
S.PolynomialLR(o, 7, 2.0)
S.CosineAnnealingLR(o, 5)
S.CosineAnnealingLR(o, 5, 0.1)
S.CosineAnnealingWarmRestarts(o, 3)
S.CosineAnnealingWarmRestarts(o, 2, 2, 0.1)
S.CosineAnnealingWarmRestarts(o, 0)
S.CosineAnnealingWarmRestarts(o, 2, 0)
S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [3])
S.SequentialLR(o, [S.LinearLR(o, 0.1), S.CosineAnnealingLR(o, 5), S.StepLR(o, 2)], [3, 8])
S.SequentialLR(o, [], [])
S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [3, 4])
S.SequentialLR(o, [S.StepLR(o, 3), S.ReduceLROnPlateau(o)], [2])
S.SequentialLR(o, [S.StepLR(o, 3), None], [2])
S.SequentialLR(o, [S.StepLR(O(), 3), S.StepLR(o, 2)], [2])
S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)])
S.ChainedScheduler([])
S.ChainedScheduler([S.StepLR(o, 3), S.StepLR(O(), 3)])
S.OneCycleLR(o, 1.0, total_steps=12)
S.OneCycleLR(o, [1.0, 0.5], epochs=3, steps_per_epoch=4)
S.OneCycleLR(o, 1.0)
S.OneCycleLR(o, 1.0, epochs=3)
S.OneCycleLR(o, 1.0, total_steps=-1)
S.OneCycleLR(o, 1.0, epochs=-1, steps_per_epoch=1)
S.OneCycleLR(o, 1.0, epochs=1, steps_per_epoch=-1)
S.OneCycleLR(o, 1.0, total_steps=12, pct_start=2)
S.OneCycleLR(o, 1.0, total_steps=12, anneal_strategy='zz')
S.OneCycleLR(o, [1.0], total_steps=12)
S.OneCycleLR(o, 1.0, total_steps=13, cycle_momentum=False, anneal_strategy='linear', three_phase=True)
S.OneCycleLR(o, 1.0, total_steps=13, three_phase=True)
S.OneCycleLR(o, 1.0, total_steps=5, cycle_momentum=False)
S.CyclicLR(o, 0.1, 1.0, 3, cycle_momentum=False)
S.CyclicLR(o, [0.1, 0.2], [1.0, 2.0], 3, 4, mode='triangular2', cycle_momentum=False)
S.CyclicLR(o, 0.1, 1.0, 3, mode='exp_range', gamma=0.9, cycle_momentum=False)
S.CyclicLR(o, 0.1, 1.0, 3, scale_fn=lambda x: 0.5)
S.CyclicLR(o, 0.1, 1.0, 3)
S.CyclicLR(o, 0.1, 1.0, 3, mode='zz')
S.LRScheduler(o)
""".strip().split("\n")

LINES = [
    *(f"run(lambda o: {schedule})" for schedule in SCHEDULES),
    *"""
run(lambda o: S.OneCycleLR(o, 1.0, total_steps=12), momentum=0.9)
run(lambda o: S.OneCycleLR(o, 1.0, total_steps=12), kind=optim.Adam)
run(lambda o: S.CyclicLR(o, 0.1, 1.0, 3), kind=optim.AdamW)
run(lambda o: S.CyclicLR(o, 0.1, 1.0, 3), momentum=0.9)
run(lambda o: S.CyclicLR(o, 0.1, 1.0, 3), kind=optim.Adagrad)
S.ReduceLROnPlateau(O(), factor=2)
S.ReduceLROnPlateau(O(), mode='zz')
S.ReduceLROnPlateau(O(), threshold_mode='zz')
S.ReduceLROnPlateau(O(), min_lr=[1])
plateau([3, 2, 2, 2, 2, 2, 1.9999999, 2, 2, 1, 1, 1, 1, 1, 1] + [float('nan')], patience=1)
plateau([3, 2, 2, 2, 2, 2, 1, 2, 2, 1, 1, 1, 1], patience=1, cooldown=2, min_lr=0.05)
plateau([3, 2, 2, 2, 5, 2, 1, 2, 2, 1, 1, 1, 1], mode='max', threshold_mode='abs', patience=2, min_lr=[0.1, 0.2])
plateau([torch.tensor(1.0)] * 4, patience=0, eps=0.6)
""".strip().split("\n"),
    *"""
s = S.StepLR(O(), 3)
s.step()

o = O()
s = S.StepLR(o, 3)
o.step()
s.step()
s.step(5)
s.get_last_lr(), s.state_dict()

o = O()
s = S.StepLR(o, 3)
s.get_lr()

o = O()
s = S.StepLR(o, 3)
o.step = lambda: None
s.step()

o = O()
s = S.StepLR(o, 3)
o.step()
s.step()
t = S.StepLR(O(), 4)
t.load_state_dict(s.state_dict())
t.state_dict(), t.optimizer is o

o = O()
s = S.StepLR(o, 3)
pickle.loads(pickle.dumps(o))

o = optim.SGD([P()], lr=torch.tensor(1.0))
s = S.ExponentialLR(o, 0.5)
o.step()
s.step()
o.param_groups[0]['lr'], s.get_last_lr(), s.base_lrs

o = O()
s = S.CosineAnnealingWarmRestarts(o, 2, 2)
[(s.step(e), s.get_last_lr())[1] for e in (0.5, 1.5, 7.25, 3)]

o = O()
S.CosineAnnealingWarmRestarts(o, 2).step(-1)

class L:
    def __init__(s): s.a = 3
    def __call__(s, e): return 0.5
S.LambdaLR(O(), L()).state_dict()
""".strip().split("\n\n"),
]


@pytest.mark.parametrize("line", LINES)
def test_schedules(line):
    assert_same(SETUP + line)


NESTINGS = """
seq(a, b, 4)
chain(a, b)
seq(seq(const, a, 2), b, 6)
seq(seq(seq(exp, a, 2), b, 4), const, 8)
seq(chain(const, a), b, 4)
seq(chain(chain(const, a), exp), b, 4)
seq(chain(seq(a, b, 3), exp), const, 6)
chain(seq(a, b, 3), exp)
chain(chain(a, b), exp)
seq(a, seq(const, b, 3), 4)
seq(a, chain(const, b), 4)
""".strip().split("\n")

# All pairs of schedulers in a nesting, with the rates of 15 epochs. After seven epochs, the states are saved and loaded.
NESTED = """
seq = lambda a, b, m: lambda o: S.SequentialLR(o, [a(o), b(o)], [m])
chain = lambda a, b: lambda o: S.ChainedScheduler([a(o), b(o)])
const, exp = lambda o: S.ConstantLR(o, 0.5, 2), lambda o: S.ExponentialLR(o, 0.9)
parts = {
    "const": const, "exp": exp, "step": lambda o: S.StepLR(o, 2), "multi": lambda o: S.MultiStepLR(o, [2, 5]),
    "linear": lambda o: S.LinearLR(o, 0.1, total_iters=3), "cosine": lambda o: S.CosineAnnealingLR(o, 5),
    "warm": lambda o: S.CosineAnnealingWarmRestarts(o, 3), "lambda": lambda o: S.LambdaLR(o, lambda e: 0.8**e),
    "times": lambda o: S.MultiplicativeLR(o, lambda e: 0.8), "polynomial": lambda o: S.PolynomialLR(o, 6),
    "cyclic": lambda o: S.CyclicLR(o, 0.1, 1.0, 3, cycle_momentum=False), "one": lambda o: S.OneCycleLR(o, 1.0, total_steps=20),
}
def epochs(make):
    o = O()
    try:
        s = make(o)
        seen = []
        for i in range(15):
            seen.append([[g["lr"] for g in o.param_groups], s.get_last_lr(), getattr(s, "last_epoch", None)])
            if i == 7:
                states, o = (o.state_dict(), s.state_dict()), O()
                s = make(o)
                o.load_state_dict(states[0])
                s.load_state_dict(states[1])
            o.step()
            s.step()
        return seen
    except NotImplementedError:
        return "refused"
"""


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.thorough) for turn in (1, 2))])
@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.long_cases
def test_nested_schedulers(nesting, turn):
    """The quick tier tests a third of the pairs for each nesting. Three nestings together test all pairs."""
    first = (NESTINGS.index(nesting) + turn) % 3
    pairs = f"[*itertools.product(parts.items(), repeat=2)][{first}::3]"
    assert_same(f"{SETUP}{NESTED}import itertools\n{{(p, q): epochs({nesting}) for (p, a), (q, b) in {pairs}}}")
