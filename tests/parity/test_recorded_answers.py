"""PyTorch gives the recorded results."""

from collections.abc import Iterator

import pytest

from tests.recorded_answers import FOLDER, Record, answer, read

torch = pytest.importorskip("torch")

RECORDS = [record for path in sorted(FOLDER.glob("*.txt")) for record in read(path)]


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Make PyTorch repeat every warning, and restore the state that a record may change."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(always)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.statements[-1])
def test_the_record_is_right(record: Record) -> None:
    assert answer(torch, record.statements) == record.answer
