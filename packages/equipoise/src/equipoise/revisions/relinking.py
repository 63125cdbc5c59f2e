"""Links the programs of revisions again for each block, with functions in another order.

Where functions and data lie in memory changes the speed of a program by per cents (Mytkowicz et
al. 2009; Curtsinger and Berger 2013), and a commit that changes nothing moves them, too. A block
therefore has a link of its own for each revision, and links are drawn from the same distribution
for both. So blocks stay the unit of the verdict, which then holds across links
(docs/methods/relink.md).

The new program takes the place of the program that the build linked. After the campaign, the
program of the build is put back.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from msgspec import Struct

from equipoise.campaign.segment import Runner
from equipoise.measure.trials import TrialReport
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import Draw
from equipoise.revisions.link_recording import (
    LinkRecorder,
    RecordedLink,
    links_folder,
    recorded_links,
)
from equipoise.shared.spelling import option

_MAX_SEED = (1 << 31) - 1
"""Largest seed of lld, which reads 0 and -1 as other orders."""
_TEST_SEEDS = (1, 2)
"""Seeds whose links must differ before a campaign begins."""


def link_seed(plan: Plan, draw: Draw, side: int) -> int:
    """Return the seed of the link of a revision in a block, from 1 to `_MAX_SEED`.

    ``side`` is 0 for the baseline and 1 for the candidate.
    """
    text = f"{plan.seed} {draw.phase} {draw.block} {side}"
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return 1 + int.from_bytes(digest[:8], "big") % _MAX_SEED


class LinkedTree:
    """The linked programs of one build, which this campaign replaces.

    As a context, it holds the build for this campaign alone, and puts the programs back at the end.

    ``programs`` are paths that the benchmarks run, relative to the working tree; only they are
    linked again. If the build linked none of them, all recorded programs are.
    """

    def __init__(self, tree: Path, recorder: LinkRecorder, programs: Sequence[str]) -> None:
        self._tree = tree
        self._recorder = recorder
        links = recorded_links(tree)
        chosen = [link for link in links if set(link.files) & set(programs)]
        self.links: tuple[RecordedLink, ...] = tuple(chosen or links)
        self._folder = links_folder(tree)
        self._originals = [self._folder / f"original-{index}" for index in range(len(self.links))]
        self._linked: set[Path] = set()
        """Programs that this campaign has linked."""
        self._lock = -1

    def __enter__(self) -> Self:
        """Hold the build alone, and keep its programs.

        Raise `UnusableInput` if the build linked no program, or if another campaign has it.
        """
        label = self._tree.name
        if not self.links:
            raise UnusableInput(
                f"the build of {label} linked no program again that is in its folder",
                hint=f"leave out {option('relink')}: it is for programs that a C compiler or rustc "
                "links, without -flto, and that are not stripped later",
            )
        self._lock = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise UnusableInput(
                f"another campaign links the programs of {label} again",
                hint="wait for its end",
            ) from None
        for link, original in zip(self.links, self._originals, strict=True):
            original.unlink(missing_ok=True)
            os.link(self._tree / link.files[0], original)
        return self

    def __exit__(self, *error: object) -> None:
        """Put the programs of the build back."""
        self.install(self._originals)
        for program in (*self._originals, *self._linked):
            program.unlink(missing_ok=True)
        os.close(self._lock)

    @property
    def files(self) -> tuple[str, ...]:
        """One path of each program that is linked again, relative to the working tree."""
        return tuple(link.files[0] for link in self.links)

    def link(self, seed: int, name: str) -> list[Path]:
        """Link the programs by a seed into new files with a name; return the files."""
        outputs = []
        for index, link in enumerate(self.links):
            output = self._folder / f"{name}-{index}"
            # The working tree may have the file by another name.
            output.unlink(missing_ok=True)
            self._recorder.link(Path(link.folder), output, seed)
            status = self._originals[index].stat()
            # With a new time, build tools could link again.
            os.utime(output, ns=(status.st_atime_ns, status.st_mtime_ns))
            outputs.append(output)
        self._linked.update(outputs)
        return outputs

    def install(self, programs: Sequence[Path]) -> None:
        """Put programs in the place of those in the working tree."""
        for link, program in zip(self.links, programs, strict=True):
            for file in link.files:
                beside = self._tree / f"{file}.equipoise"
                beside.unlink(missing_ok=True)
                os.link(program, beside)
                beside.replace(self._tree / file)

    def check_links_differ(self) -> None:
        """Raise `UnusableInput` if seeds do not change the place of anything."""
        one, other = (self.link(seed, f"test-{seed}") for seed in _TEST_SEEDS)
        contents = [[path.read_bytes() for path in outputs] for outputs in (one, other)]
        if contents[0] == contents[1]:
            raise UnusableInput(
                f"two links of {', '.join(self.links[0].files[:1])} in {self._tree.name} are the "
                "same: it has nothing that can move",
                hint=f"leave out {option('relink')}",
            )


class RelinkingRunner(Struct):
    """Runs the trials of a campaign, each with the program of its block's link.

    ``sides`` has the number of each condition's revision, an index into ``trees``.
    """

    runner: Runner
    plan: Plan
    trees: tuple[LinkedTree, ...]
    sides: tuple[int, ...]
    _programs: tuple[list[Path], ...] = ()
    """Programs of the present block, for each revision."""

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one position of a block; before the first, link the programs."""
        if position == 0:
            self._link(draw)
        conditions = (
            (draw.order[position],)
            if draw.washout_condition is None
            else (draw.washout_condition, draw.order[position])
        )
        return tuple(
            self._with_program(self.sides[condition], trial)
            for condition, trial in zip(
                conditions, self.runner.trials_at(draw, position), strict=True
            )
        )

    def _seed(self, draw: Draw, side: int) -> int:
        return link_seed(self.plan, draw, side)

    def _link(self, draw: Draw) -> None:
        """Link the programs of both revisions, side by side."""
        with ThreadPoolExecutor(len(self.trees)) as threads:
            links = [
                threads.submit(tree.link, self._seed(draw, side), f"side-{side}")
                for side, tree in enumerate(self.trees)
            ]
            self._programs = tuple(link.result() for link in links)

    def _with_program(
        self, side: int, trial: Callable[[], TrialReport]
    ) -> Callable[[], TrialReport]:
        def run() -> TrialReport:
            self.trees[side].install(self._programs[side])
            return trial()

        return run


class PairRelinkingRunner(RelinkingRunner):
    """Runs the trials of a campaign whose processes have the programs of all revisions at once.

    The links of a block have one seed. So functions that the revisions share have the same places
    in both, and a difference of the two is not one of their places.
    """

    def _seed(self, draw: Draw, side: int) -> int:
        return link_seed(self.plan, draw, 0)

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one position; before the first, link and put in place."""
        if position == 0:
            self._link(draw)
            for tree, programs in zip(self.trees, self._programs, strict=True):
                tree.install(programs)
        return self.runner.trials_at(draw, position)
