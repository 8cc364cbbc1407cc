"""Steps of optimizers, on one large parameter and on many small parameters."""

from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("optimizers")
case = GROUP.case

PARAMETERS = {"1 parameter of a million": [(1000, 1000)], "60 parameters of 64x64": [(64, 64)] * 60}

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 1e-3},
    "SGD with momentum": {"lr": 1e-3, "momentum": 0.9, "cls": "SGD"},
    "SGD with momentum and decay": {"lr": 1e-3, "momentum": 0.9, "weight_decay": 1e-2, "nesterov": True, "cls": "SGD"},
    "Adam": {"lr": 1e-3},
    "AdamW": {"lr": 1e-3},
    "RMSprop": {"lr": 1e-3},
    "Adagrad": {"lr": 1e-3},
}


def _step(name: str, shapes_name: str) -> None:
    @case(f"{name}, {shapes_name}")
    def step(torch: ModuleType) -> Timed:
        options = dict(OPTIMIZERS[name])
        parameters = [torch.randn(*shape).requires_grad_() for shape in PARAMETERS[shapes_name]]
        for parameter in parameters:
            parameter.grad = torch.randn(*parameter.shape)
        optimizer = getattr(torch.optim, options.pop("cls", name))(parameters, **options)

        def update():
            optimizer.step()
            return parameters[0]

        return update


for _name in OPTIMIZERS:
    for _shapes in PARAMETERS:
        _step(_name, _shapes)
