"""The campaigns of several ledgers, each once, with the other runs that its page shows.

The page of a history shows its earlier campaigns, the page of a fleet the runs of its hosts, and
the page of a campaign the later campaigns that explain its gap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from equipoise.ledger import Ledger, RunVersion
from equipoise.model.errors import UnusableInput
from equipoise.model.host import CERTIFICATE_STUDY
from equipoise.site.manifest import PageRecord

_DIGEST_BYTES = 16


class Campaign(Struct, frozen=True):
    """A campaign that gets a page."""

    ledger: Path
    """Ledger with the longest copy of the run."""
    version: RunVersion
    earlier: tuple[str, ...]
    mentioned: tuple[str, ...]
    explanations: tuple[RunVersion, ...]
    """Campaigns in the same ledger that mention this one, the latest first."""
    digest: str


class _Copy(Struct, frozen=True):
    ledger: Ledger
    version: RunVersion


def campaigns_of(
    ledgers: Sequence[Ledger], known: Mapping[str, PageRecord]
) -> tuple[list[Campaign], list[UnusableInput]]:
    """Return the campaigns of all ledgers in the order of their start, and unreadable runs.

    If several ledgers have a run, the copy with the most rows counts. ``known`` has the records of
    an earlier build by identity; their plans are not read again.
    """
    copies: dict[str, _Copy] = {}
    for ledger in ledgers:
        for version in ledger.run_versions():
            best = copies.get(version.identity)
            if best is None or sum(version.row_counts) > sum(best.version.row_counts):
                copies[version.identity] = _Copy(ledger, version)
    mentions: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    problems: list[UnusableInput] = []
    for identity, copy in copies.items():
        record = known.get(identity)
        try:
            mentions[identity] = (
                copy.ledger.mentions_of(copy.version)
                if record is None
                else (record.earlier, record.mentioned)
            )
        except UnusableInput as error:
            problems.append(error)
    parts: dict[str, list[str]] = defaultdict(list)
    explanations: dict[str, list[str]] = defaultdict(list)
    for identity, copy in copies.items():
        if copy.version.part_of in copies:
            parts[str(copy.version.part_of)].append(identity)
        for explained in mentions.get(identity, ((), ()))[1]:
            explanations[explained].append(identity)
    campaigns = []
    for identity, (earlier, mentioned) in mentions.items():
        copy = copies[identity]
        if copy.version.study == CERTIFICATE_STUDY or copy.version.part_of in copies:
            continue
        explaining = [
            copies[other].version
            for other in explanations[identity]
            if copies[other].ledger is copy.ledger
        ]
        related = (*earlier, *mentioned, *parts[identity], *explanations[identity])
        campaigns.append(
            Campaign(
                ledger=copy.ledger.path,
                version=copy.version,
                earlier=earlier,
                mentioned=mentioned,
                explanations=tuple(sorted(explaining, key=_start, reverse=True)),
                digest=_digest(copy.version, (copies[name].version for name in related)),
            )
        )
    return sorted(campaigns, key=lambda campaign: _start(campaign.version)), problems


def _start(version: RunVersion) -> tuple[float, str]:
    return version.started_at, version.identity


def _digest(version: RunVersion, related: Iterable[RunVersion]) -> str:
    rows = sorted((other.identity, other.row_counts) for other in related)
    content = repr((version.identity, version.name, version.row_counts, rows))
    return blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()
