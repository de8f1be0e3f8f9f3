"""How frames travel, without I/O: scripts that the server does not know yet, and MULTI.

The generators here and in `fence` speak one protocol. They yield the commands of one round trip, a sequence of
argument tuples, and are sent the list of the answers in the same order. An answer is what the server replied; an
error line is the EmqError that it became.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from emq_native.errors import EmqError, ScriptMismatch, Unavailable, code_of, translate
from emq_native.executors import Frame, Script

Words = tuple[bytes, ...]
Answer = Any

T = TypeVar("T")
Steps = Generator[Sequence[Words], "list[Answer]", T]


def packed(commands: Sequence[Words]) -> bytes:
    """Commands as they travel. A client library would first ask of each word what it is: these are bytes."""
    parts = []
    for words in commands:
        parts.append(b"*%d\r\n" % len(words))
        for word in words:
            parts += (b"$%d\r\n" % len(word), word, b"\r\n")
    return b"".join(parts)


def lacks_scripts(answers: Sequence[Answer]) -> bool:
    """Whether one of the answers is NOSCRIPT."""
    return any(isinstance(answer, EmqError) and code_of(answer) == "NOSCRIPT" for answer in answers)


def repair(frames: Sequence[Frame], answers: list[Answer]) -> Steps[list[Answer]]:
    """Load what was answered with NOSCRIPT and send those frames, and only those, once more in their order.

    Each result goes to its own place. A script that cannot be loaded, or loads under another digest, is the answer of
    its frames; a second NOSCRIPT stands.
    """
    missing = [
        (place, frame, frame.script)
        for place, (frame, answer) in enumerate(zip(frames, answers, strict=True))
        if frame.script is not None and code_of(answer) == "NOSCRIPT"
    ]
    scripts = list({script.sha: script for _, _, script in missing}.values())
    loads = yield [(b"SCRIPT", b"LOAD", script.source) for script in scripts]
    failures = {script.sha: _failure(script, load) for script, load in zip(scripts, loads, strict=True)}
    ready = []
    for place, frame, script in missing:
        failure = failures[script.sha]
        if failure is None:
            ready.append((place, frame))
        else:
            answers[place] = failure
    if ready:
        again = yield [frame.argv for _, frame in ready]
        for (place, _), answer in zip(ready, again, strict=True):
            answers[place] = answer
    return answers


def _failure(script: Script, load: Answer) -> EmqError | None:
    if isinstance(load, EmqError):
        return load
    found = load.decode() if isinstance(load, bytes) else str(load)
    return None if found == script.sha else ScriptMismatch(script.sha, found)


def transaction(frames: Sequence[Frame]) -> Steps[list[Answer]]:
    """Carry out the frames in one MULTI/EXEC. They must be inline: a NOSCRIPT inside EXEC could not be repaired.

    Raises what kept the transaction from running; then none of it ran.
    """
    answers = yield [(b"MULTI",), *(frame.argv for frame in frames), (b"EXEC",)]
    outcome = answers[-1]
    if isinstance(outcome, BaseException):
        raise next((answer for answer in answers if isinstance(answer, BaseException)), outcome)
    return [translate(each) if isinstance(each, BaseException) else each for each in outcome]


def answer_of(error: BaseException, *, lost: bool = False) -> EmqError:
    """The answer that an exception of a client library stands for; it is kept as the cause.

    lost: for a command whose answer can no longer be read.
    """
    ours = translate(error, sent=True)
    if ours is None or (lost and not (isinstance(ours, Unavailable) and ours.outcome_unknown)):
        ours = Unavailable(f"the connection was closed: {error}", outcome_unknown=True, network=True)
    ours.__cause__ = error
    return ours
