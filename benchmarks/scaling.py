"""A model of how the time of a data-parallel step grows with the number of processes, compared with measurements.

`python -m benchmarks.scaling` prints the tables of docs/understand/distributed.md. In the model, the buckets of gradients become
ready at the measured times. The network sends one bucket at a time. An all_reduce of n bytes over p ranks takes 2 ceil(log2 p)
alpha + 2 (p - 1) / p n beta (R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in
MPICH", 2005).
"""

import json
import math
import os
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.distributed import Link, Measured, link_hook, started

MEASURED = (1, 2, 4)
EXPECTED = (8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Network:
    """The seconds for each message, `alpha`, and for each byte, `beta`."""

    name: str
    alpha: float
    beta: float

    def all_reduce(self, size: float, ranks: int) -> float:
        """Return the seconds for an all_reduce of `size` bytes."""
        if ranks == 1:
            return 0.0
        return 2 * math.ceil(math.log2(ranks)) * self.alpha + 2 * (ranks - 1) / ranks * size * self.beta


NETWORKS = (Network("10 Gbit/s Ethernet", 30e-6, 8 / 10e9), Network("100 Gbit/s InfiniBand", 2e-6, 8 / 100e9))


@dataclass(frozen=True)
class Step:
    """One step in one process: backward up to the last bucket, the remaining time, and (ready time, bytes) for each bucket."""

    rest: float
    backward: float
    buckets: list[tuple[float, int]]

    def time(self, network: Network, ranks: int, slowdown: float = 1.0, overlapping: bool = True) -> float:
        """Return the seconds of a step.

        `slowdown`: the factor of the computing time, if ranks share processors. `overlapping`: whether communication overlaps
        with backward.
        """
        end = 0.0
        for ready, size in self.buckets:
            start = max(ready, end) if overlapping else max(slowdown * self.backward, end)
            end = start + network.all_reduce(size, ranks)
        return slowdown * self.rest + max(slowdown * self.backward, end)


def profile(only: str) -> None:
    """Measure in each process: the step without communication, the buckets, the step with communication, and two all_reduces."""
    measured = Measured("adjoint", only)
    dist, torch = measured.dist, measured.torch
    x, y = torch.randn(64, 1024), torch.randint(0, 10, (64,))
    model = measured.parallel(measured.mlp())
    ready: list[tuple[float, int]] = []
    begun = [0.0]

    def note(state: Link, bucket: Any) -> Any:
        ready.append((time.perf_counter() - begun[0], 4 * bucket.buffer().numel()))
        return link_hook(state, bucket)

    model.register_comm_hook(Link(math.inf), note)
    rests, backwards, notes = [], [], []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(12):
        dist.barrier()
        ready.clear()
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        begun[0] = time.perf_counter()
        loss.backward()
        optimizer.step()
        backwards.append(ready[-1][0])
        rests.append(time.perf_counter() - start - ready[-1][0])
        notes.append(list(ready))
    plain = measured.parallel(measured.mlp())
    found = {"rest": median(rests), "backward": median(backwards), "buckets": notes[-1]}
    found["step"] = measured.time("step", measured.step(plain, (64, 1024)), 12)
    for name, count in (("small", 64), ("large", 10_000_000)):
        tensor = torch.randn(count)
        found[name] = measured.time(name, lambda tensor=tensor: dist.all_reduce(tensor), 20)
    if dist.get_rank() == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def main() -> None:
    """Measure 1, 2 and 4 ranks on this machine, compare them with the model, and print predictions for other networks."""
    cores = os.cpu_count() or 1
    seen = {ranks: started("profile", ranks) for ranks in MEASURED}
    alone = seen[1]
    factor = alone["step"] / (
        alone["rest"] + alone["backward"]
    )  # without the hook that has recorded the buckets, and without the copies of the hook
    buckets = [(factor * ready, size) for ready, size in alone["buckets"]]
    step = Step(factor * alone["rest"], buckets[-1][0], buckets)
    two = seen[2]
    here = Network("this machine", two["small"] / 2, (two["large"] - two["small"]) / 40e6)
    print(f"one rank: backward until the last bucket {step.backward * 1e3:.1f} ms, the rest {step.rest * 1e3:.1f} ms; "
          f"{len(step.buckets)} buckets of {', '.join(f'{size / 1e6:.1f}' for _, size in step.buckets)} MB")  # fmt: skip
    print(f"here: alpha {here.alpha * 1e6:.1f} µs, beta {here.beta * 1e9:.2f} ns/B\n")
    print("| ranks | measured | model | model / measured |\n|---:|---:|---:|---:|")
    for ranks in MEASURED:
        share = max(1.0, ranks / cores)
        network = Network(here.name, here.alpha * share, here.beta * share)
        expected = step.time(network, ranks, share, overlapping=ranks < cores)
        took = seen[ranks]["step"]
        print(f"| {ranks} | {took * 1e3:.1f} ms | {expected * 1e3:.1f} ms | {expected / took:.2f} |")
    print(f"\n| ranks | {' | '.join(f'{network.name}: step | efficiency' for network in NETWORKS)} |")
    print("|---:|" + "---:|---:|" * len(NETWORKS))
    one = step.rest + step.backward
    for ranks in EXPECTED:
        cells = [step.time(network, ranks) for network in NETWORKS]
        print(f"| {ranks} | " + " | ".join(f"{cell * 1e3:.1f} ms | {one / cell:.0%}" for cell in cells) + " |")


if __name__ == "__main__":
    profile("") if "profile" in sys.argv else main()
