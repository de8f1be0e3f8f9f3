"""What the README shows works as shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import emq_native
from emq_native.server import Server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
URL = "redis://127.0.0.1:6379"


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


@pytest.fixture
def url() -> Iterator[str]:
    with Server() as server, server.client() as client:
        client.set("{emq}:version", "echomq:6.0.0")
        yield server.url


def test_the_python_side_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    [example, _] = blocks("python")
    assert URL in example
    names: dict[str, object] = {}
    exec(compile(example.replace(URL, url), "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "EMQSTALE complete token mismatch" in printed
    assert "completed=1" in printed
    bus = names["bus"]
    assert isinstance(bus, emq_native.Bus)
    bus.close()


def test_the_other_side_does_the_same(url: str) -> None:
    [example, _] = blocks("python")
    said = re.findall(r"# ((?:EMQ\.).*)$", example, re.MULTILINE)
    assert len(said) == 11
    refusals = []
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for line in said:
            try:
                client.execute_command(*shlex.split(line))
            except redis.ResponseError as refusal:
                refusals.append(str(refusal))
        assert refusals == ["EMQSTALE complete token mismatch"]
        assert client.execute_command("EMQ.STATE", "emq:{orders}", "JOB0EEMl9I7Qw4") == "absent"
        assert client.execute_command("EMQ.STATE", "emq:{orders}", "JOB0EEMl9I7Qw5") == "scheduled"


@pytest.mark.parametrize("page", ["README.md", "docs/workers.md"])
def test_the_tasks_are_worked_on(page: str, url: str) -> None:
    shown = blocks("python", (ROOT / page).read_text())
    [example] = [block for block in shown if "App(" in block]
    names: dict[str, object] = {"__name__": "shop"}
    exec(compile(example.replace(URL, url), page, "exec"), names)
    app, resize = names["app"], names["resize"]
    assert isinstance(app, emq_native.App)
    assert isinstance(resize, emq_native.Task)
    try:
        resize.enqueue("cat.png", width=200)
        worker = app.worker(burst=True)
        worker.run()
        assert worker.stats.completed == 1
    finally:
        app.close()


def test_every_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_make_target_that_is_shown_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"^make ([a-z]+)", README + (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert shown
    assert shown <= targets
