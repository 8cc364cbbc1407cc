"""Random programs that train a small model, as source: modules, losses, optimizers, schedules, and what happens between steps."""

import random

FORWARD = [
    ("self.l{i} = nn.Linear({d}, {d})", "h = self.l{i}(h)"),
    ("self.n{i} = nn.LayerNorm({d})", "h = self.n{i}(h)"),
    ("self.n{i} = nn.BatchNorm1d({d})", "h = self.n{i}(h)"),
    ("self.d{i} = nn.Dropout(0.3)", "h = self.d{i}(h)"),
    ("self.g{i} = nn.Parameter(torch.ones({d}))", "h = h * self.g{i} + self.g{i}"),
    ("self.m{i} = nn.ModuleList([nn.Linear({d}, {d}) for _ in range(2)])", "for layer in self.m{i}:\n    h = layer(h) + h"),
    ("self.r{i} = nn.GRU({d}, {d}, batch_first=True)", "h = self.r{i}(h.unsqueeze(1))[0].squeeze(1)"),
    (
        "self.c{i} = nn.Sequential(nn.Linear({d}, {d}), nn.Tanh())",
        "h = checkpoint(self.c{i}, h, use_reentrant=False)",
    ),
    ("self.register_buffer('b{i}', torch.zeros({d}))", "self.b{i}.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)"),
    ("self.register_buffer('b{i}', torch.zeros({d}))", "self.b{i} = self.b{i} + h.detach().mean(0)\nh = h - self.b{i}"),
    ("self.u{i} = nn.utils.parametrizations.weight_norm(nn.Linear({d}, {d}))", "h = self.u{i}(h)"),
    *(("", line) for line in (
        "h = torch.relu(h)", "h = h.tanh()", "h = F.gelu(h)", "h = F.elu(h * 1, inplace=True)", "h = h * self.scale",
        "h = h.clone()\nh[:, 0] = 0", "h = h.clone()\nh[h > 1] = 1.0", "h = h * 1\nh[:, 1:3].mul_(0.5)",
        "h = h + torch.randn_like(h) * 0.1", "h = h * torch.bernoulli(torch.full_like(h, 0.8))", "h = h[torch.randperm(len(h))]",
        "if h.sum() > 0:\n    h = h * 2\nelse:\n    h = h - 1", "h = -h if self.flag else h + 1",
        "self.count += 1",
        "if self.count % 2 == 0:\n    h = h + 0.5\nself.count = self.count + 1",
        "self.last = h.detach()",
        "self.acts.append(h.detach().sum())", "h = torch.softmax(h @ h.t(), -1) @ h",
        "a, b = h.chunk(2, 1)\nh = torch.cat([b, a], 1)",
        "h = torch.where(h > 0, h, h * 0.1)", "h = h / h.size(0)", "if h.shape[0] > 3:\n    h = h + 1", "h = h.cumsum(1) * 0.3",
        "if h.requires_grad:\n    h.register_hook(lambda g: g * 2)", "with torch.no_grad():\n    z = h.mean()\nh = h + z",
        "h = Twice.apply(h)", "h = torch.fft.irfft(torch.fft.rfft(h), n=h.shape[1])", "h = h + TABLE[self.key]",
    )),
]  # fmt: skip
"""Declarations of a module, and the lines of its `forward` that use them."""

LOSSES = [
    "F.mse_loss(o, y)", "((o - y) ** 2).mean()", "F.cross_entropy(o, y.argmax(1))", "(o - y).abs().sum() / len(y)",
    "torch.logsumexp(o - y, 0).sum() * weight", "F.mse_loss(o, y) + 0.1 * model.inp.weight.norm()",
]  # fmt: skip
OPTIMIZERS = [
    "SGD(params, lr=0.05)", "SGD(params, lr=0.05, momentum=0.9, nesterov=True)", "Adam(params, lr=0.01, eps=1e-3, amsgrad=True)",
    "AdamW(params, lr=0.01, eps=1e-3, weight_decay=0.3)", "RMSprop(params, lr=0.01, eps=1e-3, centered=True, momentum=0.5)",
    "Adagrad(params, lr=0.05, eps=1e-3)", "NAdam(params, lr=0.01, eps=1e-3)", "Adam(params, lr=torch.tensor(0.01), eps=1e-3)",
]  # fmt: skip
"""Optimizers that do not magnify rounding errors: some gradients are zero but for these errors."""
SCHEDULES = ["StepLR(opt, 2, 0.5)", "CosineAnnealingLR(opt, 10)", "LambdaLR(opt, lambda epoch: 1 / (epoch + 1))"]
CLEARING = ["opt.zero_grad()"] * 3 + ["opt.zero_grad(set_to_none=False)", "for p in params:\n    p.grad = None"]
BACKWARD = ["loss.backward()"] * 4 + [
    "loss.backward(retain_graph=True)\nloss.backward()",
    "gx = torch.autograd.grad(loss, model.out.weight, create_graph=True)[0]\n(loss + gx.pow(2).sum()).backward()",
    "loss.backward()\ntorch.nn.utils.clip_grad_norm_(params, 0.5)",
    "loss.backward()\nfor p in params:\n    p.grad = p.grad * 0.5 if p.grad is not None else None",
    "loss.backward()\nif bad:\n    raise ValueError('bad')",
]
AFTER = [
    "with torch.no_grad():\n    for e, p in zip(ema.parameters(), params):\n        e.lerp_(p, 0.1)",
    "for e, p in zip(ema.parameters(), params):\n    e.data.copy_(0.9 * e.data + 0.1 * p.data)",
    "model.out.weight.data.mul_(0.999)", "log.append(len(log))", "log.append(torch.tensor(loss.item()))", "model.count += 1",
]  # fmt: skip
RESULTS = ["loss", "loss.detach()", "(loss, o)", "{'o': o.detach(), 'n': len(o)}", "torch.tensor(loss.item())", "None"]
BETWEEN = """
opt.param_groups[0]['weight_decay'] = 0.05
model.eval()
model.train()
model.scale = 0.5
model.flag = not model.flag
model.inp.weight.requires_grad_(not model.inp.weight.requires_grad)
model.key = 'b'
TABLE['a'] = 3.0
model.load_state_dict(saved)
results.append(evaluate(torch.randn(4, 3)))
model.inp.weight.data = model.inp.weight.data * 0.9
kept.append(model.inp.weight.grad)
model.out = copy.deepcopy(model.out)
model.inp.register_forward_hook(lambda m, i, o: o + 0.1)
model.inp.weight.grad = torch.ones_like(model.inp.weight)
opt.load_state_dict(copy.deepcopy(opt.state_dict()))
model.last = None
torch.manual_seed(3)
""".split("\n")[1:-1]
INPUTS = [
    "torch.randn({n}, 3)",
    "torch.randn(3, {n}).t()",
    "torch.randn({n}, 6)[:, ::2]",
    "torch.randn({n}, 3, requires_grad=True)",
]

