"""The commands `probe` and `load`."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Run

import emq_native
from emq_native import provision
from emq_native.server import Server


def test_probe_prints_plain_lines_where_nobody_looks(run: Run, native_node: Server) -> None:
    provision.claim(native_node.url, wire=6)
    shown = run("probe", native_node.url)
    assert shown.exit_code == 0
    lines = dict(line.split(": ", 1) for line in shown.stdout.splitlines())
    assert lines["server"] == f"valkey {native_node.version}"
    assert lines["module"] == f"loaded, version {emq_native.__version__}"
    assert lines["fence"] == "echomq:6.0.0"
    assert lines["wire"] == "6"
    assert lines["capabilities"] == f"{len(emq_native.probe(native_node.url).capabilities or ())} verbs served"
    assert shown.stderr == ""


def test_probe_names_every_verb_when_asked_for_more(run: Run, native_node: Server) -> None:
    provision.claim(native_node.url, wire=6)
    lines = dict(line.split(": ", 1) for line in run("probe", native_node.url, "-v").stdout.splitlines())
    assert "emq.claim/1" in lines["capabilities"].split()
    assert "emq.claim/1" in json.loads(run("probe", native_node.url, "--json").stdout)["capabilities"]


def test_probe_of_a_node_without_the_module_is_no_failure_by_itself(run: Run, node: Server) -> None:
    shown = run("probe", node.url)
    assert shown.exit_code == 0
    assert "module: absent" in shown.stdout


def test_requirements_that_are_met(run: Run, native_node: Server) -> None:
    provision.claim(native_node.url, wire=6)
    words = ["--require", "emq.claim/1", "--require", "emq.complete", "--require-wire", "6"]
    assert run("probe", native_node.url, *words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--require", "emq.claim/9"], "emq.claim/9 is not served"),
        (["--require", "emq.nothing"], "emq.nothing is not served"),
        (["--require-wire", "4"], "wire 4 is not served, the fence is unclaimed"),
    ],
)
def test_a_requirement_that_is_not_met_exits_1_with_the_reason(
    run: Run, native_node: Server, words: list[str], reason: str
) -> None:
    shown = run("probe", native_node.url, *words)
    assert shown.exit_code == 1
    assert reason in shown.stderr


def test_a_wire_of_another_owner_is_not_met(run: Run, native_node: Server) -> None:
    provision.claim(native_node.url, wire=4)
    shown = run("probe", native_node.url, "--require-wire", "6")
    assert shown.exit_code == 1
    assert "the fence is echomq:4.0.0" in shown.stderr


@pytest.mark.parametrize("word", ["claim", "emq.claim/0", "emq.claim/x", "emq.claim/1 ", ""])
def test_a_requirement_that_is_no_capability_is_a_wrong_command_line(run: Run, node: Server, word: str) -> None:
    shown = run("probe", node.url, "--require", word)
    assert shown.exit_code == 2
    assert "no capability" in shown.stderr


def test_probe_has_json_with_what_is_missing(run: Run, node: Server) -> None:
    shown = run("probe", node.url, "--json", "--require", "emq.claim/1")
    told = json.loads(shown.stdout)
    assert shown.exit_code == 1
    assert told["module"] == "absent"
    assert told["fence"]["value"] is None
    assert len(told["missing"]) == 1


def test_json_of_a_node_that_does_not_answer_is_still_json(run: Run, nowhere: str) -> None:
    shown = run("probe", nowhere, "--json")
    assert shown.exit_code == 3
    assert json.loads(shown.stdout)["error"] == "Unavailable"


def test_probe_warns_of_an_eviction_policy_that_deletes_jobs(run: Run, node: Server) -> None:
    node.client().config_set("maxmemory-policy", "allkeys-lru")
    shown = run("probe", node.url)
    assert shown.exit_code == 0
    assert "warning: maxmemory-policy allkeys-lru deletes jobs" in shown.stderr


def test_load_loads_once_and_says_so_the_second_time(run: Run) -> None:
    with Server(module=False, config={"enable-module-command": "local"}) as server:
        first, second = run("load", server.url), run("load", server.url)
    assert (first.exit_code, first.stdout) == (0, f"loaded, version {emq_native.__version__}\n")
    assert (second.exit_code, second.stdout) == (0, f"the module is loaded already, version {emq_native.__version__}\n")


def test_load_explains_a_server_that_takes_no_modules(run: Run, node: Server) -> None:
    shown = run("load", node.url)
    assert shown.exit_code == 1
    assert "enable-module-command" in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_load_refuses_a_relative_path(run: Run, node: Server) -> None:
    shown = run("load", node.url, "--path", "emq.so")
    assert shown.exit_code == 1
    assert "not absolute" in shown.stderr
