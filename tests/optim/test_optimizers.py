"""Optimizers: steps, refused arguments, printed form, and saved states."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

import adjoint as torch

optim = torch.optim


def parameter(*values):
    return torch.tensor(values, requires_grad=True)


# The results of PyTorch 2.13 after three steps from (1, -2), for the function x² + 3 y².
DESCENTS = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}, [0.024319041520357132, 1.7260018587112427]),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, [-0.10835198312997818, 0.6081278920173645]),
    ("Adam", {"lr": 0.1}, [0.7015863060951233, -1.7006233930587769]),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}, [0.7015863060951233, -1.7006233930587769]),
    ("AdamW", {"lr": 0.1}, [0.6989112496376038, -1.6949446201324463]),
    ("Adagrad", {"lr": 0.1}, [0.7804561853408813, -1.7758214473724365]),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}, [-1.0394787788391113, 1.4190866947174072]),
    ("Adadelta", {}, [0.9903090596199036, -1.9903007745742798]),
    ("Adamax", {"lr": 0.1}, [0.7154994010925293, -1.7076482772827148]),
    ("NAdam", {"lr": 0.1}, [0.7527292370796204, -1.7475085258483887]),
    ("RAdam", {"lr": 0.1}, [0.4623033404350281, 0.5344727635383606]),
    ("ASGD", {"lr": 0.1}, [0.5119836330413818, -0.12799470126628876]),
    ("Rprop", {"lr": 0.1}, [0.6359999775886536, -1.6359999179840088]),
]


def bowl(w):
    return (w * w * torch.tensor([1.0, 3.0])).sum()


def descend(optimizer, w, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        bowl(w).backward()
        optimizer.step()


@pytest.mark.parametrize(("name", "options", "expected"), DESCENTS)
def test_first_steps_of_each_optimizer(name, options, expected):
    w = parameter(1.0, -2.0)
    descend(getattr(optim, name)([w], **options), w, 3)
    assert w.tolist() == pytest.approx(expected, rel=1e-5)
    assert w.is_leaf


@pytest.mark.parametrize(("name", "options"), [(name, options) for name, options, _ in DESCENTS])
def test_ascent_is_descent_of_the_negative(name, options):
    up, down = parameter(0.5, -0.25), parameter(0.5, -0.25)
    options = {**options, "weight_decay": 0} if "weight_decay" in options else options
    if name == "AdamW":
        options = {**options, "weight_decay": 0}
    climbing = getattr(optim, name)([up], maximize=True, **options)
    falling = getattr(optim, name)([down], **options)
    for _ in range(3):
        up.grad, down.grad = torch.tensor([0.5, -1.0]), torch.tensor([-0.5, 1.0])
        climbing.step()
        falling.step()
    assert up.tolist() == pytest.approx(down.tolist(), rel=1e-6)


@pytest.mark.parametrize(("name", "options"), [(name, options) for name, options, _ in DESCENTS])
def test_a_state_is_all_that_is_needed_to_go_on(name, options):
    w = parameter(1.0, -2.0)
    optimizer = getattr(optim, name)([w], **options)
    descend(optimizer, w, 3)
    other = parameter(*w.tolist())
    resumed = getattr(optim, name)([other], lr=5.0)
    resumed.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    assert str(resumed.state_dict()) == str(optimizer.state_dict())
    descend(optimizer, w, 3)
    descend(resumed, other, 3)
    assert other.tolist() == w.tolist()


def test_lbfgs_finds_the_bottom():
    w = parameter(1.0, -2.0)
    for search in (None, "strong_wolfe"):
        optimizer = optim.LBFGS([w], lr=0.5, line_search_fn=search)

        def closure(optimizer=optimizer):
            optimizer.zero_grad()
            loss = bowl(w - 3)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert w.tolist() == pytest.approx([3, 3], abs=1e-3)


def test_the_structure_of_a_state():
    w = parameter(1.0)
    optimizer = optim.Adam([w], lr=0.5, amsgrad=True)
    w.grad = torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert state["state"][0]["step"].tolist() == 1
    assert state["param_groups"] == [
        {
            "lr": 0.5,
            "betas": (0.9, 0.999),
            "eps": 1e-08,
            "weight_decay": 0,
            "amsgrad": True,
            "maximize": False,
            "foreach": None,
            "capturable": False,
            "differentiable": False,
            "fused": None,
            "decoupled_weight_decay": False,
            "params": [0],
        }
    ]


def test_plain_descent_remembers_nothing():
    w = parameter(1.0)
    optimizer = optim.SGD([w], lr=0.5)
    w.grad = torch.ones(1)
    optimizer.step()
    assert optimizer.state_dict()["state"] == {}
    assert w.item() == 0.5


def test_parameters_without_gradient_stay():
    moved, kept = parameter(1.0), parameter(1.0)
    moved.grad = torch.ones(1)
    optim.AdamW([moved, kept]).step()
    assert kept.item() == 1
    assert moved.item() != 1


def test_groups_have_their_own_options():
    slow, fast = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": [slow]}, {"params": fast, "lr": 0.5}], lr=0.1)
    slow.grad, fast.grad = torch.ones(1), torch.ones(1)
    optimizer.step()
    assert (slow.item(), fast.item()) == pytest.approx((0.9, 0.5))


def test_printed_form():
    assert repr(optim.SGD([parameter(1.0)], lr=0.1)) == (
        "SGD (\n"
        "Parameter Group 0\n"
        "    dampening: 0\n"
        "    differentiable: False\n"
        "    foreach: None\n"
        "    fused: None\n"
        "    lr: 0.1\n"
        "    maximize: False\n"
        "    momentum: 0\n"
        "    nesterov: False\n"
        "    weight_decay: 0\n"
        ")"
    )


def test_gradients_are_dropped_or_zeroed():
    w = parameter(1.0)
    optimizer = optim.SGD([w])
    w.grad = torch.ones(1)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0]
    optimizer.zero_grad()
    assert w.grad is None


def test_a_closure_is_evaluated_with_grad():
    w = parameter(2.0)
    optimizer = optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 4
    assert w.item() == pytest.approx(1.6)


def test_step_hooks():
    w, log = parameter(1.0), []
    optimizer = optim.SGD([w])
    first = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: log.append("before"))
    optimizer.register_step_post_hook(lambda optimizer, args, kwargs: log.append("after"))
    optimizer.step()
    first.remove()
    optimizer.step()
    assert log == ["before", "after", "after"]


def test_an_optimizer_of_ones_own():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for param in group["params"]:
                    param.sub_(group["lr"] * param.grad.sign())

    w, log = parameter(1.0, -1.0), []
    optimizer = Sign([w], 0.5)
    optimizer.register_step_post_hook(lambda *_: log.append(1))
    w.grad = torch.tensor([3.0, -4.0])
    optimizer.step()
    assert w.tolist() == [0.5, -0.5]
    assert log == [1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.SGD(parameter(1.0)), TypeError, "iterable of Tensors or dicts, but got torch.FloatTensor"),
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD([3]), TypeError, "can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([parameter(1.0) * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([parameter(1.0)], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([parameter(1.0)], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam([parameter(1.0)], betas=(1.0, 0)), ValueError, "Invalid beta parameter at index 0"),
        (lambda: optim.Adam([parameter(1.0)], eps=-1), ValueError, "Invalid epsilon value"),
        (lambda: optim.SGD([{"params": {parameter(1.0)}}]), TypeError, "ordered collections"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_parameter_belongs_to_one_group():
    w = parameter(1.0)
    optimizer = optim.SGD([w])
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [w]})
    assert len(optimizer.param_groups) == 1
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([w, w])


def test_states_that_do_not_fit():
    optimizer = optim.SGD([parameter(1.0)])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_loaded_state_has_the_dtype_of_its_parameter():
    single = parameter(1.0)
    single.grad = torch.ones(1)
    source = optim.Adam([single])
    source.step()
    double = torch.ones(1, dtype=torch.float64, requires_grad=True)
    target = optim.Adam([double])
    target.load_state_dict(source.state_dict())
    assert target.state[double]["exp_avg"].dtype == torch.float64
    assert target.state[double]["step"].dtype == torch.float32


def test_loaded_step_counts_of_capturable_optimizers_are_float32_tensors():
    weight = parameter(1.0)
    groups = [{"params": [4], "fused": False, "capturable": False}, {"params": [5], "capturable": True}]
    convert = optim.Optimizer._process_value_according_to_param_policy
    wide = torch.ones(1, dtype=torch.float64)
    assert convert(weight, wide, 4, groups, "step") is wide
    assert convert(weight, wide, 5, groups, "step").dtype == torch.float32
    assert convert(weight, wide, 4, groups, "exp_avg").dtype == torch.float32
    assert convert(torch.zeros(1, dtype=torch.int64), wide, 4, groups) is wide


def test_copies_have_parameters_of_their_own():
    w = parameter(1.0)
    w.grad = torch.ones(1)
    optimizer = optim.Adam([w])
    optimizer.step()
    other = copy.deepcopy(optimizer)
    assert other.param_groups[0]["params"][0] is not w
    assert list(next(iter(other.state.values()))) == ["step", "exp_avg", "exp_avg_sq"]


def test_names_of_parameters():
    layer = torch.nn.Linear(1, 1)
    optimizer = optim.SGD(layer.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]


def test_complex_parameters_descend():
    w = torch.tensor([1 + 2j], requires_grad=True)
    for name in ("SGD", "Adam", "RMSprop", "Adagrad"):
        optimizer = getattr(optim, name)([w], lr=0.1)
        before = w.abs().item()
        for _ in range(3):
            optimizer.zero_grad()
            (w * w.conj()).real.sum().backward()
            optimizer.step()
        assert w.abs().item() < before, name


def test_training_leaves_no_garbage():
    gc.collect()
    gc.disable()
    try:
        w = parameter(1.0, -2.0)
        optimizer = optim.Adam([w], lr=0.01)
        descend(optimizer, w, 20)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "NAdam"])
def test_a_change_by_a_step_is_seen_by_backward(name):
    w = parameter(1.0, -2.0)
    w.grad = torch.ones(2)
    loss = (w * w).sum()
    optimizer = getattr(optim, name)([w])
    optimizer.step()
    assert w._version > 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_list_takes_the_steps_of_its_members():
    shapes = [(3,), (), (2, 5), (80, 80), (1,)]
    for name, options, _ in DESCENTS:
        together, alone = ([torch.nn.Parameter(torch.ones(s) * 0.5) for s in shapes] for _ in range(2))
        optimizers = [getattr(optim, name)(together, **options)] + [getattr(optim, name)([p], **options) for p in alone]
        for step in range(3):
            for i, (p, q) in enumerate(zip(together, alone, strict=True)):
                p.grad = None if step == 1 and i == 0 else torch.full(p.shape, 0.1 * (i + 1) * (step + 1))
                q.grad = p.grad
            for optimizer in optimizers:
                optimizer.step()
        assert [p.tolist() for p in together] == [q.tolist() for q in alone], name


def test_a_parameter_listed_twice_takes_two_steps():
    w = parameter(1.0)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([w, w], lr=0.25, momentum=0.5)
    w.grad = torch.ones(1)
    optimizer.step()
    assert w.item() == 0.5  # in the first step, the momentum equals the gradient
    optimizer.step()
    assert w.item() == 0.5 - 0.25 * 1.5 - 0.25 * 1.75


def test_parameters_on_one_memory_are_updated_in_turn():
    data = torch.ones(2)
    first, second = torch.nn.Parameter(data), torch.nn.Parameter(data)
    first.grad, second.grad = torch.zeros(2), torch.zeros(2)
    optim.SGD([first, second], lr=0.5, weight_decay=1.0).step()
    assert data.tolist() == [0.25, 0.25]


def test_state_that_does_not_fit_is_refused():
    w = parameter(1.0, 2.0)
    w.grad = torch.ones(2)
    optimizer = optim.Adam([w])
    optimizer.step()
    optimizer.state[w]["exp_avg"] = torch.zeros(3)
    with pytest.raises(RuntimeError):
        optimizer.step()


def test_optimizers_step_in_several_threads_at_once():
    def run(seed):
        params = [torch.nn.Parameter(torch.full((4,), float(seed + i))) for i in range(12)]
        optimizer = optim.Adam(params, lr=0.1)
        for _ in range(40):
            for p in params:
                p.grad = p.detach() * 0.5
            optimizer.step()
        return [p.tolist() for p in params]

    expected = [run(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == expected


@pytest.mark.parametrize(
    "name", ["Adadelta", "Adagrad", "Adam", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "Adafactor"]
)
def test_numbers_in_an_older_state_become_tensors(name):
    w = parameter(1.0, -2.0)
    optimizer = getattr(optim, name)([w])
    (w * w).sum().backward()
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    tensors = {key: value.dtype for key, value in state["state"][0].items() if value.dim() == 0}
    state["state"][0].update({key: state["state"][0][key].item() for key in tensors})
    again = parameter(*w.tolist())
    again.grad = w.grad.clone()
    resumed = getattr(optim, name)([again])
    resumed.load_state_dict(state)
    assert {key: resumed.state[again][key].dtype for key in tensors} == tensors
    optimizer.step()
    resumed.step()
    assert again.tolist() == w.tolist()


@pytest.mark.parametrize(
    ("name", "options"), [("Adam", {"amsgrad": True}), ("AdamW", {"amsgrad": True}), ("Adamax", {})]
)
def test_largest_values_so_far_are_written_over_after_they_are_recorded(name, options):
    w, grad = (
        torch.tensor([1.0, 2.0], dtype=torch.float64),
        torch.tensor([0.5, 0.3], dtype=torch.float64, requires_grad=True),
    )

    def stepped(grad):
        moved = w.clone()
        moved.grad = grad
        optimizer = getattr(optim, name)([moved], lr=0.1, differentiable=True, **options)
        optimizer.step()
        return moved

    assert torch.autograd.gradcheck(stepped, (grad,))


def test_sparse_adam_names_complex_parameters():
    with pytest.raises(
        ValueError, match=r"Complex params at indices \[\[0, 1\]\]: SparseAdam does not support complex"
    ):
        optim.SparseAdam([torch.ones(2), torch.ones(2, dtype=torch.complex64)])


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_a_fused_optimizer_obeys_the_attributes_that_a_gradient_scaler_sets(name):
    w, plain = parameter(1.0, -2.0), parameter(1.0, -2.0)
    optimizer, reference = getattr(optim, name)([w], lr=0.1, fused=True), getattr(optim, name)([plain], lr=0.1)
    assert optimizer._step_supports_amp_scaling
    assert not hasattr(reference, "_step_supports_amp_scaling")
    w.grad, plain.grad = torch.tensor([4.0, 8.0]), torch.tensor([1.0, 2.0])
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0), torch.tensor(1.0)
    optimizer.step()
    assert w.tolist() == [1.0, -2.0]
    assert w.grad.tolist() == [4.0, 8.0]
    assert optimizer.state[w].get("step", torch.tensor(0.0)) == 0
    optimizer.found_inf = torch.tensor(0.0)
    optimizer.step()
    reference.step()
    assert torch.equal(w, plain)
    assert torch.equal(w.grad, plain.grad)
    assert str(optimizer.state[w]) == str(reference.state[plain])


def test_sparse_adam_loads_a_state_without_the_later_option_maximize():
    table = torch.nn.Embedding(3, 1, sparse=True)
    optimizer = optim.SparseAdam(table.parameters())
    state = optimizer.state_dict()
    del state["param_groups"][0]["maximize"]
    optimizer.load_state_dict(state)
    before = table.weight[1].item()
    table(torch.tensor([1])).sum().backward()
    optimizer.step()
    assert table.weight[1].item() < before


def test_adagrad_starts_all_groups_at_the_value_of_the_constructor():
    w, v = parameter(1.0), parameter(1.0)
    groups = [{"params": [w], "initial_accumulator_value": 0.5}, {"params": [v]}]
    optimizer = optim.Adagrad(groups, initial_accumulator_value=0.25)
    assert [optimizer.state[each]["sum"].item() for each in (w, v)] == [0.25, 0.25]


def test_a_star_import_gives_all_public_names():
    names: dict[str, object] = {}
    exec("from adjoint.optim import *", names)
    assert {"Adafactor", "Muon", "SparseAdam", "swa_utils", "swap_in_optimizer_params_and_state"} <= names.keys()
