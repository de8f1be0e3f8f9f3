"""The commands of docs/install.md, as a newcomer copies them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def steps(heading: str) -> list[str]:
    """The blocks of commands of a section, in order."""
    page = (ROOT / "docs" / "install.md").read_text()
    [section] = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    blocks: list[str] = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert blocks, f"docs/install.md shows no commands for {heading}"
    return blocks