PROGRAM = """
def program(compiled, in_place):
    torch.manual_seed({seed})
    TABLE, log, results, kept = {{'a': 1.0, 'b': 2.0}}, [], [], []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(context, grad):
            return grad * 2 + 0 * context.saved_tensors[0]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.flag, self.count, self.key, self.acts, self.last = 1.25, True, 0, 'a', [], None
            self.inp, self.out = nn.Linear(3, {d}), nn.Linear({d}, 3)
{declared}

        def forward(self, x):
            h = self.inp(x)
{forward}
            return self.out(h)

    model = Net()
    params, ema, saved = list(model.parameters()), copy.deepcopy(model), copy.deepcopy(model.state_dict())
    opt = torch.optim.{optimizer}
    schedule = torch.optim.lr_scheduler.{schedule}
    net = {net}

    {step_decorator}
    def step(x, y, weight=1.0, bad=False):
{step}

    {evaluate_decorator}
    def evaluate(x):
        with torch.no_grad():
            return net(x)

    def call(*args, **kwargs):
        try:
            results.append(step(*args, **kwargs))
        except ValueError as error:
            log.append(str(error))

{calls}
    state = [dict(model.named_parameters()), [p.grad for p in params], dict(model.named_buffers()), opt.state_dict()]
    hidden = [model.count, model.acts, model.last, list(ema.parameters()), [p._version for p in params], kept]
    return results, log, state, hidden, torch.get_rng_state()
"""


def indented(lines, depth):
    """Return lines with more indentation."""
    return "\n".join(" " * depth + line for each in lines for line in each.split("\n"))


def program(seed):
    """Return the source of a program."""
    draw = random.Random(seed)
    width = draw.choice([4, 6])
    pieces = [
        tuple(part.format(i=number, d=width) for part in draw.choice(FORWARD)) for number in range(draw.randint(1, 6))
    ]
    form = draw.choice(["step", "step", "step", "model", "in place", "both"])
    schedules = draw.random() < 0.3
    step = [
        *([draw.choice(CLEARING)] if draw.random() < 0.85 else []),
        *(["x = x + 0.05 * torch.randn_like(x)"] if draw.random() < 0.1 else []),
        "o = net(x)",
        f"loss = {draw.choice(LOSSES)}",
        draw.choice(BACKWARD),
        "opt.step()",
        *(["schedule.step()"] if schedules else []),
        *(draw.sample(AFTER, 1) if draw.random() < 0.4 else []),
        f"return {draw.choice(RESULTS)}",
    ]
    sizes, calls = draw.choice([[4], [4, 4, 4, 7], [4, 7, 2, 1]]), []
    for _ in range(draw.randint(8, 14)):
        calls += [draw.choice(BETWEEN)] if draw.random() < 0.25 else []
        n = draw.choice(sizes)
        more = draw.choice(["", "", "", ", 0.5", ", 2.0", ", bad=True" if draw.random() < 0.3 else ""])
        calls.append(f"call({draw.choice(INPUTS).format(n=n)}, torch.randn({n}, 3){more})")
    optimizer = draw.choice(OPTIMIZERS)
    return PROGRAM.format(
        seed=seed,
        d=width,
        declared=indented([first or "pass" for first, _ in pieces], 12),
        forward=indented([second for _, second in pieces], 12),
        optimizer=optimizer,
        schedule=draw.choice(SCHEDULES) if "tensor" not in optimizer else "LambdaLR(opt, lambda epoch: 1.0)",
        net={"model": "compiled(model)", "in place": "in_place(model)"}.get(form, "model"),
        step_decorator="@compiled" if form in ("step", "both") else "",
        evaluate_decorator="@compiled" if form == "both" else "",
        step=indented(step, 8),
        calls=indented(calls, 4),
    )
