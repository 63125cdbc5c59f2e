"""Links the programs of revisions again for each block, with functions at other addresses.

Where functions and data lie in memory changes the speed of a program by per cents (Mytkowicz et
al. 2009; Curtsinger and Berger 2013), and a commit that changes nothing moves them, too. A block
therefore has a layout of its own, by which the programs of all its revisions are linked: what they
share has the same places. So blocks stay the unit of the verdict, which then holds across links
(docs/methods/relink.md).

The new program takes the place of the program that the build linked. After the campaign, the
program of the build is put back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.conduct import RunnerAdapter
from equipoise.campaign.segment import Runner
from equipoise.design.coin import seed_in_block
from equipoise.measure.trials import TrialReport
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import Draw
from equipoise.model.revisions import Relinking
from equipoise.revisions.build_cache import BuildCache
from equipoise.revisions.link_recording import (
    LinkRecorder,
    RecordedLink,
    links_folder,
    recorded_links,
)
from equipoise.revisions.plan import Checkout
from equipoise.shared.spelling import option

_TEST_SEEDS = (1, 2)
"""Seeds whose links must differ before a campaign begins."""


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
                f"the build of {label} linked no program that can be linked again",
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
        if self.is_kept:
            self.install(self._originals)
        for program in (*self._originals, *self._linked):
            program.unlink(missing_ok=True)
        os.close(self._lock)

    @property
    def is_kept(self) -> bool:
        """Whether the cache still has this build."""
        return all(map(Path.exists, self._originals))

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
                f"two links of {self.files[0]} in {self._tree.name} are the same: it has nothing "
                "that can move",
                hint=f"leave out {option('relink')}",
            )


class Relinker:
    """Links the programs of a campaign's revisions again, and adapts the runner of its trials.

    As a context, it holds the builds of the revisions that it has linked.

    ``trees`` are the roots of the working trees of the revisions; those of revisions that are not
    built yet do not exist. ``sides`` has the index of each condition's revision. Revisions with the
    same files share a working tree.
    """

    def __init__(
        self, recorder: LinkRecorder, plan: Plan, trees: Sequence[Path], sides: Sequence[int]
    ) -> None:
        self._recorder = recorder
        self._plan = plan
        self._trees = tuple(trees)
        self._sides = tuple(sides)
        self._linked_trees: dict[Path, LinkedTree] = {}
        self._programs: dict[int, list[Path]] = {}
        """Programs of the present block, by revision."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Hold no build yet."""
        return self

    def __exit__(self, *error: object) -> None:
        """Put the programs of all builds back."""
        self._stack.close()

    def linked_tree(self, side: int) -> LinkedTree:
        """Return the programs of a revision that is built.

        Raise `UnusableInput` if no program can be linked again, if two links do not differ, or if
        another campaign has the build.
        """
        path = self._trees[side]
        linked_tree = self._linked_trees.get(path)
        # The cache may have removed the build, and made it again.
        if linked_tree is None or not linked_tree.is_kept:
            programs = _programs_in(path, self._plan)
            tree = self._stack.enter_context(LinkedTree(path, self._recorder, programs))
            tree.check_links_differ()
            self._linked_trees[path] = tree
        return self._linked_trees[path]

    def adapt(self, runner: Runner) -> Runner:
        """Return a runner whose trials have the programs of their block's links."""
        return _RelinkingRunner(self, runner)

    def link(self, draw: Draw) -> None:
        """Link the programs of all revisions of a block, side by side.

        All revisions have one seed. So the functions that they share have the same places, and the
        difference of two revisions is not one of these places (`revisions.link_layouts`).
        """
        seed = seed_in_block(self._plan.seed, "links", draw.phase, draw.block)
        sides = sorted({self._sides[condition] for condition in conditions_of(draw)})
        trees = [self.linked_tree(side) for side in sides]
        with ThreadPoolExecutor(len(sides)) as threads:
            links = [
                threads.submit(tree.link, seed, f"side-{side}")
                for side, tree in zip(sides, trees, strict=True)
            ]
            self._programs = {side: link.result() for side, link in zip(sides, links, strict=True)}

    def install(self, condition: int) -> None:
        """Put the programs of the present block in the working tree of a condition."""
        side = self._sides[condition]
        self.linked_tree(side).install(self._programs[side])

    def install_all(self) -> None:
        """Put the programs of the present block in the working trees of all its revisions."""
        for side, programs in self._programs.items():
            self.linked_tree(side).install(programs)

    @property
    def shares_processes(self) -> bool:
        """Whether each process of the campaign has the programs of all revisions."""
        return self._plan.rules.shares_processes


