"""The command `emq-native`: look at a node, provision it, run one; look at its queues, and work on them.

Exit codes, the same for every command:

    0   done; the answer is yes
    1   refused, or the answer is no: the node lacks what was required, holds another fence, a digest differs
    2   the command line is wrong
    3   no verdict: the node does not answer, is loading, or does not know the user
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

import click

from emq_native._core import MODULE_VERSION
from emq_native.errors import EmqError, InvalidArgument, PermissionDenied, Unavailable

__all__ = ["main"]

COMMANDS: Final = {
    "conformance": "emq_native.conformance.command:conformance",
    "dead": "emq_native.cli.jobs:dead",
    "demo": "emq_native.cli.local:demo",
    "doctor": "emq_native.cli.doctor:doctor",
    "fence": "emq_native.cli.fence:fence",
    "jobs": "emq_native.cli.jobs:jobs",
    "lanes": "emq_native.cli.lanes:lanes",
    "load": "emq_native.cli.node:load",
    "metrics": "emq_native.cli.metrics:metrics",
    "module-path": "emq_native.cli.node:module_path",
    "probe": "emq_native.cli.node:probe",
    "queues": "emq_native.cli.jobs:queues",
    "serve": "emq_native.cli.local:serve",
    "top": "emq_native.cli.top:top",
    "worker": "emq_native.cli.worker:worker",
}

EXIT_CODES: Final = """\b
Exit codes: 0 done, or yes; 1 refused, or no; 2 wrong command line;
3 no verdict, the node does not answer or does not serve this user.
"""


_STEERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text that others wrote, as it may go to a terminal: what could steer it is shown with backslashes."""
    return _STEERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Failure(click.ClickException):
    """The answer is no. One line on standard error."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(f"emq-native: {plain(self.format_message())}", err=True)


class WrongCall(Failure):
    """The command line is wrong."""

    exit_code = 2


class NoVerdict(Failure):
    """The node does not serve this user now."""

    exit_code = 3


def failure_of(error: EmqError) -> Failure:
    """How an error of the package ends the command."""
    if isinstance(error, InvalidArgument):
        return WrongCall(str(error))
    return NoVerdict(str(error)) if isinstance(error, (Unavailable, PermissionDenied)) else Failure(str(error))


class Commands(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EmqError as error:
            raise failure_of(error) from error


@click.group("emq-native", cls=Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(MODULE_VERSION, package_name="emq-native", prog_name="emq-native")
def main() -> None:
    """A job queue that lives in a Valkey server: look at a node, provision it, run one; see its queues, work on them.

    The node is named by a URL (redis, rediss, valkey, valkeys, unix): by --url, by $EMQ_URL, and where the command has
    no other arguments, by an argument too.
    """
