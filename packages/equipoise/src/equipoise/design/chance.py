"""Sources of chance, such as memory addresses, that make the times of one command vary.

To *hold* a source means to keep it constant in all trials. Each condition holds other sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.model.plan import PADDING_VARIABLE, Condition
from equipoise.model.record import CampaignWarning

WHAT_VARIES_STUDY = "what-varies"
"""Name of the study of `compare --what-varies`."""
HELD_FACTOR = "held"
"""Factor whose levels are names of held sources."""
NO_SOURCE, ALL_SOURCES = "nothing", "everything"
"""Levels of `HELD_FACTOR` with no source held, and with all sources held."""


class ChanceSource(Struct, frozen=True):
    """A source of chance, and the settings that hold it."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables that hold the source."""
    random_addresses: bool | None = None
    """Whether memory addresses are random while the source is held; ``None`` for no change."""
    cpus: tuple[int, ...] | None = None
    """CPUs that trials may use while the source is held; ``None`` for no change."""

    def hold_in(self, condition: Condition) -> Condition:
        """Return the condition with this source held."""
        process = replace(condition.process, cpus=self.cpus or condition.process.cpus)
        if self.random_addresses is not None:
            process = replace(process, random_addresses=self.random_addresses)
        environment = {**condition.environment, **self.environment}
        return replace(condition, environment=environment, process=process)


PRELOAD_VARIABLE = "LD_PRELOAD"

HASH_SEEDS = (
    ChanceSource("hash seed of Python", {"PYTHONHASHSEED": "0"}),
    ChanceSource("hash seed of Perl", {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}),
)
"""Hash seeds of programming languages, which environment variables set."""
ADDRESSES = ChanceSource("addresses (ASLR)", random_addresses=False)
ENVIRONMENT_SIZE = ChanceSource("environment size", {PADDING_VARIABLE: ""})
FILE_ORDER = "file order"
"""Name of the source of chance that `FILE_ORDER_LIBRARY` holds."""
FILE_ORDER_LIBRARY = "libequipoise_file_order.so"
"""Library that sorts the list of files in a folder (``crates/interpose/file_order``)."""


def sources_on_host(
    environment: Mapping[str, str], cpus: tuple[int, ...], *, random_addresses: bool
) -> tuple[tuple[ChanceSource, ...], tuple[CampaignWarning, ...]]:
    """Return the sources that vary on this host, and warnings about sources that do not vary.

    Trials inherit ``environment`` and may use ``cpus``. ``random_addresses`` is True if memory
    addresses are random on this host.
    """
    sources: list[ChanceSource] = []
    warnings: list[CampaignWarning] = []
    for hash_seed in HASH_SEEDS:
        variable = next(iter(hash_seed.environment))
        if environment.get(variable, "random") == "random":
            sources.append(hash_seed)
        else:
            warnings.append(
                untested_warning(hash_seed.name, f"{variable} is set", f"unset {variable}")
            )
    if random_addresses:
        sources.append(ADDRESSES)
    else:
        hint = "switch random addresses on with sysctl kernel.randomize_va_space=2"
        warnings.append(untested_warning(ADDRESSES.name, "this host keeps addresses fixed", hint))
    if len(cpus) > 1:
        # The last CPU, because the first often handles interrupts.
        sources.append(ChanceSource("CPU", cpus=(cpus[-1],)))
    else:
        warnings.append(
            untested_warning("CPU", "Equipoise may use only one CPU", "allow more with taskset")
        )
    return (*sources, ENVIRONMENT_SIZE), tuple(warnings)


def conditions_by_held_source(
    condition: Condition, sources: tuple[ChanceSource, ...]
) -> tuple[Condition, ...]:
    """Return the condition with no source held, with each single source, and with all sources."""
    cases = {NO_SOURCE: condition, **{source.name: source.hold_in(condition) for source in sources}}
    cases[ALL_SOURCES] = reduce(lambda changed, source: source.hold_in(changed), sources, condition)
    return tuple(
        replace(held, name=f"{name} held", levels={**held.levels, HELD_FACTOR: name})
        for name, held in cases.items()
    )


def untested_warning(name: str, reason: str, hint: str) -> CampaignWarning:
    """Return the warning that a source of chance is not tested."""
    return CampaignWarning(
        "source_not_tried", f"{name} is not tested as a source of chance: {reason}", hint
    )
