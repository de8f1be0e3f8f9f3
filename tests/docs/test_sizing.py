"""What the guide says of memory is what was measured."""

from __future__ import annotations

import json
import re

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text()
TABLES = json.loads((ROOT / "bench" / "results" / "bench.json").read_text())["tables"]


def test_a_job_takes_no_more_than_is_said() -> None:
    [compact, beyond] = (int(text) for text in re.findall(r"at most (\d+) bytes more", PAGE))
    assert TABLES["memory"]
    for row in TABLES["memory"]:
        most = max(row["most_over"], row["active_over"])
        bound = compact if row["payload"] <= row["limit"] else beyond
        assert most <= bound + row["payload"] / 4, row
        assert most > 0.8 * bound, row
