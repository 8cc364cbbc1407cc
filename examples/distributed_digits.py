"""Train the network of digits.py in several processes. Each process computes a part of every batch.

    adjoint launch -n 2 examples/distributed_digits.py     over 98 % of the test digits right, as with one process
    adjoint launch -n 4 --hosts machines.txt examples/distributed_digits.py --epochs 5

Rank 0 prints the accuracy and writes distributed_digits.pt.
"""

import argparse
from pathlib import Path

import adjoint as torch  # isort: skip  (imported before NumPy, because adjoint configures BLAS)
from digits import BATCH, LEARNING_RATE, DigitNet, accuracy, load_data, shift

import adjoint.distributed as dist
from adjoint import nn
from adjoint.nn.parallel import DistributedDataParallel
from adjoint.utils.data import DataLoader
from adjoint.utils.data.distributed import DistributedSampler


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small convolutional network in several processes.")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="where the results go")
    options = parser.parse_args()

    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(options.seed + rank)  # each rank moves its images and drops units differently
    train_data, test_data = load_data(options.seed)
    model = DistributedDataParallel(DigitNet())  # all ranks begin with the parameters of rank 0
    sampler = DistributedSampler(train_data, num_replicas=size, rank=rank, seed=options.seed)
    loader = DataLoader(train_data, batch_size=max(1, BATCH // size), sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

    steps, step = options.epochs * len(loader), 0
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(2)  # the sum of the losses of this rank, and their number
        for images, labels in loader:
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / steps)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(shift(images)), labels)
            loss.backward()  # this also averages the gradients over all ranks
            optimizer.step()
            total += torch.tensor([loss.item() * len(labels), len(labels)])
            step += 1
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch + 1:2}  loss {(total[0] / total[1]).item():.3f}", flush=True)

    if rank == 0:
        options.out.mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), options.out / "distributed_digits.pt")
        print(f"test accuracy {accuracy(model.module, test_data):.2%} with {size} processes", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
