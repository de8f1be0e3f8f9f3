"""Every conformance case of the contract, on both executors and both protocol versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emq_native.conformance import CASES, Case, Outcome, judge
from emq_native.conformance.case import ONCE
from emq_native.conformance.scenes import LATER
from emq_native.executors import NATIVE, SCRIPTED, Executor

EXECUTORS = {"native": NATIVE, "scripted": SCRIPTED}


def runs() -> Iterator[object]:
    for number, case in sorted(CASES.items()):
        for name in case.executors():
            for protocol in (2,) if ONCE in case.needs else (2, 3):
                if case.function is not None:
                    yield pytest.param(case, EXECUTORS[name], protocol, id=f"{number}-{name}-resp{protocol}")


@pytest.mark.parametrize(("case", "executor", "protocol"), list(runs()))
def test_the_executor_conforms(case: Case, executor: Executor, protocol: int, servers: Callable[[str], object]) -> None:
    host = servers(executor.name)
    result = judge(case, host.server.url, executor, protocol, host)
    if result.outcome is not Outcome.OK:
        pytest.fail(
            f"{case.number} {case.title}\n{result.outcome.value}: {result.what}\n"
            f"expected {result.expected}\nfound    {result.found}",
            pytrace=False,
        )


def test_every_case_of_the_contract_is_known() -> None:
    assert sorted(number for number in CASES if number[0] == "C") == [f"C{number:03}" for number in range(1, 151)]


def test_only_cases_of_verbs_that_nobody_serves_yet_have_no_proof() -> None:
    later = {f"emq.{verb}" for verb in LATER}
    for case in CASES.values():
        assert (case.function is None) == bool(later & set(case.verbs)), case.number
