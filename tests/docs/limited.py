"""``equipoise`` as the examples find it: the program itself, with small limits.

Behind what the page says stand at most a few blocks and a second. A built-in study runs its quick
form with a few levels of each factor that the page does not name, and draws no figures: the tests
of ``equipoise run`` draw them. Campaigns that Python starts have as few blocks. Nothing else is
changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

from equipoise.cli.main import run

STOPPED = ("--blocks", "2", "--min-blocks", "1", "--budget", "1")
ONCE = ("--blocks", "1", "--min-blocks", "1", "--budget", "1", "--warmup", "0")
LIMITS = {
    "compare": (*STOPPED, "--warmup", "0"),
    "run": ONCE,
    "os": ("--quick", *ONCE),
    "gate": STOPPED,
    "bisect": ("--blocks", "4", "--budget", "1"),
    "history": ("--blocks", "4", "--budget", "1"),
    "why": STOPPED,
    "resume": ("--blocks", "12", "--min-blocks", "1", "--budget", "1"),
}
"""Of a command: what stands behind its own words, where the last one counts."""
FEW_ROWS = ("--only", "null_call,pipe_same_cpu")
FEW_LEVELS = {
    "allocators": ("allocator=glibc,glibc_15k", "size=1024"),
    "anandtech2005": ("row=fork,null_call,thread",),
    "blas": ("library=reference,openblas", "size=64", "task=dgemm", "threads=one"),
    "compilers": ("kernel=nbody", "layout=1,2"),
    "packages": ("package=equipoise,numpy", "task=invert"),
    "predicts": ("measured=null_call,page_fault", "transport=unix", "memory=glibc"),
    "ridiculousfish2006": ("allocator=glibc,glibc_15k", "block=1024,35840"),
    "sekhon2006": ("algorithm=blas", "allocator=glibc,glibc_15k", "rows=445"),
    "tasks": ("task=sort", "exchanged=glibc,dlmalloc"),
    "threshold": ("threshold=default,16384", "work=malloc"),
    "tratt2019": ("words=1000",),
    "warmup": ("runtime=compiled,cpython", "kernel=fannkuch", "iterations=40"),
}
"""Of a built-in study, by the factors that a page may name itself."""


def limited(words: Sequence[str]) -> list[str]:
    """The words of a command line with the limits of its command."""
    name, *rest = words
    behind = list(LIMITS.get(name, ()))
    if "--layouts" in rest:
        behind += ["--blocks", "24"]
    if "--what-varies" in rest:
        behind += ["--blocks", "8"]
    if name == "os" and "--only" not in rest:
        behind += FEW_ROWS
    if name == "run" and rest[0] in FEW_LEVELS:
        values = (value for word, value in pairwise(rest) if word == "--factor")
        said = {value.partition("=")[0] for value in values}
        few = [one for one in FEW_LEVELS[rest[0]] if one.partition("=")[0] not in said]
        behind += ["--quick", *(word for one in few for word in ("--factor", one))]
    place = rest.index("--") if "--" in rest else len(rest)
    return [name, *rest[:place], *behind, *rest[place:]]


def without_figures() -> AbstractContextManager[object]:
    """Draw none; what this takes to import, only the commands need that draw."""
    from unittest import mock

    return mock.patch("equipoise.cli.conducting.write_study_figures")


def limit_python() -> None:
    """Give every campaign that Python starts from here on the limits of `equipoise compare`."""
    from unittest import mock

    from msgspec.structs import replace

    from equipoise.design.limits import CampaignLimits
    from equipoise.model.plan import Stopping

    unlimited = CampaignLimits.stopping

    def stopping(limits: CampaignLimits, default: Stopping | None = None) -> Stopping:
        return replace(
            unlimited(limits, default), blocks=2, min_blocks=1, blocks_before_budget=0, budget_s=1.0
        )

    mock.patch.object(CampaignLimits, "stopping", stopping).start()


if __name__ == "__main__":
    words = limited(sys.argv[1:])
    with without_figures() if words[0] == "run" else nullcontext():
        sys.exit(run(words))
