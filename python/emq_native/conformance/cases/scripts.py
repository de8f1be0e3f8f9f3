# SPDX-License-Identifier: BSD-3-Clause
"""How the package gets its scripts to a server that has lost them."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import emq_native

from ...errors import ScriptMismatch
from ...transitions import Claim, Complete, Enqueue
from ..case import ONCE, OWN_SERVER, SCRIPTED, case, expect, expect_that
from ..lab import Lab
from ..scenes import IDLE, READS, SCENES
from .fence import raises


@case(
    "C148",
    "a server that lost its scripts gets them again, and each call runs once",
    needs=(OWN_SERVER, SCRIPTED, ONCE),
)
def flushed(lab: Lab) -> None:
    with emq_native.connect(lab.url, wire=4) as bus:
        for scene in (*SCENES, *READS, *IDLE):
            words = scene.prepare(lab)
            lab.plain("SCRIPT", "FLUSH")
            expect(bus.send(f"emq.{scene.verb}", lab.q, *words), scene.answer(lab), f"{scene} after SCRIPT FLUSH")
            lab.anew()
        queue = bus.queue(lab.name)
        jobs = lab.ids(3)
        for run in (bus.pipeline, bus.transaction):
            lab.plain("SCRIPT", "FLUSH")
            steps = [*((Enqueue(payload=b"p", id=job), queue) for job in jobs), *[(Claim(lease=60), queue)] * 3]
            values = run(steps)
            expect([str(value) for value in values[:3]], jobs, f"admissions by {run.__name__}")
            expect_that(all(value.created for value in values[:3]), "each was admitted once", values)
            expect([value.id for value in values[3:]], jobs, f"claims by {run.__name__}")
            lab.plain("SCRIPT", "FLUSH")
            done = run([(Complete(job=job), queue) for job in values[3:]])
            expect(done, [True] * 3, f"completions by {run.__name__}")
        expect(lab.record("metrics:completed"), {"count": b"6"}, "metrics:completed")


@case("C149", "a server that answers another digest for a script is not trusted", needs=(OWN_SERVER, SCRIPTED, ONCE))
def another_digest(lab: Lab) -> None:
    with _forger(lab) as url, emq_native.connect(url, wire=4) as bus:
        with lab.unchanged("a call whose script does not match"):
            lab.plain("SCRIPT", "FLUSH")  # here, for `unchanged` may send the verb itself before
            with raises(ScriptMismatch, "a call") as caught:
                bus.send("emq.enqueue", lab.q, lab.a, "p")
        expect(getattr(caught[0], "found", None), "0" * 40, "digest that was found")


@contextmanager
def _forger(lab: Lab) -> Iterator[str]:
    """A proxy to the server that answers SCRIPT LOAD with a digest of zeros; yields its URL."""
    assert lab.own_server is not None
    port = lab.own_server.server.port
    listener = socket.create_server(("127.0.0.1", 0))
    open_sockets: list[socket.socket] = [listener]

    def end(*sockets: socket.socket) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # closed alone, a socket lives on while another thread reads from it
            each.close()

    def relay(source: socket.socket, sink: socket.socket, forge: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                sink.sendall(re.sub(rb"^\$40\r\n[0-9a-f]{40}", b"$40\r\n" + b"0" * 40, data) if forge else data)
        except OSError:
            pass
        finally:
            end(source, sink)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            open_sockets.extend((client, server))
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=relay, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
    finally:
        end(*open_sockets)
