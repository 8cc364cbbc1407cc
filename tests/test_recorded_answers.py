"""Creation, conversion, copying and filling of tensors give PyTorch's results, errors and warnings."""

from collections.abc import Iterator

import pytest

import adjoint
from tests.recorded_answers import FOLDER, Record, answer, read

RECORDS = [(path.stem, record) for path in sorted(FOLDER.glob("*.txt")) for record in read(path)]


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Restore the state that a record may change."""
    yield
    adjoint.set_default_dtype(adjoint.float32)
    adjoint.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("family", "record"), RECORDS, ids=lambda value: value if isinstance(value, str) else value.statements[-1]
)
def test_answers_as_pytorch_does(family: str, record: Record) -> None:
    assert answer(adjoint, record.statements) == record.answer
