"""The exception tree, and how a server's line and a library's exception become one of ours."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys

import pytest
import redis.exceptions
import valkey.exceptions

import emq_native
from emq_native import errors
from emq_native.errors import from_line, server_line, translate

LINES = {
    "EMQFENCE wants echomq:6.0.0 at {emq}:version, found nothing": errors.FenceRefused,
    "EMQKIND job id must be JOB-namespaced": errors.WrongKind,
    "EMQSTALE complete token mismatch": errors.StaleToken,
    "EMQSTALE job gone": errors.JobGone,
    "EMQSTATE job is not active": errors.WrongState,
    "EMQLOCK job is active": errors.JobLocked,
    "EMQRATE slow down": errors.RateLimited,
    "ERR syntax error": errors.BadRequest,
    "ERR unknown command 'NONSENSE', with args beginning with: ": errors.BadRequest,
    "ERR unknown command 'EMQ.NEXT', with args beginning with: 'emq:{q}' ": errors.ModuleMissing,
    "ERR unknown command `emq.claim`, with args beginning with: `emq:{q}`, ": errors.ModuleMissing,
    "WRONGTYPE Operation against a key holding the wrong kind of value": errors.WrongType,
    "OOM command not allowed when used memory > 'maxmemory'.": errors.OutOfMemory,
    "MOVED 105 127.0.0.1:7001": errors.Redirected,
    "ASK 105 127.0.0.1:7001": errors.Redirected,
    "LOADING Valkey is loading the dataset in memory": errors.Unavailable,
    "READONLY You can't write against a read only replica.": errors.Unavailable,
    "MASTERDOWN Link with MASTER is down": errors.Unavailable,
    "CLUSTERDOWN Hash slot not served": errors.Unavailable,
    "TRYAGAIN Multiple keys request during rehashing of slot": errors.Unavailable,
    "BUSY Valkey is busy running a script.": errors.Unavailable,
    "MISCONF Errors writing to the AOF file: No space left on device": errors.Unavailable,
    "NOREPLICAS Not enough good replicas to write.": errors.Unavailable,
    "UNBLOCKED force unblock from blocking operation": errors.Unavailable,
    "ERR max number of clients reached": errors.Unavailable,
    "NOPERM User w has no permissions to run the 'emq.claim' command": errors.PermissionDenied,
    "NOAUTH Authentication required.": errors.PermissionDenied,
    "WRONGPASS invalid username-password pair or user is disabled.": errors.PermissionDenied,
    "EMQFUTURE a class that this client does not know": errors.Refused,
    "NOSCRIPT No matching script.": errors.Refused,
}

BUILT = {"ERR max number of clients reached"}
"""Lines that a library raises only while it connects."""


@pytest.mark.parametrize(("line", "expected"), LINES.items(), ids=lambda value: str(value).split(" ")[0])
def test_a_line_becomes_its_class_and_is_kept_exactly(line: str, expected: type[errors.EmqError]) -> None:
    error = from_line(line)

    assert type(error) is expected
    assert isinstance(error, (errors.Refused, errors.Unavailable, errors.PermissionDenied))
    assert error.text == line
    assert error.code == line.split(" ")[0]
    assert line in str(error)


@pytest.mark.parametrize("library", ["redis", "valkey"])
@pytest.mark.parametrize("line", [line for line in LINES if line not in BUILT], ids=lambda line: line.split(" ")[0])
def test_what_a_library_made_of_a_line_is_taken_back(library: str, line: str) -> None:
    parser = importlib.import_module(f"{library}._parsers").BaseParser

    raised = parser.parse_error(line)

    assert server_line(raised) == line
    ours = translate(raised)
    assert type(ours) is LINES[line]


@pytest.mark.parametrize("library", [redis.exceptions, valkey.exceptions], ids=["redis-py", "valkey-py"])
def test_network_errors_are_unavailable_without_a_code(library: object) -> None:
    for name in ("ConnectionError", "TimeoutError", "MaxConnectionsError"):
        error = getattr(library, name)("lost")

        before, after = translate(error), translate(error, sent=True)

        assert isinstance(before, errors.Unavailable)
        assert isinstance(after, errors.Unavailable)
        assert before.code == after.code == ""
        assert not before.outcome_unknown
        assert after.outcome_unknown


def test_a_server_that_refused_says_that_the_outcome_is_known() -> None:
    error = translate(redis.exceptions.BusyLoadingError("loading", status_code="LOADING"), sent=True)

    assert isinstance(error, errors.Unavailable)
    assert error.code == "LOADING"
    assert not error.outcome_unknown


def test_foreign_exceptions_are_not_ours() -> None:
    assert translate(KeyError("x")) is None
    assert translate(KeyboardInterrupt()) is None


def test_a_password_that_the_server_does_not_want_is_a_matter_of_permission() -> None:
    text = (
        "AUTH <password> called without any password configured for the default user. Are you sure your configuration"
        " is correct?"
    )
    assert isinstance(translate(redis.exceptions.AuthenticationError(text, status_code="ERR")), errors.PermissionDenied)


def test_a_redirection_names_the_other_node() -> None:
    moved = from_line("MOVED 105 10.0.0.7:7001")
    same_host = from_line("MOVED 105 :7001")

    assert isinstance(moved, errors.Redirected)
    assert isinstance(same_host, errors.Redirected)
    assert (moved.host, moved.port) == ("10.0.0.7", 7001)
    assert (same_host.host, same_host.port) == ("", 7001)


def test_a_resent_refusal_says_that_the_first_sending_may_have_worked() -> None:
    error = from_line("EMQSTATE job is not active")
    assert isinstance(error, errors.WrongState)
    error.resent = True

    assert error.text == "EMQSTATE job is not active"
    assert "may have been carried out" in str(error)


def test_an_unclaimed_node_names_both_ways_to_claim_it() -> None:
    text = str(errors.WireUnclaimed("echomq:6.0.0"))

    assert "emq-native fence claim --wire 4" in text
    assert "emq-native fence claim --wire 6" in text


INSTANCES = [
    errors.WireMismatch("echomq:4.0.0", "echomq:6.0.0"),
    errors.WireUnclaimed("echomq:6.0.0", "emq:{q}:version"),
    errors.ScriptMismatch("a" * 40, "b" * 40),
    errors.InvalidArgument("no"),
    errors.InvalidId("x", "length"),
    errors.MintExhausted("late"),
    errors.Unavailable("lost", outcome_unknown=True, network=True),
    *(from_line(line) for line in LINES),
]


@pytest.mark.parametrize("error", INSTANCES, ids=lambda error: type(error).__name__)
def test_every_exception_survives_pickling_and_copying(error: errors.EmqError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.__dict__ == error.__dict__


def test_arguments_that_are_refused_are_value_errors() -> None:
    assert issubclass(errors.InvalidArgument, ValueError)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if line.strip() == "EmqError":
            stack = [(line.index("EmqError"), "EmqError")]
        elif "+--" in line:
            column = line.index("+--")
            name = line[column + 3 :].split()[0]
            while stack[-1][0] >= column:
                stack.pop()
            drawn[name] = stack[-1][1]
            stack.append((column, name))
    actual = {
        name: kind.__bases__[0].__name__
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.EmqError) and kind is not errors.EmqError
    }
    hidden = {"_Answered": "EmqError"}
    assert drawn == {name: hidden.get(base, base) for name, base in actual.items() if name not in hidden}


def test_the_package_exports_every_exception() -> None:
    public = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.EmqError) and not name.startswith("_")
    }

    assert public <= set(emq_native.__all__)


def test_importing_the_package_imports_no_client_that_nobody_gave() -> None:
    program = "import sys, emq_native, emq_native.aio; assert 'valkey' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
