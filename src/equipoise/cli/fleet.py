"""A campaign on the hosts of a cluster, on the command line: ask, follow, analyse, show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from equipoise.campaign.conduct import Interrupted
from equipoise.cli.conducting import analyse, show_result
from equipoise.cli.options import access_of
from equipoise.cli.output_options import OutputOptions
from equipoise.cli.streams import say
from equipoise.design.command_line import shell_line
from equipoise.design.limits import CampaignLimits
from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning, RunRecord

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess
    from equipoise.cluster.fleet import FleetOptions, FleetOutcome

_ONE_HOST_OPTIONS = {
    "why": "what explains a gap is observed on one host",
    "what_varies": "the sources of chance are those of one host",
    "adjust": "what holds over hosts rests on unadjusted blocks",
    "layouts": "what holds over hosts rests on blocks, not on layouts",
    "against": "a reference result is compared with one host",
    **dict.fromkeys(
        [f"export_{form}" for form in ("json", "csv", "markdown", "asciidoc", "orgmode")],
        "hyperfine's formats hold the times of one host",
    ),
}
"""Options that do not go with ``--cluster``, each with the reason."""
_CLUSTER_OPTIONS = ("ship", "host_timeout")
"""Options that need ``--cluster``."""


def fleet_access(arguments: Mapping[str, Any]) -> ClusterAccess | None:
    """Return the cluster to measure on; ``None`` for this host alone.

    Raises
    ------
    UnusableInput
        The address is none or unprotected, or an option does not go with ``--cluster``.
    """
    access = access_of(arguments)
    if access is None:
        for name in _CLUSTER_OPTIONS:
            if arguments.get(name):
                raise UnusableInput(
                    f"{_option(name)} without --cluster", hint="leave it out, or name the cluster"
                )
        return None
    for name, reason in _ONE_HOST_OPTIONS.items():
        if arguments.get(name):
            raise UnusableInput(
                f"{_option(name)} does not go with --cluster: {reason}",
                hint="leave it out, or measure on one host",
            )
    if "inherit" in (arguments.get("output_kind") or ()):
        raise UnusableInput(
            "--output inherit does not go with --cluster: the terminal is on another host",
            hint="leave it out, or name a file, which each host writes",
        )
    return access


def measure_fleet(
    plan: Plan,
    access: ClusterAccess,
    arguments: Mapping[str, Any],
    output: OutputOptions,
    *,
    again: str | None = None,
    build_lines: Mapping[str, str] | None = None,
    build_folders: Mapping[str, str] | None = None,
    warnings: Sequence[CampaignWarning] = (),
) -> int:
    """Measure a plan on every host of a cluster, and show what holds over them.

    Parameters
    ----------
    again
        The shell line that runs the campaign again; by default the plan's own.
    build_lines, build_folders
        Line that builds each level of a study, by the level's name, and the folder in which this
        machine built it: every host builds them itself.
    """
    from equipoise.cluster import fleet
    from equipoise.cluster.connection import running_scheduler
    from equipoise.cluster.places import portable_builds
    from equipoise.cluster.transport import DaskTransport

    with (
        _coordinating(output, access) as ledger,
        running_scheduler(access) as address,
    ):
        outcome = fleet.run_to_end(
            fleet.start(
                plan,
                replace(
                    _options(access, arguments, output, again),
                    builds=portable_builds(build_lines or {}, plan.measure.working_folder),
                    build_folders=tuple((build_folders or {}).values()),
                ),
                DaskTransport(address, access.tls),
                ledger,
                _listener(output),
                warnings=warnings,
            )
        )
        return _show_fleet(outcome, access, ledger, output)


def resume_fleet(
    record: RunRecord,
    limits: CampaignLimits,
    arguments: Mapping[str, Any],
    output: OutputOptions,
) -> int:
    """Go on with the campaign of a fleet where its hosts are, and show what holds over them."""
    from equipoise.cluster import fleet
    from equipoise.cluster.connection import running_scheduler
    from equipoise.cluster.transport import DaskTransport

    terms = record.plan.fleet
    assert terms is not None, "only a coordinator's run has a cluster"
    cluster = arguments["cluster"] or terms.cluster
    access = fleet_access({**arguments, "cluster": cluster})
    assert access is not None
    with (
        _coordinating(output, access) as ledger,
        running_scheduler(access) as address,
    ):
        outcome = fleet.run_to_end(
            fleet.resume(
                record,
                limits,
                _options(access, arguments, output, terms.again),
                DaskTransport(address, access.tls),
                ledger,
                _listener(output),
            )
        )
        return _show_fleet(outcome, access, ledger, output)


def refuse_member(record: RunRecord) -> None:
    """Refuse to go on by hand with the campaign of a host: two who do make a fork.

    Raises
    ------
    UnusableInput
        The run belongs to a fleet.
    """
    membership = record.plan.membership
    if membership is not None:
        raise UnusableInput(
            f"run {record.id} is the part of one host in the campaign of a fleet",
            hint=f"where the fleet was asked: equipoise resume {membership.fleet}",
        )


@contextmanager
def _coordinating(output: OutputOptions, access: ClusterAccess) -> Iterator[Ledger]:
    """Open the ledger for writing, without the measurement lock: this process measures nothing.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted the campaign; a message has said so.
    """
    with open_for_writing(output.ledger, durable=output.durable, host=output.host) as ledger:
        try:
            yield ledger
        except Interrupted as interruption:
            say(
                "interrupted; hosts that answer were told to stop, and nothing measured is lost",
                _resume_line(interruption.run_id, access),
            )
            raise KeyboardInterrupt from None


def _options(
    access: ClusterAccess, arguments: Mapping[str, Any], output: OutputOptions, again: str | None
) -> FleetOptions:
    from equipoise.cluster.address import LocalWorkers
    from equipoise.cluster.coordinator import HOST_TIMEOUT_S
    from equipoise.cluster.fleet import FleetOptions

    return FleetOptions(
        cluster=access.address.text,
        again=again,
        campaign_for_each_worker=isinstance(access.address, LocalWorkers),
        ship=bool(arguments.get("ship")),
        allow_concurrent=output.allow_concurrent,
        durable=output.durable,
        host_timeout_s=arguments["host_timeout"] or HOST_TIMEOUT_S,
    )


def _listener(output: OutputOptions) -> Any:
    from equipoise.cli.fleet_progress import fleet_progress_for

    return fleet_progress_for(quiet=output.quiet, color=output.color)


def _show_fleet(
    outcome: FleetOutcome, access: ClusterAccess, ledger: Ledger, output: OutputOptions
) -> int:
    """Name what is missing, then show the result of what is there; return the exit status.

    Raises
    ------
    ConditionFailed
        The campaign failed on every host.
    UnusableInput
        Nothing of any host is there.
    """
    failed, missing = outcome.failed, outcome.missing
    if len(failed) == len(outcome.lines):
        raise ConditionFailed(
            f"the campaign failed on every host: {failed[0].host}: {failed[0].problem}",
            hint=failed[0].hint,
        )
    for line in failed:
        say(f"the campaign failed on {line.host}: {line.problem}", line.hint)
    resume = _resume_line(outcome.run_id, access)
    if missing:
        names = ", ".join(line.host for line in missing)
        what = f"no answer from {names}: what was measured there since is not in this result"
        if all(line.blocks == 0 for line in outcome.lines):
            raise UnusableInput(f"no answer from {names}: nothing is here yet", hint=resume)
        say(what, f"{resume} fetches it")
    return show_result(analyse(outcome.run_id, ledger, output), output)


def _resume_line(run_id: str, access: ClusterAccess) -> str:
    """Return the command that goes on, with what the ledger does not keep."""
    words = ["equipoise", "resume", run_id]
    if access.tls is not None:
        words += ["--tls-ca", str(access.tls.authority), "--tls-cert", str(access.tls.certificate)]
        words += ["--tls-key", str(access.tls.key)]
    if access.insecure:
        words.append("--insecure")
    return shell_line(words)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
