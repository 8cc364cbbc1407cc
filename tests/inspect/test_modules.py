"""Frames are calls of modules, with the paths of the modules. Graphs find the names of parameters automatically."""

import gc
import subprocess
import sys
import threading
from unittest import mock

import pytest

import adjoint as torch
from adjoint import nn
from adjoint._runtime.sequence import module_calls
from adjoint.inspect.modules import calls_of
from adjoint.inspect.snapshot import snapshot
from tests.inspect.models import GPT, Attention

functional = nn.functional


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv_1, self.norm_1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv_2, self.norm_2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.relu(self.norm_1(self.conv_1(x)))
        return self.relu(x + self.norm_2(self.conv_2(y)))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(256, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = functional.avg_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.avg_pool2d(functional.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x)))))


class Unrolled(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(5, 1)

    def forward(self, x):
        state = None
        for step in x:
            state = self.cell(step, state)
        return self.out(state if isinstance(state, torch.Tensor) else state[0])


class Routed(nn.Module):
    """A module that calls some of its experts: one expert twice, and one expert through another method."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4), "never": nn.Linear(4, 4)})
        self.gate = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())

    def mixed(self, x):
        return self.gate(x) * self.experts["a"](x) + self.experts["b"](self.experts["a"](x))

    def forward(self, x):
        return self.mixed(x).exp()


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = self.right = nn.Linear(4, 4)

    def forward(self, x):
        return self.left(x).relu() + self.right(x)


class Scaled(nn.Module):
    """A module with a parameter and a submodule."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 4), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.scale * self.inner(x)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.Linear(4, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 4), nn.SiLU(), nn.Linear(4, 8))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean + torch.exp(log_variance / 2))


def images(channels=3):
    return torch.ones(2, channels, 8, 8) * torch.arange(8.0)


MODELS = {
    "linear": (lambda: nn.Linear(4, 2), lambda: torch.ones(3, 4)),
    "perceptron": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), lambda: torch.ones(5, 4)),
    "one operation each": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sigmoid(), nn.Softmax(1)),
        lambda: torch.ones(3, 4),
    ),
    "relu after a batch norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        images,
    ),
    "nested": (
        lambda: nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.ReLU()), nn.Linear(4, 1)),
        lambda: torch.ones(3, 4),
    ),
    "nothing to do": (
        lambda: nn.Sequential(nn.Identity(), nn.Linear(4, 4), nn.Dropout(0.0).eval(), nn.Flatten(0)),
        lambda: torch.ones(3, 4),
    ),
    "lenet": (LeNet, lambda: torch.ones(2, 1, 28, 28)),
    "residual": (lambda: nn.Sequential(nn.Conv2d(3, 4, 1), Residual(4), Residual(4), nn.Flatten(1)), images),
    "attention": (lambda: Attention(8, 2), lambda: torch.ones(2, 3, 8)),
    "transformer": (lambda: GPT(3, width=8, heads=2), lambda: torch.zeros(2, 4, dtype=torch.long)),
    "recurrent cell": (lambda: Unrolled(nn.RNNCell(4, 5)), lambda: torch.ones(30, 2, 4)),
    "gated cell": (lambda: Unrolled(nn.GRUCell(4, 5)), lambda: torch.ones(6, 2, 4)),
    "long short-term cell": (lambda: Unrolled(nn.LSTMCell(4, 5)), lambda: torch.ones(6, 2, 4)),
    "experts": (Routed, lambda: torch.ones(3, 4)),
    "one module, two names": (Twins, lambda: torch.ones(3, 4)),
    "own parameter": (Scaled, lambda: torch.ones(3, 4)),
    "autoencoder": (Autoencoder, lambda: torch.ones(3, 8)),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        lambda: torch.ones(2, 3, 8),
    ),
    "pooling": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        ),
        images,
    ),
    "normalizations": (
        lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.Conv2d(4, 2, 1), nn.PReLU()),
        lambda: images(4),
    ),
    "bilinear": (lambda: nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.ELU()), lambda: torch.arange(5)),
}


def calls_seen_by_hooks(model, inputs):
    """Return the result, and the calls of modules that recorded nodes. The path of the enclosing calls describes each call."""
    paths = {}
    for path, module in model.named_modules(remove_duplicate=False):
        paths.setdefault(id(module), path)
    seen, stack, handles = [], [], []

    def before(module, args):
        stack.append((paths[id(module)], type(module).__name__))
        seen.append((tuple(stack), recorded()))

    def after(module, args, result):
        path, begun = next((path, begun) for path, begun in reversed(seen) if path == tuple(stack))
        ended.append((path, begun, recorded()))
        stack.pop()

    ended = []
    for module in {id(module): module for module in model.modules()}.values():
        handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
    result = model(inputs)
    for handle in handles:
        handle.remove()
    return result, ended


