"""Sources of chance that can be held, and the conditions that hold them."""

from __future__ import annotations

from equipoise.design.chance import HELD_FACTOR, conditions_by_held_source, sources_on_host
from equipoise.model.plan import PADDING_VARIABLE, Condition

COMMAND = Condition("run", ("/bin/true",), environment={"KEY": "value"})


def test_each_source_is_held_alone_and_all_are_held_together() -> None:
    sources, warnings = sources_on_host({}, (0, 3), random_addresses=True)
    assert warnings == ()
    conditions = conditions_by_held_source(COMMAND, sources)
    assert conditions[0].environment == COMMAND.environment
    assert conditions[0].process == COMMAND.process
    held = {condition.levels[HELD_FACTOR]: condition for condition in conditions}
    assert held["hash seed of Python"].environment["PYTHONHASHSEED"] == "0"
    assert held["addresses (ASLR)"].process.random_addresses is False
    assert held["CPU"].process.cpus == (3,)
    assert held["environment size"].environment[PADDING_VARIABLE] == ""
    everything = conditions[-1]
    assert everything.process.cpus == (3,)
    assert everything.process.random_addresses is False
    for condition in conditions[1:-1]:
        assert condition.environment.items() <= everything.environment.items()
    assert len({condition.name for condition in conditions}) == len(sources) + 2


def test_a_source_that_cannot_vary_here_is_reported_and_not_tried() -> None:
    sources, warnings = sources_on_host(
        {"PYTHONHASHSEED": "7", "PERL_HASH_SEED": "1"}, (0,), random_addresses=False
    )
    assert [source.name for source in sources] == ["environment size"]
    assert len(warnings) == 4
    assert all(warning.hint for warning in warnings)


def test_a_random_seed_varies() -> None:
    sources, _ = sources_on_host({"PYTHONHASHSEED": "random"}, (0, 1), random_addresses=True)
    assert "hash seed of Python" in [source.name for source in sources]
