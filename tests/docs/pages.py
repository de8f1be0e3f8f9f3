"""The Markdown pages of the project, and the snippets in them.

A block of `python` or `sh` is a claim that it works, and is run: by test_snippets.py, block after block as a reader
would, or by a test of its page that has something to say about the outcome (`named`). A comment on the line before a
block says what else is to be done with it:

    <!-- file: NAME -->         the block is written to a file of that name beside the others
    <!-- output -->             a block of `text`: what the block before it prints, `...` for anything
    <!-- given: COMMAND -->     what has to be so before the block, and is not said in it
    <!-- theirs: FILE -->       code of another system, or `sh`: run by peers.py
    <!-- not run: WHY -->       no test can run it, because

Blocks of other languages claim nothing.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
URL = "redis://127.0.0.1:6379"
RUN = ("python", "sh")
LANGUAGES = (*RUN, "text", "conf", "yaml", "json", "ini", "js", "c", "html")

_BLOCK = re.compile(
    r"(?:^<!-- (?P<remark>[^\n]*?) -->\n)?^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A fenced block. remark: the word of the comment before it, or none; value: what follows the word."""

    page: str
    line: int
    language: str
    text: str
    remark: str
    value: str

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.remark in ("", "given")

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every Markdown page of the project, by its path in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = listed.stdout.split() or [
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if not {".venv", "build"} & set(path.parts)
    ]
    return sorted(page for page in found if (ROOT / page).exists())


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    source = (ROOT / page).read_text()
    found = []
    for match in _BLOCK.finditer(source):
        remark, _, value = (match["remark"] or "").partition(":")
        line = source.count("\n", 0, match.start("text"))
        found.append(Block(page, line, match["language"], match["text"], remark.strip(), value.strip()))
    return found


def named(page: str, marks: Mapping[str, str]) -> dict[str, Block]:
    """The blocks of a page that are to be run, under the names that a test has for them.

    marks: by the name, a text that is in that block and in no other. Fails unless each block has exactly one name.
    """
    running = [block for block in blocks(page) if block.runs or block.remark == "file"]
    found = {}
    for name, mark in marks.items():
        matching = [block for block in running if mark in block.text]
        assert len(matching) == 1, f"{page}: {mark!r} is in {len(matching)} blocks"
        found[name] = matching[0]
    nameless = [str(block) for block in running if block not in found.values()]
    assert not nameless, f"no test runs {', '.join(nameless)}"
    assert len(set(map(id, found.values()))) == len(found), f"{page}: a block has two names"
    return found
