"""A controlled differential equation by torchcde, with splines through data as control."""
# kind: mathematics
# requires: torchcde

import torch
import torchcde
from shown import show, train

torch.manual_seed(0)
times = torch.linspace(0, 1, 8)
x = torch.stack([times.expand(4, 8), torch.randn(4, 8)], -1)
x[0, 3, 1] = float("nan")
for coefficients in (
    torchcde.hermite_cubic_coefficients_with_backward_differences(x),
    torchcde.natural_cubic_coeffs(x),
):
    show("coefficients", coefficients)
path = torchcde.CubicSpline(coefficients)
show("path", path.evaluate(torch.tensor(0.3)), path.derivative(torch.tensor(0.3)))


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 6)

    def forward(self, t, z):
        return self.layer(z).tanh().view(4, 3, 2)


field = Field()


def loss():
    return (
        torchcde.cdeint(
            X=path,
            func=field,
            z0=torch.ones(4, 3),
            t=path.interval,
            method="rk4",
            options={"step_size": 0.2},
            adjoint=False,
        )[:, -1]
        .square()
        .mean()
    )


train(field.parameters(), loss, steps=8, lr=0.1)
show("signature", torchcde.logsig_windows.__name__)
