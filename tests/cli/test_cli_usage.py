"""What holds for every command: where the node comes from, one-line errors, exit codes."""

from __future__ import annotations

import subprocess
from io import StringIO

import pytest
from rich.console import Console
from tests.cli.conftest import Run

import emq_native
from emq_native import provision
from emq_native.cli.jobs import rich_table
from emq_native.server import Server

COMMANDS = [
    ("probe",),
    ("load",),
    ("fence", "show"),
    ("fence", "claim", "--wire", "6"),
    ("fence", "move", "--from", "4", "--to", "6"),
]
OF_A_QUEUE = [
    ("queues", "pause", "q"),
    ("queues", "resume", "q"),
    ("queues", "drain", "q", "--yes"),
    ("queues", "obliterate", "q", "--yes"),
    ("jobs", "ls", "q"),
    ("dead", "ls", "q"),
    ("dead", "replay", "q", "--all"),
]
each_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


def test_the_help_lists_the_commands(run: Run) -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    assert [
        name for name in ("demo", "fence", "load", "module-path", "probe", "serve") if name not in shown.output
    ] == []
    assert "Exit codes" in shown.output
    assert "..." not in shown.output.partition("Commands:")[2]


def test_the_installed_program_tells_its_version(program: str) -> None:
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == f"emq-native, version {emq_native.__version__}\n"


def test_the_module_path_is_printed_alone(run: Run) -> None:
    assert run("module-path").stdout == emq_native.module_path() + "\n"


@each_command
def test_a_missing_node_names_all_ways_to_name_it(run: Run, words: tuple[str, ...]) -> None:
    shown = run(*words)
    assert shown.exit_code == 2
    assert "argument, by --url, or in $EMQ_URL" in shown.stderr


@each_command
def test_a_node_that_does_not_answer_gives_no_verdict(run: Run, nowhere: str, words: tuple[str, ...]) -> None:
    shown = run(*words, nowhere)
    assert shown.exit_code == 3
    assert shown.stdout == ""
    assert shown.stderr.startswith("emq-native: ")
    assert shown.stderr.count("\n") == 1


@each_command
def test_a_url_that_is_none_is_a_wrong_command_line(run: Run, words: tuple[str, ...]) -> None:
    shown = run(*words, "http://localhost")
    assert shown.exit_code == 2
    assert "scheme" in shown.stderr
    assert shown.stderr.count("\n") == 1


@each_command
def test_a_user_without_rights_gives_no_verdict(run: Run, words: tuple[str, ...]) -> None:
    with Server(module=False, config={"requirepass": "secret"}) as server:
        shown = run(*words, f"redis://127.0.0.1:{server.port}")
    assert shown.exit_code == 3
    assert "NOAUTH" in shown.stderr


@pytest.mark.parametrize("words", [("queues",), ("top", "--count", "1")], ids=" ".join)
def test_a_user_who_may_not_look_for_queues_gives_no_verdict(
    run: Run, native_node: Server, words: tuple[str, ...]
) -> None:
    provision.claim(native_node.url, wire=6)
    with native_node.client() as control:
        control.execute_command("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all", "-scan")
        try:
            shown = run(*words, "--url", f"redis://worker:secret@127.0.0.1:{native_node.port}")
        finally:
            control.execute_command("ACL", "DELUSER", "worker")
    assert shown.exit_code == 3
    assert "NOPERM" in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_a_narrow_terminal_breaks_no_id() -> None:
    shown = StringIO()
    table = rich_table("jobs", ("id", "payload", "error"), [("JOB0SU19zs8eiY", "payload " * 9, "error " * 9)])
    Console(width=40, file=shown).print(table)
    assert "JOB0SU19zs8eiY" in shown.getvalue()


@pytest.mark.parametrize("form", ["argument", "option", "variable"])
def test_the_node_is_named_in_three_ways(run: Run, node: Server, form: str) -> None:
    words = {"argument": [node.url], "option": ["--url", node.url], "variable": []}[form]
    shown = run("fence", "show", *words, env={"EMQ_URL": node.url} if form == "variable" else {})
    assert (shown.exit_code, shown.stdout) == (0, "unclaimed\n")


def test_the_argument_wins_over_the_variable(run: Run, node: Server, nowhere: str) -> None:
    assert run("fence", "show", node.url, env={"EMQ_URL": nowhere}).exit_code == 0


def test_two_nodes_in_one_command_line_are_refused(run: Run, node: Server, nowhere: str) -> None:
    shown = run("fence", "show", node.url, "--url", nowhere)
    assert shown.exit_code == 2
    assert "two URLs" in shown.stderr


@pytest.mark.parametrize("words", OF_A_QUEUE, ids=" ".join)
def test_commands_about_a_queue_take_the_node_before_and_after_their_names(
    run: Run, native_node: Server, nowhere: str, words: tuple[str, ...]
) -> None:
    provision.claim(native_node.url, wire=6)
    group, *rest = words
    assert run(*words, "--url", native_node.url, env={"EMQ_URL": nowhere}).exit_code == 0
    assert run(group, "--url", native_node.url, *rest, env={"EMQ_URL": nowhere}).exit_code == 0
    assert run(*words, env={"EMQ_URL": native_node.url}).exit_code == 0
    assert run(group, native_node.url, *rest, env={"EMQ_URL": nowhere}).exit_code == 0
    assert "two URLs" in run(group, "--url", nowhere, *words[1:], "--url", native_node.url).stderr
    assert "two URLs" in run(group, nowhere, *words[1:], "--url", native_node.url).stderr
    missing = run(*words)
    assert missing.exit_code == 2
    assert "which node? Give its URL by --url, or in $EMQ_URL" in missing.stderr


@pytest.mark.parametrize("words", [("queues",), ("jobs", "ls"), ("worker",)], ids=" ".join)
def test_help_needs_no_node(run: Run, words: tuple[str, ...]) -> None:
    shown = run(*words, "--help")
    assert shown.exit_code == 0
    assert "$EMQ_URL" in shown.stdout


def test_the_list_of_queues_and_the_view_of_them_are_commands_about_a_node(run: Run, native_node: Server) -> None:
    provision.claim(native_node.url, wire=6)
    assert run("queues", "--url", native_node.url).exit_code == 0
    assert run("queues", native_node.url, "--json").exit_code == 0
    assert run("queues", "--json", native_node.url).exit_code == 0
    assert run("top", native_node.url, "--count", "1").exit_code == 0
    assert run("top", "--url", native_node.url, "--count", "1").exit_code == 0
    assert "which node?" in run("queues").stderr
    assert "which node?" in run("top").stderr


def test_a_worker_whose_app_has_no_node_asks_for_one(run: Run) -> None:
    shown = run("worker", "tests.worker.apps:app", "--burst")
    assert shown.exit_code == 2
    assert "which node? Give its URL to the app, by --url, or in $EMQ_URL" in shown.stderr


def test_a_valkey_url_is_accepted(run: Run, node: Server) -> None:
    assert run("fence", "show", node.url.replace("redis://", "valkey://")).exit_code == 0


def test_an_unknown_command_is_a_wrong_command_line(run: Run) -> None:
    shown = run("enqueue")
    assert shown.exit_code == 2
    assert "enqueue" in shown.stderr


def test_a_broken_pipe_is_no_traceback(program: str, node: Server) -> None:
    answer = subprocess.run(
        f"{program} probe {node.url} | true", shell=True, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in answer.stderr
