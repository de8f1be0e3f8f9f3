"""What the pages on migrating name of ours is there."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import ROOT, pages

import emq_native
from emq_native import App, Queue, Worker
from emq_native.cli import main
from emq_native.verbs import VERBS

PAGES = [page for page in pages() if page.startswith("docs/migrating/")]


def ours(page: str) -> list[str]:
    """The second column of the table of notions."""
    table = (ROOT / page).read_text().partition("\n## Notions\n")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line)[2] for line in table.splitlines()[2:]]


@pytest.mark.parametrize("page", PAGES)
def test_every_verb_and_command_is_served(page: str) -> None:
    for cell in ours(page):
        for verb in re.findall(r"EMQ\.[A-Z]+", cell):
            assert verb.lower() in VERBS, f"{page}: {verb}"
        for words in re.findall(r"`emq-native ([a-z -]+)", cell):
            command = main
            for word in words.split():
                if word.startswith("--"):
                    assert word in [name for option in command.params for name in option.opts], f"{page}: {words}"
                elif not hasattr(command, "get_command"):
                    break
                else:
                    command = command.get_command(None, word)
                    assert command is not None, f"{page}: {words}"


@pytest.mark.parametrize("page", PAGES)
def test_every_name_is_there(page: str) -> None:
    cells = " ".join(ours(page))
    for name in re.findall(r"raise ([A-Z]\w+)\(", cells):
        assert hasattr(emq_native, name), f"{page}: {name}"
    for name in re.findall(r"`queue\.(\w+)\(", cells):
        assert hasattr(Queue, name), f"{page}: queue.{name}"
    for name in re.findall(r"\bapp\.(\w+)\(", cells):
        assert hasattr(App, name), f"{page}: app.{name}"
    for name in re.findall(r"Worker\((\w+)=", cells):
        assert name in Worker.__init__.__annotations__, f"{page}: Worker({name}=)"
