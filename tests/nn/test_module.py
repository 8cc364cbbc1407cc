"""Modules: registration, names, modes, and saving and loading of their state."""

import copy
import gc
import pickle
import weakref

import pytest

import adjoint as torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 2)
        self.scale = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, input):
        return self.first(input) * self.scale


def test_names_come_in_the_order_of_registration():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias"]
    assert [name for name, _ in net.named_buffers()] == ["count", "scratch"]
    assert [name for name, _ in net.named_modules()] == ["", "first"]
    assert list(net.state_dict()) == ["scale", "count", "first.weight", "first.bias"]


def test_a_shared_module_counts_once():
    shared = torch.nn.Linear(2, 2)
    both = torch.nn.Sequential(shared, shared)
    assert len(list(both.parameters())) == 2
    assert len(list(both.modules())) == 2
    assert len(list(both.state_dict())) == 4


def test_an_attribute_cannot_change_its_kind_by_accident():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign 'torch\.FloatTensor' as parameter 'scale'"):
        net.scale = torch.ones(2)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'count'"):
        net.count = "three"
    net.scale = None
    assert net.scale is None
    assert "scale" not in net.state_dict()


def test_an_attribute_can_become_a_parameter():
    net = Net()
    net.extra = 3
    net.extra = torch.nn.Parameter(torch.ones(1))
    assert "extra" not in net.__dict__
    assert "extra" in dict(net.named_parameters())


@pytest.mark.parametrize("name", ["", "a.b", "train"])
def test_names_that_cannot_be_registered(name):
    net = Net()
    before = list(net.state_dict())
    with pytest.raises(KeyError):
        net.register_parameter(name, None)
    with pytest.raises(KeyError):
        net.register_buffer(name, None)
    with pytest.raises(KeyError):
        net.add_module(name, None)
    assert list(net.state_dict()) == before


def test_init_comes_first():
    class Late(torch.nn.Module):
        def __init__(self):
            self.layer = torch.nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Late()


def test_missing_attributes_are_named():
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        _ = Net().nothing


def test_modes_reach_all_modules():
    net = torch.nn.Sequential(Net(), torch.nn.Dropout())
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    assert all(module.training for module in net.train().modules())
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        net.train(1)


def test_apply_visits_children_first():
    seen = []
    net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Tanh())
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["ReLU", "Sequential", "Tanh", "Sequential"]


def test_freezing():
    net = Net()
    net.first.requires_grad_(False)
    net(torch.ones(4, 3)).sum().backward()
    assert net.first.weight.grad is None
    assert net.scale.grad is not None
    net.zero_grad(set_to_none=False)
    assert (net.scale.grad == 0).all()
    net.zero_grad()
    assert net.scale.grad is None


def test_conversion_keeps_the_parameters_themselves():
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 3)).sum().backward()
    net.double()
    assert net.first.weight is weight
    assert weight.dtype == torch.float64
    assert weight.grad.dtype == torch.float64
    assert net.count.dtype == torch.float64
    net.to(torch.float16)
    assert weight.dtype == torch.float16
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        net.to(torch.int64)


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_swapped_tensors_keep_their_names_and_exchange_the_rest():
    one, other = torch.nn.Parameter(torch.ones(2)), torch.zeros(3)
    one.note = "kept with what it describes"
    torch.utils.swap_tensors(one, other)
    assert type(one) is torch.Tensor
    assert one.shape == (3,)
    assert other.note
    assert other.requires_grad
    other.sum().backward()
    assert other.grad.tolist() == [1, 1]
    assert one.grad is None
    reference = weakref.ref(one)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        torch.utils.swap_tensors(other, one)
    assert reference() is one


def test_conversion_can_exchange_parameters(swapping):
    net = Net()
    net(torch.ones(1, 3)).sum().backward()
    kept, grad = net.scale, net.scale.grad
    net.double()
    assert net.scale is kept
    assert net.scale.grad is grad
    assert kept.dtype is grad.dtype is torch.float64
    net.to("meta")
    assert net.scale is kept
    assert kept.is_meta
    reference = weakref.ref(kept)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Net\.scale"):
        net.to_empty(device="cpu")
    assert reference() is kept


