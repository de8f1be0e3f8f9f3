"""The suite against nodes that are not ours, and the command that runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from emq_native.conformance import CASES, Case, Outcome, Report, run
from emq_native.conformance.case import OWN_SERVER
from emq_native.conformance.command import conformance
from emq_native.conformance.host import OwnServer
from emq_native.conformance.wire import Wire
from emq_native.executors import SCRIPTED, Executor

Servers = Callable[[str], OwnServer]


def failures(report: Report) -> list[str]:
    return [f"{r.case.number} {r.what}: {r.found}" for r in report.results if r.outcome is Outcome.FAIL]


def test_on_a_node_of_somebody_else_nothing_but_the_own_queues_is_touched(servers: Servers, executor: Executor) -> None:
    url = servers(executor.name).server.url
    with Wire(url) as wire:
        before = wire.call("DEBUG", "DIGEST"), wire.call("CONFIG", "GET", "*"), wire.call("ACL", "LIST")
        report = run(url, only=["C032", "C043", "C048", "C011", "C041", "C146"], protocols=[2])
        assert (wire.call("DEBUG", "DIGEST"), wire.call("CONFIG", "GET", "*"), wire.call("ACL", "LIST")) == before
    assert report.executor == executor.name
    assert failures(report) == []
    unproved = {result.case.number for result in report.results if result.outcome is Outcome.NEEDS_OWN_SERVER}
    assert unproved == {number for number in ("C011", "C041", "C146") if executor.name in CASES[number].executors()}


def test_a_fence_that_names_no_executor_leaves_the_choice_to_the_caller(servers: Servers) -> None:
    url = servers("native").server.url.replace("/0", "/9")
    with pytest.raises(ValueError, match="say which executor"):
        run(url)
    report = run(url, SCRIPTED, only=["C032"])
    assert report.ok


@pytest.fixture
def future(monkeypatch: pytest.MonkeyPatch) -> str:
    """A case of a verb that nobody serves yet."""
    monkeypatch.setitem(CASES, "C999", Case("C999", "a verb of the future", ("emq.future",)))
    return "C999"


def test_a_report_of_nothing_proves_nothing(servers: Servers, future: str) -> None:
    report = run(servers("scripted").server.url, SCRIPTED, only=[future])
    assert not report.ok
    assert report.counts() == {Outcome.NOT_SERVED: 2}


def test_an_unknown_case_is_no_silent_success(servers: Servers) -> None:
    with pytest.raises(ValueError, match="unknown cases: C000"):
        run(servers("scripted").server.url, SCRIPTED, only=["C000"])


def call(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(conformance, words)
    return result.exit_code, result.output


def test_the_command_prints_a_line_for_each_case_and_a_summary(servers: Servers, future: str) -> None:
    code, output = call("--url", servers("scripted").server.url, "--only", "C032", "--only", future, "--only", "C041")
    assert code == 0
    assert "C032 ok" in output
    assert "C999 not served (emq.future)" in output
    assert "C041 needs a server of its own" in output
    assert output.splitlines()[-1].startswith("scripted on Valkey ")


@pytest.mark.parametrize("form", ["argument", "option", "variable"])
def test_the_node_is_named_in_three_ways(servers: Servers, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    url = servers("scripted").server.url
    monkeypatch.setenv("EMQ_URL", url if form == "variable" else "redis://127.0.0.1:1")
    words = {"argument": [url], "option": ["--url", url], "variable": []}[form]
    assert call(*words, "--only", "C032", "--json")[0] == 0


def test_the_command_fails_when_a_case_fails_and_shows_expected_and_found(servers: Servers) -> None:
    url = servers("native").server.url.replace("/0", "/9")
    code, output = call("--url", url, "--executor", "native", "--only", "C032", "--protocol", "2")
    assert code == 1
    assert "C032 FAIL" in output
    assert "expected 1" in output
    assert "found    Error(text='EMQFENCE wants echomq:6.0.0 at {emq}:version, found nothing')" in output


def test_the_command_writes_json_and_junit(servers: Servers, tmp_path: Path, future: str) -> None:
    url = servers("native").server.url.replace("/0", "/9")
    path = tmp_path / "report.xml"
    words = ("--executor", "native", "--only", "C032", "--only", "C042", "--only", "C084", "--only", future)
    code, output = call("--url", url, *words, "--json", "--junit", str(path))
    document = json.loads(output)
    assert code == 1
    assert document["ok"] is False
    assert document["counts"] == {"ok": 2, "FAIL": 4, "not served": 2}
    suite = ET.parse(path).getroot()
    assert suite.attrib["tests"] == "8"
    assert suite.attrib["failures"] == "4"
    assert len(suite.findall("testcase/failure")) == 4
    assert len(suite.findall("testcase/skipped")) == 2


def test_the_command_gives_no_verdict_on_a_node_that_it_cannot_ask(servers: Servers) -> None:
    code, output = call("--url", "redis://127.0.0.1:1")
    assert code == 3
    assert "cannot run: cannot connect to 127.0.0.1:1: " in output
    code, output = call("--url", servers("native").server.url.replace("/0", "/9"))
    assert code == 3
    assert "nobody has claimed this node" in output


def test_the_command_gives_no_verdict_on_a_node_without_the_module(servers: Servers) -> None:
    code, output = call("--url", servers("scripted").server.url, "--executor", "native", "--only", "C043")
    assert code == 3
    assert "the module is not loaded" in output


def test_the_command_gives_no_verdict_when_no_chosen_case_may_run_there(servers: Servers, future: str) -> None:
    url = servers("scripted").server.url
    code, output = call(url, "--only", "C041", "--only", future)
    assert code == 3
    assert "no case could be run: a case that restarts, fills or reconfigures its server" in output
    code, output = call(url, "--only", future)
    assert code == 3
    assert "no case could be run: the scripted executor on this node serves none of them" in output


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["C043"], ["C043"]),
        (["43"], ["C043"]),
        (["c43"], ["C043"]),
        (["C043-C045"], ["C043", "C044", "C045"]),
        (["9-11", "C148"], ["C009", "C010", "C011", "C148"]),
    ],
    ids=" ".join,
)
def test_cases_are_listed_and_chosen_by_number_or_range(words: list[str], numbers: list[str]) -> None:
    code, output = call("--list", *(f"--only={each}" for each in words))
    assert code == 0
    assert output.splitlines() == [f"{number}  {CASES[number].title}" for number in numbers]


def test_all_cases_are_listed() -> None:
    assert len(call("--list")[1].splitlines()) == len(CASES)


@pytest.mark.parametrize("words", ["C000", "D043", "C045-C043", "1-2-3", "-5", "", "C0043"])
def test_a_case_that_there_is_not_is_a_wrong_command_line(words: str) -> None:
    code, output = call(f"--only={words}")
    assert code == 2
    assert f"unknown: {words}" in output


def test_without_a_url_the_command_starts_a_server_and_may_run_everything() -> None:
    needs_own = [number for number in ("C041", "C146") if OWN_SERVER in CASES[number].needs]
    code, output = call("--executor", "scripted", "--protocol", "2", *(f"--only={number}" for number in needs_own))
    assert code == 0
    assert "C041 ok" in output
    assert "C146 ok" in output
