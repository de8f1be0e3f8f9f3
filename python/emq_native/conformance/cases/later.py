# SPDX-License-Identifier: BSD-3-Clause
"""Cases of the contract whose verbs no executor serves yet: flows."""

from __future__ import annotations

from ..case import known

for _number, _title, _verbs in (
    ("C115", "a flow holds its parent and lets its children run", "flow"),
    ("C116", "a flow with an id that exists adds nothing", "flow"),
    ("C117", "a flow whose ids repeat or whose number is wrong is refused", "flow"),
    ("C118", "the last child releases the parent, results noted", "flow complete"),
    ("C119", "a reaped child still counts when it completes", "flow reap complete"),
    ("C120", "the death of a child buries its parent in the same step", "flow retry"),
    ("C121", "an ignored failure counts once, whatever the child does later", "flow retry reprocess complete"),
    ("C122", "a death climbs a chain of parents in one call", "flow flowhold reap"),
    ("C123", "a death that climbs further than 8 levels goes on through the outbox", "flow flowhold flowsweep"),
    ("C124", "a removed or drained child counts as a failure", "flow remove drain"),
    ("C125", "the end of a child whose parent is gone changes nothing else", "flow remove complete"),
    ("C126", "a child in another queue tells its parent through the outbox", "flowchild flowsweep flowdeliver flowack"),
    ("C127", "two sweepers count one entry once", "flowsweep flowdeliver flowack"),
    ("C128", "a malformed entry is set aside and stops nothing", "flowsweep"),
    ("C129", "an entry for another queue, or a malformed one, is not delivered", "flowdeliver"),
    ("C130", "a child is added only to a parent that is held", "flowchild"),
    ("C131", "a tree that broke off is completed by sending it again", "flowhold flowchild"),
    ("C132", "OBLITERATE keeps undelivered entries unless forced", "flowchild obliterate"),
):
    known(_number, _title, verbs=_verbs)
