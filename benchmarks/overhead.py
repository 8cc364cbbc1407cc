"""Calls with small tensors, which measure the overhead of the library."""

from types import ModuleType

from benchmarks.cases import Group, Timed

GROUP = Group("overhead")
case = GROUP.case


def _pair(torch: ModuleType, *shape: int) -> tuple:
    return torch.randn(*shape, requires_grad=True), torch.randn(*shape, requires_grad=True)


# ---------------------------------------------------------------- arithmetic


def _arithmetic(name: str, operation) -> None:
    @case(f"{name} 10x10")
    def forward(torch: ModuleType) -> Timed:
        a, b = _pair(torch, 10, 10)
        return lambda: operation(a, b)

    @case(f"{name} 10x10, forward and backward")
    def forward_and_backward(torch: ModuleType) -> Timed:
        a, b = _pair(torch, 10, 10)
        seed = torch.ones(10, 10)

        def step():
            a.grad = b.grad = None
            operation(a, b).backward(seed)
            return a.grad

        return step


_arithmetic("add", lambda a, b: a + b)
_arithmetic("sub", lambda a, b: a - b)
_arithmetic("mul", lambda a, b: a * b)
_arithmetic("div", lambda a, b: a / b)


@case("mul by a number 10x10")
def mul_by_number(torch: ModuleType) -> Timed:
    a = torch.randn(10, 10, requires_grad=True)
    return lambda: a * 2.0


@case("matmul 10x10, forward and backward")
def matmul(torch: ModuleType) -> Timed:
    a, b = _pair(torch, 10, 10)
    seed = torch.ones(10, 10)

    def step():
        a.grad = b.grad = None
        (a @ b).backward(seed)
        return a.grad

    return step


@case("add without grad 10x10")
def add_without_grad(torch: ModuleType) -> Timed:
    a, b = torch.randn(10, 10), torch.randn(10, 10)
    return lambda: a + b


@case("add with broadcasting, 10x10 and 10")
def add_broadcasting(torch: ModuleType) -> Timed:
    a, row = torch.randn(10, 10, requires_grad=True), torch.randn(10, requires_grad=True)
    return lambda: a + row


@case("item()")
def item(torch: ModuleType) -> Timed:
    a = torch.randn(())
    return lambda: a.item()


@case("zeros(10)")
def zeros(torch: ModuleType) -> Timed:
    return lambda: torch.zeros(10)


@case("mul under no_grad 10x10")
def mul_under_no_grad(torch: ModuleType) -> Timed:
    a, b = _pair(torch, 10, 10)

    def step():
        with torch.no_grad():
            return a * b

    return step


@case("in place: mul_, add_ 10x10")
def in_place(torch: ModuleType) -> Timed:
    a, b = torch.zeros(10, 10), torch.randn(10, 10)

    def step():
        a.mul_(0.5)
        return a.add_(b)

    return step


@case("in place: add_ 10x10")
def add_in_place(torch: ModuleType) -> Timed:
    a, b = torch.zeros(10, 10), torch.randn(10, 10)
    return lambda: a.add_(b)


@case("in place on a history, forward and backward")
def in_place_on_history(torch: ModuleType) -> Timed:
    a, b = _pair(torch, 10, 10)
    seed = torch.ones(10, 10)

    def step():
        a.grad = b.grad = None
        y = a * 2.0
        y += b
        y.backward(seed)
        return a.grad

    return step


# ---------------------------------------------------------------- chains


@case("chain of 20 mul, forward and backward")
def chain_of_mul(torch: ModuleType) -> Timed:
    x, factor = _pair(torch, 10, 10)
    seed = torch.ones(10, 10)

    def step():
        x.grad = factor.grad = None
        y = x
        for _ in range(20):
            y = y * factor
        y.backward(seed)
        return x.grad

    return step


@case("chain of mixed operations, forward and backward")
def chain_of_mixed(torch: ModuleType) -> Timed:
    x, w = _pair(torch, 10, 10)

    def step():
        x.grad = w.grad = None
        y = torch.tanh(x @ w) + x
        y = torch.sigmoid(y * w - 0.5)
        y = torch.exp(-y) / (1.0 + y)
        y = torch.relu(y.t() - y.mean())
        (y**2).sum().backward()
        return x.grad

    return step


