"""``equipoise verify``: whether a change is really faster, and its output still right."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import click
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, typed_command, typed_parameter_besides
from equipoise.cli.completion import complete_revisions
from equipoise.cli.conducting import analyse, measuring
from equipoise.cli.options.outputs import OutputOptions, check_folder
from equipoise.cli.results import write_and_print
from equipoise.cli.revisions import revision_of
from equipoise.cli.streams import say
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.verify.certificate import CertifiedRun, read_certificate, write_certificate
from equipoise.kinds.verify.measuring import measure_verification
from equipoise.kinds.verify.plan import VerifyRequest
from equipoise.kinds.verify.terms import EarlierVerification, VerifyDocument, VerifyResult
from equipoise.measure.scratch import scratch_folder
from equipoise.measure.trials import own_environment
from equipoise.model.errors import (
    EXIT_CONDITION_FAILED,
    EXIT_DONE,
    EXIT_GATE_FAILED,
    UnusableInput,
)
from equipoise.model.record import CampaignWarning
from equipoise.revisions.benchmarks import Benchmark
from equipoise.revisions.checkout import find_revision, repository_at, warnings_of_working_tree
from equipoise.revisions.commits import tree_hashes
from equipoise.revisions.git import Repository
from equipoise.revisions.link_recording import recorder_for_build
from equipoise.revisions.pairs import builds_of_pair, check_out_and_build
from equipoise.shared.safe_text import visible

_REPLAY_OPTIONS = frozenset(
    "replay ledger report_file json_file show_env quiet verbose color durable host "
    "allow_concurrent blocks min_blocks min_seconds budget seed relink".split()
)
"""Parameters of the command that a replay uses."""
_STATUSES = {
    "certified": EXIT_DONE,
    "not faster": EXIT_GATE_FAILED,
    "wrong output": EXIT_GATE_FAILED,
    "cannot say": EXIT_CONDITION_FAILED,
}
"""Exit status of each answer."""


class VerifyOptions(Struct, frozen=True, kw_only=True):
    """Parsed options of ``equipoise verify``."""

    argv: tuple[str, ...]
    baseline: str | None
    candidate: str | None
    build: str | None
    same_output: bool
    check: str | None
    input_command: str | None
    relink: int | None
    certificate: Path | None
    replay: Path | None
    limits: CampaignLimits
    output: OutputOptions


@click.command(
    "verify",
    cls=CommandRecorder,
    epilog="Example: equipoise verify --baseline main --build make -- ./bench",
)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGUMENT …]")
@click.option(
    "--baseline",
    metavar="REV",
    shell_complete=complete_revisions,
    help="The revision without the change.",
)
@click.option(
    "--candidate",
    metavar="REV",
    shell_complete=complete_revisions,
    show_default="HEAD with the changes of tracked files",
    help="The revision with the change.",
)
@click.option("--build", metavar="LINE", help="Run this in each revision first, untimed.")
@options.flag(
    "--same-output", help="Both revisions must print the same, byte for byte (the default)."
)
@click.option(
    "--check",
    metavar="CMD",
    help="Compare outputs by this shell line: $EQUIPOISE_EXPECTED and $EQUIPOISE_ACTUAL are files.",
)
@click.option(
    "--input-command",
    metavar="CMD",
    help="Print the input of each block by this shell line, from $EQUIPOISE_SEED.",
)
@click.option(
    "--relink",
    type=click.IntRange(min=1),
    metavar="K",
    help="Link both revisions again for each block, at least K times: the linker's luck is noise.",
)
@options.file_option("--certificate", help="Write a certificate if the speed-up is certified.")
@options.file_option(
    "--replay", help="Check a certificate, and measure its commits again in this repository."
)
@options.warmup_option("Trials of each revision before the first block, never analysed.", default=1)
@options.timeout_option
@options.stopping_options(min_blocks="5; a verdict at alpha 0.05 takes 6")
@options.judging_options()
@options.ledger_option
@options.durable_option
@options.report_option
@options.show_env_option
@options.host_options
@options.output_options
@options.pass_request(VerifyOptions)
def command(verify_options: VerifyOptions) -> int:
    """Verify that a change is really faster, and that its output is still right.

    Both revisions are checked out into private folders, built there, and compared in random order.
    After each block, untimed, the candidate's output must equal the baseline's. The answer is
    certified, not faster, wrong output or cannot say; the status is 0, 1, 1 or 3.
    """
    output = verify_options.output.checked()
    repository = repository_at(Path.cwd())
    warnings: tuple[CampaignWarning, ...] = ()
    if verify_options.replay is not None:
        _refuse_options_of_verification()
        certified = read_certificate(verify_options.replay)
        request = _replay_request(repository, certified, verify_options)
        if not output.quiet:
            _say_lines(request)
    else:
        request = _verify_request(repository, verify_options)
        if verify_options.certificate is not None:
            check_folder(verify_options.certificate)
            request.check_certifiable()
        if verify_options.candidate is None:
            warnings = tuple(
                warnings_of_working_tree(
                    repository, holder="neither revision", owner="the candidate"
                )
            )

    def command_line(seed: int) -> tuple[str, ...]:
        return _recorded_command(request, verify_options, seed)

    return _verify(request, verify_options, output, command_line, warnings)


def _verify(
    request: VerifyRequest,
    verify_options: VerifyOptions,
    output: OutputOptions,
    command_line: Callable[[int], tuple[str, ...]],
    warnings: tuple[CampaignWarning, ...],
) -> int:
    """Measure a verification, show the answer, write the certificate; return the exit status."""
    # Without a terminal, nobody reads the lines about builds.
    on_step = say if sys.stderr.isatty() and not output.quiet else lambda step: None
    with (
        scratch_folder() as scratch,
        measuring(output, interrupt_hint="verify again") as (ledger, listener),
        builds_of_pair(request, scratch) as builds,
    ):
        checkouts = check_out_and_build(request, scratch, builds, show=on_step)
        run_id = measure_verification(
            request,
            checkouts,
            builds,
            scratch,
            ledger,
            listener,
            command_line=command_line,
            warnings=warnings,
        )
        result = analyse(run_id, ledger, output)
        assert isinstance(result.document, VerifyDocument)
        verify = result.document.verify
        certificate = verify_options.certificate
        if certificate is not None and verify.answer == "certified":
            write_certificate(ledger, ledger.read_run(run_id), verify, certificate)
        elif certificate is not None and not output.quiet:
            say(f"{certificate} is not written: the answer is {verify.answer}")
    write_and_print(result, output)
    return exit_status_of(verify)


def exit_status_of(verify: VerifyResult) -> int:
    """Return 0 for certified, 1 for not faster or wrong output, and 3 for cannot say."""
    return _STATUSES[verify.answer]


def _verify_request(repository: Repository, verify_options: VerifyOptions) -> VerifyRequest:
    argv, baseline = verify_options.argv, verify_options.baseline
    example = "equipoise verify --baseline main --build make -- ./bench"
    if baseline is None:
        raise UnusableInput("verify needs --baseline", hint=f"run, for example: {example}")
    if not argv or not argv[0] or any("\0" in word for word in argv):
        raise UnusableInput("verify needs a command after --", hint=f"run, for example: {example}")
    if verify_options.same_output and verify_options.check is not None:
        raise UnusableInput(
            "--same-output and --check are two comparisons of the same outputs",
            hint="leave out one of them",
        )
    return VerifyRequest(
        repository=repository,
        baseline=find_revision(repository, baseline, "--baseline"),
        candidate=revision_of(repository, verify_options.candidate, "--candidate"),
        benchmarks=(Benchmark(shlex.join(argv), argv),),
        build=verify_options.build,
        limits=verify_options.limits,
        recorder=None
        if verify_options.relink is None
        else recorder_for_build(verify_options.build, own_environment()),
        min_links=verify_options.relink,
        check=verify_options.check,
        input_command=verify_options.input_command,
    )


def _replay_request(
    repository: Repository, certified: CertifiedRun, verify_options: VerifyOptions
) -> VerifyRequest:
    """Return the request that measures the commits of a certificate again.

    Raise `UnusableInput` if the repository lacks a commit.
    """
    terms, plan, limits = certified.terms, certified.record.plan, verify_options.limits
    folder = PurePosixPath(terms.folder)
    name = f"--replay {verify_options.replay}"
    for commit in (terms.baseline.commit, terms.candidate.commit):
        find_revision(repository, commit, name)
    commits = (terms.baseline.commit, terms.candidate.commit)
    hashes = tree_hashes(repository, commits)
    # The folder comes from a file that somebody else may have written.
    is_outside = folder.is_absolute() or ".." in folder.parts
    if (hashes[commits[0]], hashes[commits[1]]) != terms.trees or is_outside:
        raise UnusableInput(
            f"{name}: its commits have other files in this repository",
            hint="clone the repository in which the certificate was written",
        )
    stopping, judgement = plan.stopping, plan.judgement
    min_links = verify_options.relink
    if min_links is None and terms.relinking is not None:
        min_links = terms.relinking.min_links
    assert certified.verify.ratio is not None
    return VerifyRequest(
        repository=Repository(repository.top, terms.folder),
        baseline=terms.baseline,
        candidate=terms.candidate,
        benchmarks=(Benchmark(shlex.join(terms.command), terms.command),),
        build=terms.build,
        limits=CampaignLimits(
            blocks=limits.blocks or stopping.blocks,
            min_blocks=limits.min_blocks
            or (stopping.min_blocks if stopping.min_blocks_explicit else None),
            min_seconds=stopping.min_seconds if limits.min_seconds is None else limits.min_seconds,
            budget=limits.budget or stopping.budget_s,
            alpha=judgement.alpha,
            min_effect=judgement.min_effect,
            timeout=plan.measure.timeout_s,
            warmup=plan.measure.warmup,
            seed=limits.seed,
        ),
        recorder=None if min_links is None else recorder_for_build(terms.build, own_environment()),
        min_links=min_links,
        check=terms.check,
        input_command=terms.input_command,
        earlier=EarlierVerification(
            certified.record.identity, certified.verify.ratio, certified.verify.ratio_ci, ()
        ),
        earlier_builds=terms.builds,
    )


def _say_lines(request: VerifyRequest) -> None:
    """Print the lines of a certificate before they run: they may be somebody else's."""
    for use, line in _lines_of(request):
        say(f"the certificate runs its {use}: {visible(line)}")


def _lines_of(request: VerifyRequest) -> Iterator[tuple[str, str]]:
    yield "command", request.benchmarks[0].name
    for use, line in (
        ("build", request.build),
        ("input command", request.input_command),
        ("comparison of outputs", request.check),
    ):
        if line is not None:
            yield use, line


def _refuse_options_of_verification() -> None:
    typed_name = typed_parameter_besides(_REPLAY_OPTIONS)
    if typed_name is not None:
        raise UnusableInput(
            f"--replay repeats the verification of its file, so it cannot be combined with "
            f"{typed_name}",
            hint=f"leave out {typed_name}",
        )


def _recorded_command(
    request: VerifyRequest, verify_options: VerifyOptions, seed: int
) -> tuple[str, ...]:
    if verify_options.replay is not None:
        return typed_command(seed=seed)
    candidate = request.candidate
    return typed_command(
        argv=verify_options.argv,
        baseline=request.baseline.commit,
        candidate=None if candidate.uncommitted else candidate.commit,
        certificate=None,
        seed=seed,
    )
