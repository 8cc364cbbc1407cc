"""Passes over datasets with two worker processes: start the workers, read all batches, end the workers."""

from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("loading")
case = GROUP.case

WORKERS = 2


def _passes(torch: ModuleType, dataset: Any, **options: Any) -> Timed:
    loader = torch.utils.data.DataLoader(dataset, num_workers=WORKERS, **options)

    def load():
        total = 0.0
        for x, _ in loader:
            total += float(x.flatten()[-1])
        return total

    return load


@case("images with transforms, 64 of 3x32x32")
def images(torch: ModuleType) -> Timed:
    class Images(torch.utils.data.Dataset):
        def __init__(self) -> None:
            self.x = torch.randint(0, 256, (2048, 3, 32, 32), dtype=torch.uint8)

        def __len__(self) -> int:
            return len(self.x)

        def __getitem__(self, index: int) -> Any:
            x = (self.x[index].float().div(255) - 0.5) / 0.25
            return (x.flip(-1) if index % 2 else x), index % 10

    return _passes(torch, Images(), batch_size=64)


@case("images with transforms, 16 of 3x224x224")
def large_images(torch: ModuleType) -> Timed:
    class Images(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 512

        def __getitem__(self, index: int) -> Any:
            return (torch.full((3, 224, 224), float(index)) - 0.4) * 4.4, index

    return _passes(torch, Images(), batch_size=16)


@case("rows of tensors, 64 of 3x32x32")
def rows(torch: ModuleType) -> Timed:
    dataset = torch.utils.data.TensorDataset(torch.randn(8192, 3, 32, 32), torch.arange(8192))
    return _passes(torch, dataset, batch_size=64)


@case("rows of tensors, 8 of 4 numbers")
def small_rows(torch: ModuleType) -> Timed:
    dataset = torch.utils.data.TensorDataset(torch.randn(4096, 4), torch.arange(4096))
    return _passes(torch, dataset, batch_size=8)


@case("dictionaries of tensors, 32 of four, up to 128 numbers")
def dictionaries(torch: ModuleType) -> Timed:
    class Texts(torch.utils.data.Dataset):
        def __init__(self) -> None:
            self.x = torch.randint(0, 30000, (2048, 128))

        def __len__(self) -> int:
            return len(self.x)

        def __getitem__(self, index: int) -> Any:
            tokens = self.x[index]
            return {"tokens": tokens, "mask": tokens > 100, "label": index % 2, "length": float(index)}

    loader = torch.utils.data.DataLoader(Texts(), batch_size=32, num_workers=WORKERS)
    return lambda: sum(float(batch["mask"][-1, -1]) + float(batch["length"][-1]) for batch in loader)


@case("rows of tensors, 64 of 3x32x32, workers that stay")
def persistent(torch: ModuleType) -> Timed:
    dataset = torch.utils.data.TensorDataset(torch.randn(4096, 3, 32, 32), torch.arange(4096))
    return _passes(torch, dataset, batch_size=64, persistent_workers=True)


@case("a stream of pairs, 32 of 100 numbers")
def stream(torch: ModuleType) -> Timed:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            info = torch.utils.data.get_worker_info()
            for number in range(info.id, 4096, info.num_workers):
                yield torch.full((100,), float(number)), number

    return _passes(torch, Stream(), batch_size=32)