@case("scalar graph, forward and backward")
def scalar_graph(torch: ModuleType) -> Timed:
    """Compute the expression in micrograd's README on zero-dimensional tensors."""
    a = torch.tensor(-4.0, requires_grad=True)
    b = torch.tensor(2.0, requires_grad=True)

    def step():
        a.grad = b.grad = None
        c = a + b
        d = a * b + b**3
        c = c + c + 1
        c = c + 1 + c + (-a)
        d = d + d * 2 + (b + a).relu()
        d = d + 3 * d + (b - a).relu()
        e = c - d
        f = e**2
        g = f / 2.0
        g = g + 10.0 / f
        g.backward()
        return a.grad

    return step


# ---------------------------------------------------------------- views and indexing


def _view(name: str, view, *shape: int) -> None:
    @case(f"view: {name}")
    def forward(torch: ModuleType) -> Timed:
        x = torch.randn(*shape, requires_grad=True)
        return lambda: view(x)

    @case(f"view: {name}, forward and backward")
    def forward_and_backward(torch: ModuleType) -> Timed:
        x = torch.randn(*shape, requires_grad=True)
        seed = torch.ones_like(view(x)).detach()

        def step():
            x.grad = None
            view(x).backward(seed)
            return x.grad

        return step


_view("t", lambda x: x.t(), 10, 10)
_view("reshape", lambda x: x.reshape(100), 10, 10)
_view("transpose", lambda x: x.transpose(0, 1), 10, 10)
_view("expand", lambda x: x.expand(5, 10, 10), 10, 10)
_view("unsqueeze", lambda x: x.unsqueeze(1), 10, 10)
_view("slice x[2:8]", lambda x: x[2:8], 10, 10)
_view("int x[3]", lambda x: x[3], 10, 10)
_view("ints x[3, 4]", lambda x: x[3, 4], 10, 10)


@case("index by a tensor")
def index_by_tensor(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)
    index = torch.tensor([0, 3, 3, 7])
    return lambda: x[index]


@case("index by a tensor, forward and backward")
def index_by_tensor_backward(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)
    index = torch.tensor([0, 3, 3, 7])
    seed = torch.ones(4, 10)

    def step():
        x.grad = None
        x[index].backward(seed)
        return x.grad

    return step


def _joining(name: str) -> None:
    @case(f"{name} of 4")
    def join(torch: ModuleType) -> Timed:
        parts = [torch.randn(5, 10, requires_grad=True) for _ in range(4)]
        return lambda: getattr(torch, name)(parts)


_joining("cat")
_joining("stack")


@case("cat of 4, forward and backward")
def cat(torch: ModuleType) -> Timed:
    parts = [torch.randn(5, 10, requires_grad=True) for _ in range(4)]
    seed = torch.ones(20, 10)

    def step():
        for part in parts:
            part.grad = None
        torch.cat(parts).backward(seed)
        return parts[0].grad

    return step


# ---------------------------------------------------------------- reductions


@case("reduction: sum")
def total(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)
    return lambda: x.sum()


def _reduction(name: str, reduce) -> None:
    @case(f"reduction: {name}, forward and backward")
    def forward_and_backward(torch: ModuleType) -> Timed:
        x = torch.randn(10, 10, requires_grad=True)

        def step():
            x.grad = None
            reduce(x).backward()
            return x.grad

        return step


_reduction("sum", lambda x: x.sum())
_reduction("mean", lambda x: x.mean())
_reduction("max", lambda x: x.max())
_reduction("sum over a dim, then sum", lambda x: x.sum(dim=1).sum())


@case("softmax 10x10, forward and backward")
def softmax(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)
    seed = torch.randn(10, 10)

    def step():
        x.grad = None
        torch.softmax(x, dim=1).backward(seed)
        return x.grad

    return step


@case("cross entropy 10x10, forward and backward")
def cross_entropy(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)
    target = torch.arange(10)

    def step():
        x.grad = None
        torch.nn.functional.cross_entropy(x, target).backward()
        return x.grad

    return step


# ---------------------------------------------------------------- modules, training, the rest of autograd


@case("nn.Linear(10, 10)")
def linear(torch: ModuleType) -> Timed:
    layer = torch.nn.Linear(10, 10)
    x = torch.randn(10, 10)
    return lambda: layer(x)