def recorded():
    return (torch.ones(1, requires_grad=True) * 1).grad_fn._sequence


@pytest.mark.parametrize("name", MODELS)
def test_frames_are_the_calls_of_modules(name):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make()
    result, ended = calls_seen_by_hooks(model, inputs())
    picture = snapshot([result])
    numbers = [node.sequence for node in picture.nodes if not node.accumulate]
    wanted = [path for path, first, last in ended if any(first < number < last for number in numbers)]
    groups = {group.id: group for group in picture.groups}

    def path_of(group):
        found = []
        while group is not None:
            if group.kind == "module":
                found.append(group.label)
            group = groups.get(group.parent)
        return tuple(reversed(found))

    labels = [tuple(f"{path} ({cls})" if path else cls for path, cls in call) for call in wanted]
    assert sorted(labels) == sorted(path_of(group) for group in picture.groups if group.kind == "module")
    named = {path for path, _ in model.named_modules(remove_duplicate=False)}
    assert {path for call in wanted for path, _ in call} <= named


def test_twenty_models():
    assert len(MODELS) >= 20


@pytest.mark.parametrize("name", MODELS)
def test_parameters_have_the_names_of_the_model_without_being_given(name):
    make, inputs = MODELS[name]
    model = make()
    picture = snapshot([model(inputs())])
    names = {id(parameter): path for path, parameter in reversed(list(model.named_parameters(remove_duplicate=False)))}
    shown = [tensor.name for tensor in picture.tensors if tensor.kind == "leaf"]
    assert set(shown) <= set(names.values())
    assert None not in shown


def test_two_models_are_distinguished_by_their_variables():
    generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    loss = critic(generator(torch.ones(1, 2))).sum()
    picture = torch.inspect.graph(loss).snapshot
    assert [group.label for group in picture.groups] == ["generator (Linear)", "critic (Linear)"]
    leaves = {tensor.name for tensor in picture.tensors if tensor.kind == "leaf"}
    assert leaves == {"generator.weight", "generator.bias", "critic.weight", "critic.bias"}


def test_a_loss_without_parameters_leaves_the_names_of_the_model_as_they_are():
    model, criterion = nn.Linear(2, 3), nn.CrossEntropyLoss()
    loss = criterion(model(torch.ones(1, 2)), torch.tensor([1]))
    picture = torch.inspect.graph(loss).snapshot
    assert [group.label for group in picture.groups] == ["model (Linear)", "criterion (CrossEntropyLoss)"]
    assert {tensor.name for tensor in picture.tensors if tensor.kind == "leaf"} == {"weight", "bias"}


def test_a_model_out_of_sight_is_found_as_it_ran():
    def loss_of():
        hidden = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        kept.append(hidden)
        return hidden(torch.ones(1, 2)).sum()

    kept = []
    picture = torch.inspect.graph(loss_of()).snapshot
    assert [group.label for group in picture.groups] == ["Sequential", "0 (Linear)", "1 (ReLU)"]


def test_saved_parameters_are_called_by_their_names():
    model = LeNet()
    picture = snapshot([model(torch.ones(1, 1, 28, 28)).sum()])
    names = {tensor.id: tensor.name for tensor in picture.tensors}
    first = next(node for node in picture.nodes if node.name == "ConvolutionBackward0")
    assert {saved.name: names.get(saved.tensor) for saved in first.saved}["weight"] == "conv1.weight"


def test_calls_note_no_module_for_life():
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2))
    with mock.patch.object(gc, "isenabled", return_value=False):
        import weakref

        watched = weakref.ref(model)
        del model
        assert watched() is None


def test_calls_that_record_nothing_are_not_noted():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    count = len(module_calls)
    nn.ReLU()(torch.ones(2))
    assert len(module_calls) == count
    with torch.no_grad():
        model[0](torch.ones(2))
    assert len(module_calls) == count


def frames(*results):
    """Return the labels of the frames of modules, and the operations in each."""
    picture = snapshot(results)
    inside = {group.id: [] for group in picture.groups}
    names = {node.id: node.name for node in picture.nodes if not node.accumulate}
    parents = {group.id: group.parent for group in picture.groups}
    for group in picture.groups:
        up = group.id
        while up is not None:
            inside[up] += [names[node] for node in group.nodes if node in names]
            up = parents[up]
    return {group.label: sorted(inside[group.id]) for group in picture.groups if group.kind == "module"}


