"""All files agree in the version, the date of the version, and the versions of tools."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_citation_has_the_version_and_date_of_the_changelog():
    changelog, citation = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    released = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    assert released is not None
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == released[1]
    assert re.search(r"^date-released: (.*)$", citation, re.MULTILINE)[1] == released[2]


def test_pre_commit_runs_the_version_of_ruff_that_ci_installs():
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        "lint"
    ]
    (pinned,) = [each.removeprefix("ruff~=") for each in lint if each.startswith("ruff")]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"rev: v(\S+)", hooks) == [pinned]