def _training_step(name: str, make_optimizer) -> None:
    @case(f"MLP 8-16-4 step with {name}")
    def step_of_training(torch: ModuleType) -> Timed:
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        loss_function = torch.nn.CrossEntropyLoss()
        optimizer = make_optimizer(torch.optim, model.parameters())
        x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 3])

        def step():
            optimizer.zero_grad()
            loss = loss_function(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

        return step


_training_step("SGD", lambda optim, parameters: optim.SGD(parameters, lr=0.01))
_training_step("SGD, momentum", lambda optim, parameters: optim.SGD(parameters, lr=0.01, momentum=0.9))
_training_step("Adam", lambda optim, parameters: optim.Adam(parameters, lr=0.001))


def _update(name: str, make_optimizer) -> None:
    @case(f"{name} zero_grad+step, 50 parameters")
    def update(torch: ModuleType) -> Timed:
        parameters = [torch.nn.Parameter(torch.randn(10)) for _ in range(50)]
        gradients = [torch.randn(10) for _ in parameters]
        optimizer = make_optimizer(torch.optim, parameters)

        def step():
            optimizer.zero_grad()
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()
            return parameters[0]

        return step


# PyTorch uses its faster implementation, which works on lists of tensors.
_update("SGD", lambda optim, parameters: optim.SGD(parameters, lr=1e-6, foreach=True))
_update("Adam", lambda optim, parameters: optim.Adam(parameters, lr=1e-6, foreach=True))


@case("RNN unrolled 30 steps, forward and backward")
def unrolled_rnn(torch: ModuleType) -> Timed:
    into, within = torch.nn.Linear(8, 16), torch.nn.Linear(16, 16)
    sequence, start = torch.randn(30, 4, 8), torch.zeros(4, 16)
    parameters = [*into.parameters(), *within.parameters()]

    def step():
        for parameter in parameters:
            parameter.grad = None
        hidden = start
        for x in sequence:
            hidden = torch.tanh(into(x) + within(hidden))
        hidden.sum().backward()
        return parameters[0].grad

    return step


@case("custom Function, forward and backward")
def custom_function(torch: ModuleType) -> Timed:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3.0 * x * x * grad

    x = torch.randn(10, 10, requires_grad=True)
    seed = torch.ones(10, 10)

    def step():
        x.grad = None
        Cube.apply(x).backward(seed)
        return x.grad

    return step


@case("custom Function that saves its input, squared and summed, forward and backward")
def custom_square(torch: ModuleType) -> Timed:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = torch.randn(10, 10, requires_grad=True)

    def step():
        x.grad = None
        (Square.apply(x) ** 2).sum().backward()
        return x.grad

    return step


@case("second derivative through a small network")
def second_derivative_of_network(torch: ModuleType) -> Timed:
    net = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
    inputs = torch.randn(5, 10, requires_grad=True)
    parameters = list(net.parameters())

    def step():
        (first,) = torch.autograd.grad(net(inputs).sum(), inputs, create_graph=True)
        return torch.autograd.grad((first * first).sum(), parameters, allow_unused=True)[0]

    return step


def _chain(torch: ModuleType, x, each) -> None:
    result = x
    for _ in range(10):
        result = each(result)
    result.backward(torch.ones(10, 10))


@case("hooks on ten tensors")
def tensor_hooks(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)

    def double_and_hook(tensor):
        doubled = tensor * 2
        doubled.register_hook(lambda grad: None)
        return doubled

    def step():
        x.grad = None
        _chain(torch, x, double_and_hook)
        return x.grad

    return step


@case("hooks that replace the gradient on ten tensors")
def replacing_hooks(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)

    def double_and_hook(tensor):
        doubled = tensor * 2
        doubled.register_hook(lambda grad: grad * 0.5)
        return doubled

    def step():
        x.grad = None
        _chain(torch, x, double_and_hook)
        return x.grad

    return step


@case("saved-tensor hooks")
def saved_tensor_hooks(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)

    def step():
        x.grad = None
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
            _chain(torch, x, lambda tensor: tensor.tanh() * x)
        return x.grad

    return step


@case("autograd.grad, second derivative")
def second_derivative(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)

    def step():
        y = (x * x * x).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return second

    return step


@case("second derivative of a short chain")
def second_derivative_of_chain(torch: ModuleType) -> Timed:
    x = torch.randn(10, 10, requires_grad=True)

    def step():
        y = torch.exp(torch.sin(x)).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return second

    return step
