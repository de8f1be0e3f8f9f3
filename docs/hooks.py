"""A hook of mkdocs: pages of the repository that lie outside docs/ become pages of the site, and links follow them.

In every page a link is written as it holds in the repository. On the site it leads to the same page; a link to a file
that is no page, a source for one, is plain text there.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ADOPTED = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/README.md": "figures.md",
    "bench/results/bench.md": "measured.md",
    "bench/results/bench.png": "bench.png",
    "bench/results/peers.md": "peers.md",
}
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^((?!\||- |\d\. |  |#)\S.*)\n(?=\||- |1\. )", re.MULTILINE)
"""The last line of a paragraph before a table or a list, which Python's Markdown wants apart."""
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, uri in ADOPTED.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    source = next((source for source, adopted in ADOPTED.items() if adopted == uri), f"docs/{uri}")

    def follow(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        found = ADOPTED.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(found) is not None and (path in ADOPTED or path.startswith("docs/")):
            return f"[{text}]({posixpath.relpath(found, posixpath.dirname(uri) or '.')}{anchor})"
        # What is not there at all stays a link, which mkdocs then refuses.
        return text if os.path.exists(ROOT / path) else link[0]

    parts = [part if part.startswith("```") else LINK.sub(follow, part) for part in FENCED.split(markdown)]
    parts = [part if part.startswith("`") else apart(part) for part in CODE.split("".join(parts))]
    parts = [part if part.startswith("```") else BLOCK.sub(r"\1\n\n", part) for part in FENCED.split("".join(parts))]
    return "".join(parts)


def apart(markdown: str) -> str:
    """Options of a grammar, `[LIMIT n] [MAX m]`, which Python's Markdown takes for a link with a space in it."""
    return markdown.replace("] [", r"] \[")
