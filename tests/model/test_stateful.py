"""The same agreement as a hypothesis state machine: hypothesis chooses which steps follow each other, and shrinks them.

A step is drawn as one number, from which the walker makes its words as it does in the seeded walks; so an example of
300 steps stays small enough for hypothesis, and deleting a step leaves the choices of the others alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from tests.model.machine import LEAP, Divergence, Machine, Side
from tests.model.model import Model
from tests.model.walk import LENGTH, Walk

from emq_native.executors import NATIVE, SCRIPTED

NUMBERS = st.integers(0, 2**64 - 1)


def agreement(machine: Machine) -> type[RuleBasedStateMachine]:
    """The state machine over one pair of servers and one model, which begin anew with every example."""

    class Agreement(RuleBasedStateMachine):
        @initialize(likings=NUMBERS, protocol=st.sampled_from((2, 3)), damaged=st.booleans())
        def begin(self, likings: int, protocol: int, damaged: bool) -> None:
            machine.reset(protocol)
            machine.damaged = damaged
            self.walk = Walk(likings, machine.model, damage=damaged)

        @rule(number=NUMBERS)
        def step(self, number: int) -> None:
            self.walk.random = Random(number)
            machine.step(self.walk.step(machine.now + LEAP))

    return Agreement


def take(machine: Machine, examples: int, length: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        agreement(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=length,
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def servers() -> Iterator[tuple[Side, Side]]:
    sides = Side(NATIVE), Side(SCRIPTED)
    yield sides
    for side in sides:
        side.stop()


def test_executors_and_model_agree_whatever_hypothesis_chooses(servers: tuple[Side, Side]) -> None:
    take(Machine(*servers), examples=20, length=LENGTH)


def test_hypothesis_finds_and_shrinks_a_defect_of_the_model(servers: tuple[Side, Side]) -> None:
    class Confused(Model):
        """Answers the first admission of an id as if it were the second: what hardly an example is without."""

        def call(self, verb: str, words: tuple[bytes, ...], now: int) -> object:
            answer = super().call(verb, words, now)
            return 0 if verb == "emq.enqueue" and answer == 1 else answer

    with pytest.raises(Divergence, match=r"emq\.enqueue"):
        take(Machine(*servers, model=Confused), examples=20, length=30)
