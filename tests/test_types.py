"""The type stubs agree with the operators."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "scripts" / "write_type_stubs.py"


def test_types_of_the_operators_are_current():
    script = runpy.run_path(str(SCRIPT))
    for path, text in script["stubs"]().items():
        assert path.read_text(encoding="utf-8") == text, "run `python scripts/write_type_stubs.py`"