def test_a_class_of_tensors_says_what_it_loads(swapping):
    class Doubled(torch.Tensor):
        def module_load(self, other, assign=False):
            return (other * 2).as_subclass(Doubled)

    layer = torch.nn.Linear(2, 2)
    layer.weight = torch.nn.Parameter(torch.zeros(2, 2).as_subclass(Doubled))
    kept = layer.weight
    layer.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.zeros(2, dtype=torch.float64)})
    assert layer.weight is kept
    assert kept.tolist() == [[2, 2], [2, 2]]
    assert layer.bias.dtype is torch.float32


def test_conversion_can_make_new_parameters():
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer = torch.nn.Linear(2, 2)
        before = layer.weight
        layer.double()
        assert layer.weight is not before
        assert before.dtype is torch.float32
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    kept = layer.weight
    assert layer.to("meta").weight is not kept  # the data of a tensor stays on its device


def test_integer_buffers_stay_integers():
    norm = torch.nn.BatchNorm1d(2).half()
    assert norm.num_batches_tracked.dtype == torch.int64
    assert norm.running_mean.dtype == torch.float16


def test_a_state_goes_from_one_module_to_another():
    source, target = Net(), Net()
    kept = target.first.weight
    assert repr(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target.first.weight is kept
    assert (target.first.weight == source.first.weight).all()
    target.load_state_dict(source.state_dict(), assign=True)
    assert target.first.weight is not kept


def test_a_state_that_does_not_fit_says_all_that_is_wrong():
    state = Net().state_dict()
    del state["scale"]
    state["other.x"] = torch.ones(1)
    state["first.bias"] = torch.ones(5)
    with pytest.raises(RuntimeError) as raised:
        Net().load_state_dict(state)
    assert str(raised.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "other.x". \n'
        "\tsize mismatch for first.bias: copying a param with shape torch.Size([5]) from checkpoint, "
        "the shape in current model is torch.Size([2])."
    )


def test_a_partial_state():
    result = Net().load_state_dict({"scale": torch.zeros(2), "x": torch.ones(1)}, strict=False)
    assert result.missing_keys == ["count", "first.weight", "first.bias"]
    assert result.unexpected_keys == ["x"]


def test_a_state_is_detached_and_shares_memory():
    net = Net()
    state = net.state_dict()
    assert not state["scale"].requires_grad
    with torch.no_grad():
        net.scale.fill_(7)
    assert (state["scale"] == 7).all()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale


def test_a_module_with_state_of_its_own():
    class Counter(torch.nn.Module):
        calls = 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    counter = Counter()
    counter.calls = 5
    outer, other = torch.nn.Sequential(counter), torch.nn.Sequential(Counter())
    assert outer.state_dict()["0._extra_state"] == {"calls": 5}
    other.load_state_dict(outer.state_dict())
    assert other[0].calls == 5


def test_state_dict_hooks():
    net, log = Net(), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append(prefix))

    def drop(module, state, prefix, metadata):
        del state[prefix + "count"]

    net.register_state_dict_post_hook(drop)
    assert "x.count" not in net.state_dict(prefix="x.")
    assert log == ["x."]

    def rename(module, state, prefix, *rest):
        state[prefix + "scale"] = state.pop(prefix + "old")

    net = Net()
    net.register_load_state_dict_pre_hook(rename)
    state = net.state_dict()
    state["old"] = state.pop("scale")
    net.load_state_dict(state)
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.load_state_dict({"old": torch.ones(2)})


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies(duplicate):
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    other = duplicate(net)
    assert repr(other) == repr(net)
    assert list(other.state_dict()) == list(net.state_dict())
    assert isinstance(other[0].weight, torch.nn.Parameter)
    with torch.no_grad():
        other[0].weight.fill_(0)
    assert not (net[0].weight == 0).all()
    other(torch.ones(2, 3)).sum().backward()
    assert net[0].bias.grad is None
    assert other[0].bias.grad is not None


def test_submodules_by_path():
    net = torch.nn.Sequential(Net())
    assert net.get_submodule("0.first") is net[0].first
    assert net.get_parameter("0.first.bias") is net[0].first.bias
    assert net.get_buffer("0.count") is net[0].count
    net.set_submodule("0.first", torch.nn.Identity())
    assert isinstance(net[0].first, torch.nn.Identity)
    with pytest.raises(AttributeError, match="Net has no attribute `second`"):
        net.get_submodule("0.second")


def test_printed_form():
    net = torch.nn.Sequential(Net(), torch.nn.Sequential(torch.nn.ReLU()))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Net(\n"
        "    (first): Linear(in_features=3, out_features=2, bias=True)\n"
        "  )\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        ")"
    )


