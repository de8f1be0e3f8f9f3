"""What the pages show works as shown: the snippets of a page are run in order, as one who reads it would."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import LANGUAGES, blocks, pages
from tests.docs.reader import Reader

from emq_native import provision
from emq_native.server import Server

BY_TESTS_OF_THEIR_OWN = {
    "README.md": "test_readme.py",
    "docs/quickstart.md": "test_quickstart.py",
    "docs/workers.md": "test_workers.py",
}
CONTRACT = "docs/protocol.md"
"""Its blocks are steps in a notation of its own, which the conformance cases are about."""

NOT_RUN = {
    "CONTRIBUTING.md": 3,
    "README.md": 1,
    "docs/install.md": 8,
    "docs/migrating/celery.md": 1,
    "docs/operations.md": 2,
}

COMMAND = re.compile(r"(emq-native|valkey-cli|pip|make|docker|export|bash|curl|apt-get) ")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """At a node of wire 6 with an append-only file and a replica."""
    with Server(config={"appendonly": "yes"}) as server, Server(module=False, replica_of=server):
        provision.claim(server.url, wire=6)
        monkeypatch.setenv("EMQ_URL", server.url)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.chdir(tmp_path)
        one = Reader(server, tmp_path)
        yield one
        one.close()


@pytest.mark.parametrize(
    "page", [page for page in pages() if page not in BY_TESTS_OF_THEIR_OWN and any(b.runs for b in blocks(page))]
)
def test_a_page_does_what_it_shows(page: str, reader: Reader) -> None:
    reader.read(blocks(page))


def test_no_block_is_without_a_language() -> None:
    strange = [
        block for page in pages() if page != CONTRACT for block in blocks(page) if block.language not in LANGUAGES
    ]
    assert not strange, f"a block of another language than {', '.join(LANGUAGES)}: {', '.join(map(str, strange))}"


def test_no_command_hides_in_a_block_of_text() -> None:
    hidden = [
        b for page in pages() for b in blocks(page) if b.language == "text" and not b.remark and COMMAND.match(b.text)
    ]
    assert not hidden, f"this is sh, and is to be run: {', '.join(map(str, hidden))}"


def test_what_is_not_run_says_why() -> None:
    """And is counted, page by page: who adds one says so here too."""
    unrun = [block for page in pages() for block in blocks(page) if block.remark == "not run"]
    assert [str(block) for block in unrun if len(block.value.split()) < 3] == []
    assert Counter(block.page for block in unrun) == NOT_RUN, "\n".join(f"{block}: {block.value}" for block in unrun)


def test_code_of_other_systems_is_sound() -> None:
    """As far as can be said without them; peers.py runs it."""
    for block in (block for page in pages() for block in blocks(page) if block.remark == "theirs"):
        if block.language == "python":
            compile(block.text, str(block), "exec")


def test_every_remark_is_known() -> None:
    known = ("", "file", "output", "given", "theirs", "not run")
    assert [str(block) for page in pages() for block in blocks(page) if block.remark not in known] == []


def test_the_pages_with_tests_of_their_own_have_them() -> None:
    for page, test in BY_TESTS_OF_THEIR_OWN.items():
        assert page in pages()
        assert f'"{page}"' in (Path(__file__).parent / test).read_text()
        assert os.path.basename(test).startswith("test_")
