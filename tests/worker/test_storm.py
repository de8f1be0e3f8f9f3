"""The storm, in short: workers killed all the time, the server killed three times."""

from __future__ import annotations

import pytest
from tests.storm.storm import storm


@pytest.mark.parametrize("executor", ["native", "scripted"])
def test_a_storm_loses_nothing_and_completes_nothing_twice(executor: str) -> None:
    report = storm(executor, jobs=600, server_kills=3, workers=6, patience=60)

    assert report.sound, "\n".join(report.lines())
    assert report.server_kills == 3
    assert report.worker_kills > 0
