"""The result document of a campaign that tests causes."""

from __future__ import annotations

from equipoise.design.command_line import shell_line
from equipoise.model.result import ResultDocument


class ExplainDocument(ResultDocument, frozen=True, kw_only=True, tag="explain"):
    """The result document of a test of causes: its causes are in ``why``, as everywhere."""

    @property
    def command_line(self) -> str:
        """The line for a shell that tests the same gap again."""
        words = ["equipoise", "why", self.run.id, "--again", "--seed", str(self.run.seed)]
        return shell_line(words)
