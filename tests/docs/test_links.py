"""Links lead to files of the repository and to headings in them. The site has a check too: `mkdocs build --strict`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pymdownx.slugs import slugify
from tests.docs.pages import ROOT, pages

SLUG = slugify(case="lower")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in a link, there and on the site."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE):
        slug = SLUG(re.sub(r"[`*]|\]\(.*?\)", "", heading), "-")
        number = 0
        while (unique := f"{slug}_{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    source = ROOT / page
    for target, anchor in LINK.findall(prose(source)):
        to = (source.parent / target).resolve() if target else source
        assert to.exists(), f"{page}: {target} is not there"
        assert to.is_relative_to(ROOT), f"{page}: {target} is outside the repository"
        if anchor:
            assert anchor in anchors(to), f"{page}: {target} has no heading #{anchor}"
