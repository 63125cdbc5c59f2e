"""What runs a campaign again, as far as its document knows it."""

from __future__ import annotations

import shlex

from equipoise.model.plan import WHY_STUDY
from equipoise.model.primitives import OS_STUDY
from equipoise.model.result import ResultDocument
from equipoise.report.shell_line import (
    after_options,
    shell_line,
    shell_line_with_placeholders,
)


def again_of(document: ResultDocument) -> str:
    """The command that runs the campaign again, as far as the document knows it."""
    if document.imported is not None:
        return shell_line(["equipoise", "import", *after_options(document.imported.source.files)])
    if document.gate is not None:
        return document.gate.again
    if document.run.study == OS_STUDY:
        return f"equipoise os --seed {document.run.seed}"
    if document.run.study == WHY_STUDY:
        words = ["equipoise", "why", document.run.id, "--again"]
        return shell_line([*words, "--seed", str(document.run.seed)])
    layouts = ["--layouts", str(len(document.run.layouts))] if document.run.layouts else []
    seed = ["--seed", str(document.run.seed), *layouts]
    if document.run.study != "compare":
        return shell_line(["equipoise", "run", document.run.study, *seed])
    parts = ["equipoise", "compare", *seed]
    if document.comparisons:
        first = document.comparisons[0]
        parts += ["--min-effect", f"{first.min_effect:g}", "--alpha", f"{first.alpha:g}"]
    commands = [shlex.join(condition.command) for condition in document.conditions]
    if commands != [condition.name for condition in document.conditions]:
        for condition in document.conditions:
            parts += ["-n", condition.name]
    return shell_line_with_placeholders([*parts, *after_options(commands)])
