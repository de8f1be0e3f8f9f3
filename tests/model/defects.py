"""Defects to be found: small changes of the C, of the scripts and of the model, each of which breaks one rule.

A defect of the C replaces one text in one file, in a copy of the sources that is then built. A defect of the scripts
replaces a text in every script that has it. A defect of the model is a model of its own. A text that is not there any
more, because the code was changed, is an error: the defect is then to be written anew.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.model.data import Hash
from tests.model.model import Call, Model, row

from emq_native.executors import SCRIPTED

SOURCES = Path(__file__).parents[2] / "module" / "src"


@dataclass(frozen=True)
class Defect:
    """A rule and how to break it; `file` is that of the C, empty for scripts."""

    rule: str
    file: str
    sound: str
    broken: str

    def __str__(self) -> str:
        return self.rule

    def apply(self, text: str) -> str:
        return text.replace(self.sound, self.broken)


IN_C = [
    Defect("an active job that leaves gives its slot back", "steps.c", "if (active) emq_lane_count(lane, -1);", ""),
    Defect(
        "a token of a waiting job is good only after a reap",
        "jobs.c",
        "attempts && emq_string_equal(reaped, attempts)",
        "waits",
    ),
    Defect("a reap keeps the token", "move.c", "attempts ? &(emq_change){EMQ_REAPED, attempts} : NULL", "NULL"),
    Defect(
        "a delay uses up no run",
        "steps.c",
        "emq_job_number(call, job, EMQ_FLOOR) + 1",
        "emq_job_number(call, job, EMQ_FLOOR)",
    ),
    Defect(
        "a cap of n means n runs",
        "jobs.c",
        "emq_job_number(call, job, EMQ_FLOOR) >= max",
        "emq_job_number(call, job, EMQ_FLOOR) > max",
    ),
    Defect("a ceiling is not passed", "lanes.c", "lane->active < lane->ceiling)", "lane->active <= lane->ceiling)"),
    Defect(
        "wake keeps 64 tokens",
        "lanes.c",
        "emq_list_trim(call, wake, 0, EMQ_WAKE - 1)",
        "emq_list_trim(call, wake, 0, EMQ_WAKE)",
    ),
    Defect(
        "a served lane goes to the tail",
        "claim.c",
        "if (round->serving->offered) emq_lane_rotate(call, round->serving);",
        "",
    ),
    Defect(
        "a lane is tuned when its stale entries go",
        "steps.c",
        "if (lane) emq_lane_tune(call, lane);\n}\n\nvoid emq_finish",
        "}\n\nvoid emq_finish",
    ),
    Defect(
        "a child counts once",
        "flows.c",
        "|| noted(call, parent, child)) return;\n    note(call, parent, ignored",
        ") return;\n    note(call, parent, ignored",
    ),
    Defect(
        "a death climbs 8 levels",
        "flows.c",
        "EMQ_PARENT_QUEUE) || level == EMQ_UP)",
        "EMQ_PARENT_QUEUE) || level == EMQ_UP - 1)",
    ),
    Defect(
        "a fired run is not fired again",
        "repeat.c",
        "(double)call->args.next_ms <= due",
        "(double)call->args.next_ms < due",
    ),
    Defect("OBLITERATE leaves no setting", "queue.c", "EMQ_GLIMIT, EMQ_GWEIGHT,", "EMQ_GLIMIT,"),
    Defect(
        "the keys of a parent are seen before a write",
        "flows.c",
        "if (!see_parent_keys(call, parent)) return false;",
        "",
    ),
    Defect("a lock marker is respected", "job.c", "if (is_locked(call, job))", "if (false)"),
]

IN_LUA = [
    Defect("a missing policy means fp", "", "job.parent_policy == 'id' and 'id' or 'fp'", "job.parent_policy or 'id'"),
    Defect(
        "a stale entry is not served", "", "return job and (home(job) == name or place(id, job) == name)", "return job"
    ),
    Defect("GRESUME and GLIMIT repair the ring", "", "redis.call('LPOS', ring, group) and true", "lane.offered"),
    Defect("a claim counts the active jobs of the group", "", "lanes.run(job.group, 1)", ""),
    Defect("a lane at its ceiling leaves the ring", "", "redis.call('LREM', base .. 'ring', 1, group)", "0"),
    Defect("numbers have no leading zeros", "", "'^[1-9][0-9]*$'", "'^[0-9]+$'"),
    Defect("the result of a job is its id unless said otherwise", "", "given.RESULT or id", "given.RESULT or ''"),
    Defect("DRAIN has one limit for both places", "", "limit - #waiting", "limit"),
    Defect("GREAP ends leases of its group only", "", "if job and job.group == group then", "if job then"),
    Defect("a second member of one id is gone", "", "jobs[id] = nil\n", ""),
    Defect("a retry ends what a reap allowed", "", "if job.reaped then", "if false then"),
    Defect("ids end where 63 bits end", "", "return digit < last", "return true"),
    Defect("EXTEND needs an active job", "", "if place(id, job, { active = score }) ~= 'active' then", "if false then"),
    Defect("a job is deleted with its logs", "", "row .. ':logs', ", ""),
]


class _ForgetsFloor(Call):
    def emq_reprocess(self, job: bytes) -> int:
        answer = super().emq_reprocess(job)
        if answer == 1:
            self.write("HDEL", row(job), b"floor")
        return answer


class _WakesOnRotation(Call):
    def serve_lane(self, want: Callable[[bytes], int]) -> list[list[object]]:
        served = super().serve_lane(want)
        if served:
            self.write("LPUSH", b"wake", b"1")
        return served


class _CountsFlatJobsOnly(Call):
    def emq_counts(self) -> list[object]:
        answer = super().emq_counts()
        return [answer[0], len(self.zset(b"pending")), *answer[2:]]


class _ReleasesEarly(Call):
    def countdown(self, parent: bytes, rp: Hash) -> None:
        super().countdown(parent, rp)
        if self.place(parent, rp) == b"held":
            self.write("ZREM", b"held", parent)
            self.join(parent, rp)


class _ServesStale(Call):
    def stale(self, job: bytes, r: Hash | None, p: bytes) -> bool:
        return r is None


def _model(calls: type[Call]) -> type[Model]:
    return type("BrokenModel", (Model,), {"calls": calls})


IN_MODEL: Mapping[str, type[Model]] = {
    "REPROCESS makes room for new runs": _model(_ForgetsFloor),
    "moving to the tail wakes nobody": _model(_WakesOnRotation),
    "COUNTS includes lanes": _model(_CountsFlatJobsOnly),
    "a parent waits for all children": _model(_ReleasesEarly),
    "an entry of a job that is elsewhere is stale": _model(_ServesStale),
}


class Builder:
    """Modules with one defect each. All files are compiled once, then for each defect the one that it changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = folder / "src"
        shutil.copytree(SOURCES, self.sources)
        self.objects = {path.name: self.folder / f"{path.stem}.o" for path in sorted(self.sources.glob("*.c"))}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda name: self._compile(self.sources / name, self.objects[name]), self.objects))

    def module(self, defect: Defect) -> Path:
        """The path of a module with this defect."""
        text = (self.sources / defect.file).read_text()
        assert text.count(defect.sound) == 1, f"{defect.file} has changed, so this defect is to be written anew"
        broken = self.sources / f"broken_{defect.file}"
        broken.write_text(defect.apply(text))
        library = self.folder / f"{defect.file}-{abs(hash(defect))}.so"
        changed = self.folder / "changed.o"
        self._compile(broken, changed)
        _run("-shared", "-o", library, *(self.objects | {defect.file: changed}).values())
        return library

    def _compile(self, source: Path, target: Path) -> None:
        _run("-std=c11", "-O1", "-fPIC", "-fvisibility=hidden", f"-I{self.sources}", "-w", "-c", "-o", target, source)


def _run(*words: str | Path) -> None:
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *map(str, words)], check=True)


def scripts(defect: Defect) -> dict[str, bytes]:
    """The scripts that have this defect, by their verbs."""
    sources = {
        script.verb: script.source.decode() for script in SCRIPTED.manifest() if defect.sound in script.source.decode()
    }
    assert sources, "no script is as it was, so this defect is to be written anew"
    return {verb: defect.apply(source).encode() for verb, source in sources.items()}
