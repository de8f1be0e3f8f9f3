"""The reference of the commands is that of the module, and the site has every page."""

from __future__ import annotations

import re
import runpy

from tests.docs.pages import ROOT, pages

from emq_native.verbs import VERBS

PAGE = ROOT / "docs" / "reference" / "commands.md"


def test_the_reference_is_current() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "commands.py"))["generate"]()
    assert PAGE.read_text() == written, "make docs writes it anew"


def test_the_reference_has_every_verb() -> None:
    assert sorted(re.findall(r"^### (\S+)$", PAGE.read_text(), re.MULTILINE)) == sorted(name.upper() for name in VERBS)


def test_every_page_of_the_site_is_in_its_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    for page in pages():
        if page.startswith("docs/"):
            assert re.search(rf"[ :]{re.escape(page.removeprefix('docs/'))}$", menu, re.MULTILINE), page
