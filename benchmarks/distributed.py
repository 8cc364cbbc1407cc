"""all_reduce and DistributedDataParallel on MPI, compared with PyTorch on gloo, in two processes of one thread each.

The processes of the two libraries are started alternately. `python -m benchmarks.distributed adjoint` starts one
process.
"""

import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).parents[1]
SIZES = {"4 kB": 1 << 10, "1 MB": 1 << 18, "100 MB": 25 << 20}
GIGABITS = 10
LINK = GIGABITS * 1e9 / 8
"""The bytes per second of the simulated network. Its transfers are waits, which need no processor."""


def run(rounds: int, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Return the median seconds of each case and library, and the quartiles of the ratios of rounds."""
    times: dict[str, dict[str, list[float]]] = {"adjoint": {}, "torch": {}}
    for number in range(rounds):
        for library in ("adjoint", "torch") if number % 2 == 0 else ("torch", "adjoint"):
            for case, seconds in started(library, 2, only.pattern).items():
                times[library].setdefault(case, []).append(seconds)
    results = []
    for case, ours in times["adjoint"].items():
        found: dict[str, Any] = {"group": "distributed", "case": case, "adjoint": median(ours)}
        theirs = times["torch"].get(case)
        if theirs:
            ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
            low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            found |= {"torch": median(theirs), "ratio": median(ours) / median(theirs), "low": low, "high": high}
        results.append(found)
    return results


def loopback() -> dict[str, str]:
    """Return variables that restrict gloo to this machine, because gloo otherwise looks up the machine's name."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}


def started(library: str, ranks: int, only: str = "", **more: str) -> dict[str, float]:
    """Run the processes of one library, and return their measurements."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    shared = {**os.environ, **threads, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}
    module = "benchmarks.scaling" if library == "profile" else "benchmarks.distributed"
    command = [sys.executable, "-m", module, library, only]
    if library != "torch":
        from adjoint.distributed.launcher import mpiexec_command

        commands = [([*mpiexec_command(ranks, None), *command], shared)]
    else:
        shared |= {"WORLD_SIZE": str(ranks), **loopback()}
        commands = [(command, {**shared, "RANK": str(rank)}) for rank in range(ranks)]
    with tempfile.TemporaryFile("w+") as errors:
        processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env=environment)
            for command, environment in commands
        ]
        outputs = [process.communicate(timeout=300)[0] for process in processes]
        if any(process.returncode for process in processes):
            errors.seek(0)
            raise RuntimeError(f"the processes of {library} have failed:\n{errors.read()}")
    return json.loads(outputs[0])


class Measured:
    """The cases in one process, which has imported one of the libraries as torch."""

    def __init__(self, library: str, only: str) -> None:
        if library == "adjoint":
            import adjoint as torch
            import adjoint.distributed as dist
        else:
            import torch
            import torch.distributed as dist
        self.torch, self.dist, self.library, self.only = torch, dist, library, re.compile(only)
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.times: dict[str, float] = {}

    def time(self, name: str, call: Any, rounds: int) -> float:
        """Return the median time of several rounds. All ranks begin and end each round together."""
        if not self.only.search(name):
            return 0.0
        seconds = []
        for number in range(rounds + 2):
            self.dist.barrier()
            start = time.perf_counter()
            call()
            if number >= 2:
                seconds.append(time.perf_counter() - start)
        self.times[name] = median(seconds)
        return self.times[name]

    def time_alternately(self, calls: dict[str, Any], rounds: int) -> None:
        """Return the medians of functions that run alternately, so that other programs affect all functions equally."""
        seconds: dict[str, list[float]] = {name: [] for name in calls if self.only.search(name)}
        for number in range(rounds + 2):
            for name, found in seconds.items():
                self.dist.barrier()
                start = time.perf_counter()
                calls[name]()
                if number >= 2:
                    found.append(time.perf_counter() - start)
        self.times |= {name: median(found) for name, found in seconds.items()}

    def all_reduce(self) -> None:
        """Time sums of float32 tensors."""
        for name, count in SIZES.items():
            tensor = self.torch.zeros(count)
            self.time(
                f"all_reduce of {name}", lambda tensor=tensor: self.dist.all_reduce(tensor), 200 if count < 5000 else 9
            )

    def steps(self) -> None:
        """Time training steps of two models."""
        for name, make, shape in (
            ("MLP, 10 M parameters", self.mlp, (64, 1024)),
            ("ResNet-8", self.resnet, (32, 3, 32, 32)),
        ):
            self.time(f"step of {name}, DDP", self.step(self.parallel(make()), shape), 9)
            self.time(
                f"step of {name}, DDP, views", self.step(self.parallel(make(), gradient_as_bucket_view=True), shape), 9
            )
            self.time(f"step of {name}, no communication", self.step(make(), shape), 9)

    def overlap(self) -> None:
        """Time steps without communication, with communication during backward, and with communication after backward."""
        shape = (64, 1024)
        alone = self.parallel(self.mlp())
        step = self.step(alone, shape)

        def without() -> None:
            with alone.no_sync():
                step()

        calls = {
            "none": without,
            "overlapped": self.step(self.parallel(self.mlp()), shape),
            "afterwards": self.step(
                self.parallel(self.mlp(), bucket_cap_mb=1000), shape
            ),  # a single bucket, which is full at the end of backward
        }
        self.time_alternately({f"step of MLP, communication: {when}": call for when, call in calls.items()}, 15)
        if self.library == "adjoint":
            self.overlap_of_link()
        self.overlap_of_sleep()

    def overlap_of_link(self) -> None:
        """Time the same steps over a simulated network.

        The transfers of the simulated network take less time than backward, and use no processor.
        """
        shape = (256, 1024)
        calls = {}
        for name, speed, pause in (
            ("none", math.inf, 0.0),
            ("overlapped", LINK, 0.0),
            ("afterwards", math.inf, 1 / LINK),
        ):
            model = self.parallel(self.mlp())
            model.register_comm_hook(Link(speed), link_hook)
            pause *= sum(4 * parameter.numel() for parameter in model.parameters())
            calls[f"step over {GIGABITS} Gbit/s, communication: {name}"] = self.step(model, shape, pause)
        self.time_alternately(calls, 15)

    def overlap_of_sleep(self) -> None:
        """Time the same steps with all processors free for communication, because backward sleeps."""
        if self.library == "adjoint":
            from adjoint.distributed import progress

            progress.has_spare_processors = lambda: True
        buckets = [self.torch.zeros(1 << 20) for _ in range(10)]

        def step(when: str) -> None:
            works = []
            for bucket in buckets:
                time.sleep(4e-3)
                if when == "overlapped":
                    works.append(self.dist.all_reduce(bucket, async_op=True))
            if when == "afterwards":
                works = [self.dist.all_reduce(bucket, async_op=True) for bucket in buckets]
            for work in works:
                work.wait()

        cases = {
            f"10 buckets of 4 MB, backward sleeps, communication: {when}": lambda when=when: step(when)
            for when in ("none", "overlapped", "afterwards")
        }
        self.time_alternately(cases, 15)

    def parallel(self, model: Any, **options: Any) -> Any:
        """Return the data-parallel form of the model."""
        return self.torch.nn.parallel.DistributedDataParallel(model, **options)

    def step(self, model: Any, shape: tuple[int, ...], pause: float = 0.0) -> Any:
        """Return a function that trains the model for one step, and sleeps after backward."""
        torch = self.torch
        x, y = torch.randn(*shape), torch.randint(0, 10, shape[:1])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def call() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            time.sleep(pause)
            optimizer.step()

        return call

    def mlp(self) -> Any:
        """Return four linear layers with 10 million parameters."""
        nn = self.torch.nn
        widths = (1024, 2048, 2048, 1800, 10)
        layers = [layer for i in range(4) for layer in (nn.Linear(widths[i], widths[i + 1]), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    def resnet(self) -> Any:
        """Return ResNet-8 for images of 32 by 32."""
        torch, nn = self.torch, self.torch.nn

        class Block(nn.Module):
            def __init__(self, inside: int, outside: int, stride: int) -> None:
                super().__init__()
                self.body = nn.Sequential(
                    nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
                    nn.BatchNorm2d(outside),
                    nn.ReLU(),
                    nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
                    nn.BatchNorm2d(outside),
                )
                same = inside == outside
                self.shortcut = nn.Identity() if same else nn.Conv2d(inside, outside, 1, stride, bias=False)

            def forward(self, x: Any) -> Any:
                return torch.relu(self.body(x) + self.shortcut(x))

        return nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2),
            Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
        )  # fmt: skip


class Link:
    """A simulated network that sends one bucket after another. The number of bytes determines the time of a transfer."""

    def __init__(self, speed: float) -> None:
        self.speed, self.free = speed, 0.0


class Sent:
    """The result of a bucket's hook. `wait` returns when the network has sent the bucket."""

    def __init__(self, buffer: Any, at: float) -> None:
        self.buffer, self.at = buffer, at

    def wait(self) -> Any:
        """Sleep until the bucket has been sent."""
        time.sleep(max(0.0, self.at - time.perf_counter()))
        return self.buffer


def link_hook(link: Link, bucket: Any) -> Sent:
    """Send a bucket over the simulated network. The transfer takes time, but does not use a processor."""
    buffer = bucket.buffer()
    link.free = max(time.perf_counter(), link.free) + 4 * buffer.numel() / link.speed
    return Sent(buffer, link.free)


def main(library: str, only: str = "") -> None:
    """Measure in this process. Rank 0 prints the medians as JSON."""
    measured = Measured(library, only)
    measured.all_reduce()
    measured.steps()
    measured.overlap()
    if measured.dist.get_rank() == 0:
        print(json.dumps(measured.times), flush=True)
    measured.dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
