"""What the reply to CLUSTER NODES says of the primaries."""

from __future__ import annotations

from emq_native.topology import Primary, primaries

NODES = b"""\
07c3 127.0.0.1:30004@31004,host4 slave e7d1 0 1426238317239 4 connected
67ed 10.0.0.2:30002@31002,host2 master - 0 1426238316232 2 connected 5461-10922 [5461->-e7d1]
292f 10.0.0.3:30003@31003 master,fail - 1426238316232 0 3 disconnected
6ec2 :0@0 master,noaddr - 1426238316232 0 3 disconnected
824f :30005@31005,named.example myself,master - 0 0 5 connected 0 10923-16383
"""


def test_the_primaries_with_their_slots() -> None:
    assert list(primaries(NODES)) == [
        Primary("10.0.0.2", 30002, ((5461, 10922),)),
        Primary("10.0.0.3", 30003, ()),
        Primary("named.example", 30005, ((0, 0), (10923, 16383))),
    ]


def test_a_primary_serves_its_slots() -> None:
    primary = Primary("", 1, ((0, 0), (10923, 16383)))
    assert [slot for slot in (0, 1, 10922, 10923, 16383) if primary.serves(slot)] == [0, 10923, 16383]