def test_extra_repr_of_several_lines():
    class Wide(torch.nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    assert repr(Wide()) == "Wide(\n  one\n  two\n)"


def test_a_parameter_prints_and_copies_as_one():
    parameter = torch.nn.Parameter(torch.ones(2))
    assert repr(parameter) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(copy.deepcopy(parameter)) is torch.nn.Parameter
    assert type(parameter * 1) is torch.Tensor
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.nn.Parameter(torch.tensor([1]))


def test_a_parameter_shares_memory_with_its_data():
    data = torch.zeros(2)
    parameter = torch.nn.Parameter(data)
    data.fill_(3)
    assert (parameter == 3).all()
    assert parameter.is_leaf


def test_buffers_assigned_as_such():
    module = torch.nn.Module()
    module.kept = torch.nn.Buffer(torch.ones(1))
    module.dropped = torch.nn.Buffer(torch.ones(1), persistent=False)
    module.plain = torch.ones(1)
    assert list(module.state_dict()) == ["kept"]
    assert [name for name, _ in module.named_buffers()] == ["kept", "dropped"]


def test_modules_die_by_reference_counting():
    gc.disable()
    try:
        net = Net()
        net(torch.ones(1, 3)).sum().backward()
        reference = weakref.ref(net)
        del net
        assert reference() is None
    finally:
        gc.enable()


class Wrapped(torch.Tensor):
    """A tensor that contains another tensor."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Wrapped(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return cls(func(args[0].inner, *args[1:], **(kwargs or {})))


def test_a_conversion_to_tensors_that_contain_others_keeps_the_parameters():
    module = torch.nn.Linear(2, 1)
    weight = module.weight
    module._apply(Wrapped)
    assert module.weight is weight
    assert isinstance(weight, Wrapped)
    assert isinstance(weight, torch.nn.Parameter)


def test_a_buffer_does_not_replace_an_ordinary_attribute():
    module = torch.nn.Module()
    module.count = 5
    with pytest.raises(KeyError, match="attribute 'count' already exists"):
        module.count = torch.nn.Buffer(torch.zeros(1))
    assert module.count == 5


def test_a_buffer_is_registered_by_an_older_override_without_persistence():
    class Older(torch.nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    module = Older()
    module.kept = torch.nn.Buffer(torch.zeros(1))
    assert list(module.state_dict()) == ["kept"]
    with pytest.raises(RuntimeError, match="without the persistent argument"):
        module.scratch = torch.nn.Buffer(torch.zeros(1), persistent=False)


def test_loading_a_state_leaves_no_cyclic_garbage():
    module = torch.nn.Linear(2, 2)
    state = module.state_dict()
    module.load_state_dict(state)
    gc.collect()
    gc.disable()
    try:
        module.load_state_dict(state)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # with PyTorch
def test_a_lazy_module_is_scripted_after_its_first_call():
    module = torch.nn.Sequential(torch.nn.LazyLinear(2))
    with pytest.raises(RuntimeError, match=r"LazyLinear' has uninitialized parameters weight\. Did you forget"):
        torch.jit.script(module)
    x = torch.ones(1, 3)
    assert module(x).equal(torch.jit.script(module)(x))


def test_to_gives_tensors_with_four_or_five_dimensions_a_memory_format():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.Conv1d(3, 4, 2))
    module[0].weight.grad = torch.ones_like(module[0].weight)
    before = module[0].weight.detach().clone()
    assert module.to(torch.float64, memory_format=torch.channels_last) is module
    for tensor in (module[0].weight, module[0].weight.grad):
        assert tensor.is_contiguous(memory_format=torch.channels_last)
        assert tensor.dtype == torch.float64
    assert torch.equal(module[0].weight, before.double())
    assert module[1].weight.is_contiguous()
    assert module.to(memory_format=torch.contiguous_format)[0].weight.is_contiguous()
    with pytest.raises(TypeError, match=r"memory_format=int"):
        module.to(memory_format=3)
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        torch.nn.Conv3d(1, 1, 1).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("layer", [torch.nn.LazyLinear(2), torch.nn.LazyConv1d(2, 1)])
def test_a_lazy_module_is_converted_before_its_first_call(layer):
    assert layer.to("cpu").to(torch.float64) is layer
    assert layer(torch.ones(1, 2, 3, dtype=torch.float64)).dtype == layer.weight.dtype == torch.float64