def test_each_of_two_threads_that_record_at_once_has_its_frames():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    barrier, results = threading.Barrier(2), {}

    class Waiting(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            barrier.wait(10)
            y = self.model(x).exp()
            barrier.wait(10)
            return y

    class Later(nn.Module):
        def forward(self, x):
            y = x * 2
            barrier.wait(10)
            barrier.wait(10)
            return y.sin()

    waiting, later = Waiting(), nn.Sequential(Later(), nn.Tanh())
    inputs = {waiting: torch.ones(2), later: torch.ones(2, requires_grad=True)}

    def run(module):
        results[module] = module(inputs[module])

    threads = [threading.Thread(target=run, args=(module,)) for module in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    linear = ["AddmmBackward0", "TBackward0", "ViewBackward0"]
    of_waiting = {
        "Waiting": sorted([*linear, "ExpBackward0", "ReluBackward0"]),
        "model (Sequential)": sorted([*linear, "ReluBackward0"]),
        "model.0 (Linear)": linear,
        "model.1 (ReLU)": ["ReluBackward0"],
    }
    of_later = {
        "Sequential": ["MulBackward0", "SinBackward0", "TanhBackward0"],
        "0 (Later)": ["MulBackward0", "SinBackward0"],
        "1 (Tanh)": ["TanhBackward0"],
    }
    assert frames(results[waiting]) == of_waiting
    assert frames(results[later]) == of_later
    together = frames(results[waiting] + results[later])
    assert sorted(together.values()) == sorted([*of_waiting.values(), *of_later.values()])


@pytest.mark.thorough
def test_one_thread_notes_no_results():
    program = "import adjoint as torch; torch.inspect; torch.nn.Tanh()(torch.ones(1, requires_grad=True)); "
    program += "from adjoint._runtime.sequence import module_calls; assert module_calls[-1][4] is None"
    subprocess.run([sys.executable, "-c", program], check=True)


CALLED = "import adjoint as torch; from adjoint._runtime import sequence; y = torch.nn.Linear(1, 1)(torch.ones(1)); "


@pytest.mark.thorough
def test_calls_are_noted_only_where_a_graph_may_be_looked_at():
    programs = [
        "assert not sequence.watchers and not sequence.module_calls",
        "assert len(sequence.module_calls) == 1\ndef later(): return torch.inspect",
    ]
    for program in programs:
        subprocess.run([sys.executable, "-c", CALLED + program], check=True)


@pytest.mark.thorough
def test_modules_that_ran_before_inspect_was_imported_are_missed():
    program = "late = getattr(torch, 'ins' + 'pect'); "
    program += "late.graph(torch.ones(1, requires_grad=True) * 2); late.graph(y)"
    done = subprocess.run([sys.executable, "-c", CALLED + program], check=True, capture_output=True, text=True)
    assert done.stderr.count("before adjoint.inspect was imported") == 1


def test_modules_that_are_gone_leave_frames_of_their_classes():
    result = nn.Sequential(nn.Linear(2, 2), nn.Tanh())(torch.ones(3, 2))
    assert list(frames(result)) == ["Sequential", "Linear", "Tanh"]


@pytest.mark.thorough
def test_a_model_of_two_thousand_layers_has_all_its_frames():
    model = nn.Sequential(*[nn.Sequential(nn.Tanh(), nn.ReLU()) for _ in range(2000)])
    node, following = model(torch.ones(1, requires_grad=True)).grad_fn, {}
    while not hasattr(node, "variable"):
        (after, _), *_ = node.next_functions
        following[node._sequence_nr()] = [after._sequence_nr()]
        node = after
    calls = calls_of(following)
    assert len(calls) == 6001
    assert [call.label for call in calls[-3:]] == ["Sequential", "Tanh", "ReLU"]


def described(loss):
    """Return the input shapes, output shapes and number of parameters of each group."""
    return {group.label: (group.takes, group.gives, group.parameters) for group in snapshot([loss]).groups}


def test_an_input_that_requires_grad_is_no_parameter():
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    found = described(net(torch.ones(3, 8, requires_grad=True)).sum())
    assert found == {
        "Sequential": ([[3, 8]], [[3, 4]], 36),
        "0 (Linear)": ([[3, 8]], [[3, 4]], 36),
        "1 (ReLU)": ([[3, 4]], [[3, 4]], 0),
    }


def test_a_weight_of_two_modules_is_no_input():
    net = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50, bias=False))
    net[1].weight = net[0].weight
    found = described(net(torch.arange(4)).sum())
    assert found["0 (Embedding)"] == ([[4]], [[4, 16]], 800)
    assert found["1 (Linear)"] == ([[4, 16]], [[4, 50]], 800)
    assert found["Sequential"] == ([[4]], [[4, 50]], 800)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return self.layer(x) * 0.5 * torch.ones(3, 4).tril()


def test_a_mask_and_a_number_are_no_inputs():
    net = Masked()
    assert described(net(torch.ones(3, 8)).sum())["Masked"] == ([[3, 8]], [[3, 4]], 36)


def test_a_module_is_no_tensor_and_the_error_says_what_to_do():
    with pytest.raises(TypeError, match=r"got the module Linear.*inspect\.graph\(model\(inputs\)\)"):
        torch.inspect.graph(nn.Linear(2, 2))
