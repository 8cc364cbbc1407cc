"""The speed of drawing the same random bits as PyTorch."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("random_numbers")
case = GROUP.case


def _draw(name: str, draw: Callable[[ModuleType], Any]) -> None:
    @case(name)
    def timed(torch: ModuleType) -> Timed:
        def again():
            torch.manual_seed(0)
            return draw(torch).float()

        return again


_draw("rand, a million", lambda torch: torch.rand(1000, 1000))
_draw("randn, a million", lambda torch: torch.randn(1000, 1000))
_draw("randn in float64, a million", lambda torch: torch.randn(1000, 1000, dtype=torch.float64))
_draw("randint, a million", lambda torch: torch.randint(0, 1000, (1000, 1000)))
_draw("randperm, 100000", lambda torch: torch.randperm(100_000))
_draw("dropout, a million", lambda torch: torch.nn.functional.dropout(torch.ones(1000, 1000), 0.3))
_draw("bernoulli, a million", lambda torch: torch.full((1000, 1000), 0.3).bernoulli())
_draw("exponential_, 100000", lambda torch: torch.empty(100_000).exponential_())
_draw(
    "multinomial, 10000 of 1000",
    lambda torch: torch.multinomial(torch.arange(1, 1001).float(), 10_000, replacement=True),
)
_draw("poisson, 100000", lambda torch: torch.poisson(torch.full((100_000,), 4.0)))
_draw("gamma, 100000", lambda torch: torch._standard_gamma(torch.full((100_000,), 2.5)))
