# SPDX-License-Identifier: BSD-3-Clause
"""Cases as data: number, title, what they need, and the function that proves them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .lab import Lab

OWN_SERVER: Final = "own server"
"""The case restarts, fills or reconfigures its server, or changes the fence of the database."""
NATIVE: Final = "native"
SCRIPTED: Final = "scripted"
ONCE: Final = "once"
"""The case does not depend on the protocol version, so one run is enough."""
NEEDS: Final = frozenset({OWN_SERVER, NATIVE, SCRIPTED, ONCE})

CaseFunction = Callable[["Lab"], None]


class Mismatch(AssertionError):
    """What a case found is not what the contract says."""

    def __init__(self, what: str, expected: object, found: object) -> None:
        self.what, self.expected, self.found = what, expected, found
        super().__init__(f"{what}: expected {_short(expected)}, found {_short(found)}")


class NotServed(Exception):
    """The executor under test does not have a verb that the case sends."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        super().__init__(f"{verb} is not served")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 600 else text[:600] + "..."


def expect(found: object, expected: object, what: str) -> None:
    """Demand equality of value and type: 1 is not True, bytes are not a simple string."""
    if type(found) is not type(expected) or found != expected:
        raise Mismatch(what, expected, found)


def expect_that(condition: bool, what: str, found: object = None) -> None:
    """Demand that a condition holds; `found` is shown when it does not."""
    if not condition:
        raise Mismatch(what, "that it holds", found)


def expect_between(found: object, low: int, high: int, what: str) -> None:
    """Demand a whole number within inclusive bounds, as for instants of a clock that was read before and after."""
    if (
        isinstance(found, bool)
        or not isinstance(found, (int, float))
        or not low <= found <= high
        or found != int(found)
    ):
        raise Mismatch(what, f"{low} .. {high}", found)


@dataclass(frozen=True)
class Case:
    """One conformance case.

    verbs: names of the verbs that it sends, as in TRA.CAPABILITIES. needs: members of NEEDS. A case without a function
    is known to the contract, and proved by no one until its verbs are served.
    """

    number: str
    title: str
    verbs: tuple[str, ...] = ()
    needs: frozenset[str] = field(default_factory=frozenset)
    function: CaseFunction | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[CM][0-9]{3}", self.number):
            raise ValueError(f"{self.number} is no case number")
        if self.needs - NEEDS:
            raise ValueError(f"{self.number} needs {sorted(self.needs - NEEDS)}, known are {sorted(NEEDS)}")

    def executors(self) -> tuple[str, ...]:
        """The executors that the case speaks about."""
        named = tuple(name for name in (NATIVE, SCRIPTED) if name in self.needs)
        return named or (NATIVE, SCRIPTED)


CASES: Final[dict[str, Case]] = {}


def full_name(verb: str) -> str:
    """The name of a verb as in TRA.CAPABILITIES: `claim` -> `emq.claim`."""
    lower = verb.lower()
    return lower if "." in lower else f"emq.{lower}"


def case(
    number: str, title: str, *, verbs: str = "", needs: str | Iterable[str] = ()
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as the proof of a case. verbs: short names, separated by blanks."""

    def register(function: CaseFunction) -> CaseFunction:
        add(Case(number, title, _names(verbs), _needs(needs), function))
        return function

    return register


def known(number: str, title: str, *, verbs: str, needs: str | Iterable[str] = ()) -> None:
    """Register a case whose verbs no executor serves yet."""
    add(Case(number, title, _names(verbs), _needs(needs)))


def add(new: Case) -> None:
    """Register a case; every number once."""
    if new.number in CASES:
        raise ValueError(f"{new.number} is registered twice")
    CASES[new.number] = new


def _names(verbs: str) -> tuple[str, ...]:
    return tuple(full_name(verb) for verb in verbs.split())


def _needs(needs: str | Iterable[str]) -> frozenset[str]:
    return frozenset({needs} if isinstance(needs, str) else needs)
