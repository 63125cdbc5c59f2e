"""The benchmark tools of languages: how a gate builds and runs them, and who reads their results.

One process of such a tool runs many benchmarks and repeats each. It is one trial; what it says of
each benchmark is a metric of that trial, and its repetitions are never trials (rule 1).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

READER = "equipoise.helpers.benchmark_tool"
"""The module that runs such a process and writes what it reports to ``EQUIPOISE_METRICS``."""


@dataclass(frozen=True, slots=True)
class BenchmarkTool:
    """One tool; ``{tree}`` in its environment is the working tree of the revision."""

    name: str
    command: tuple[str, ...]
    """If the user gives none."""
    build: str | None = None
    """If the user gives none."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def reading(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs this one and reads its results."""
        # -P: no module of the repository stands in for one of ours.
        return (sys.executable, "-P", "-m", READER, self.name, "--", *command)

    def environment_in(self, tree: str, *, instead_of: str) -> dict[str, str]:
        """What is set in one revision, which stands for the user's own working tree."""
        return {
            key: value.replace("{tree}", tree).replace("{own}", instead_of)
            for key, value in self.environment.items()
        }


TOOLS = {
    tool.name: tool
    for tool in (
        BenchmarkTool(
            "cargo",
            command=("cargo", "bench"),
            build="cargo bench --no-run",
            # One folder for both would be built anew in every trial.
            environment={"CARGO_TARGET_DIR": "{tree}/target"},
        ),
        BenchmarkTool(
            "go",
            command=("go", "test", "-run", "^$", "-bench", ".", "-count", "1", "./..."),
            build="go test -run '^$' ./...",
        ),
        BenchmarkTool(
            "pytest",
            command=("pytest", "-q", "-p", "no:cacheprovider"),
            environment={
                "EQUIPOISE_GATE_TREE": "{tree}",
                "EQUIPOISE_GATE_INSTEAD_OF": "{own}",
            },
        ),
    )
}
"""By name."""