class _RelinkingRunner(Struct, frozen=True):
    relinker: Relinker
    runner: Runner

    def trials_at(self, draw: Draw, position: int) -> tuple[Callable[[], TrialReport], ...]:
        """Return the trials at one position of a block; before the first, link the programs."""
        if position == 0:
            self.relinker.link(draw)
        trials = self.runner.trials_at(draw, position)
        if self.relinker.shares_processes:
            if position == 0:
                self.relinker.install_all()
            return trials
        return tuple(
            self._with_program(condition, trial)
            for condition, trial in zip(conditions_at(draw, position), trials, strict=True)
        )

    def _with_program(
        self, condition: int, trial: Callable[[], TrialReport]
    ) -> Callable[[], TrialReport]:
        def run() -> TrialReport:
            self.relinker.install(condition)
            return trial()

        return run


class LinksOfCampaign(Struct, frozen=True):
    """A plan whose programs may be linked again for each block, and the means to do it."""

    plan: Plan
    relinking: Relinking | None
    """``None`` unless programs are linked again."""
    adapt_runner: RunnerAdapter
    """Function that adds the links to the runner of the trials."""


@contextlib.contextmanager
def linking_again(
    plan: Plan, min_links: int | None, checkouts: Sequence[Checkout], builds: BuildCache | None
) -> Iterator[LinksOfCampaign]:
    """Yield a plan with the blocks that its links need, and a function that adapts its runner.

    ``min_links`` is 0 if any number of links will do. Without it, the plan and its runner stay as
    they are. Raise `UnusableInput` if a revision has no program that can be linked again.
    """
    recorder = None if builds is None else builds.recipe.recorder
    if min_links is None or recorder is None:
        yield LinksOfCampaign(plan, None, lambda runner: runner)
        return
    candidates = {contrast.candidate for contrast in plan.contrasts}
    sides = [int(index in candidates) for index in range(len(plan.conditions))]
    with Relinker(recorder, plan, [checkout.tree for checkout in checkouts], sides) as relinker:
        files = (relinker.linked_tree(0).files, relinker.linked_tree(1).files)
        stopping = plan.stopping
        if min_links:
            min_blocks = max(stopping.min_blocks, min_links)
            stopping = replace(stopping, min_blocks=min_blocks, min_blocks_explicit=True)
        yield LinksOfCampaign(
            replace(plan, stopping=stopping),
            Relinking(recorder.version, min_links, files),
            relinker.adapt,
        )


def conditions_at(draw: Draw, position: int) -> tuple[int, ...]:
    """Return the conditions of the trials at one position: a washout comes before its trial."""
    washout = () if draw.washout_condition is None else (draw.washout_condition,)
    return (*washout, draw.order[position])


def conditions_of(draw: Draw) -> tuple[int, ...]:
    """Return the conditions of all trials of a block."""
    return tuple(
        condition
        for position in range(len(draw.order))
        for condition in conditions_at(draw, position)
    )


def _programs_in(tree: Path, plan: Plan) -> list[str]:
    """Return the programs of a plan in a working tree, or its library, relative to the tree."""
    # The command of a function is: PROGRAM --library FILE --function NAME.
    word = 2 if plan.rules.shares_processes else 0
    paths = (Path(os.path.realpath(condition.command[word])) for condition in plan.conditions)
    return [str(path.relative_to(tree)) for path in paths if path.is_relative_to(tree)]
