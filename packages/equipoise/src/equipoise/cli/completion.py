"""``equipoise completion``: the completion script of a shell, and the values that it completes.

A shell calls these functions while the user types; ``incomplete`` is the typed part of a value. If
a ledger or a repository cannot be read, a function returns no completions and shows no error.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from equipoise.cli.main import cli
from equipoise.files.state import default_ledger
from equipoise.model.errors import EquipoiseError
from equipoise.shared.safe_text import visible

MAX_RUNS = 50


def complete_runs(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return ``last`` and the run ids that start with ``incomplete``, with their commands."""
    from equipoise.ledger import open_for_reading

    items = [CompletionItem("last", help="the latest run")]
    ledger_path = Path(context.params.get("ledger") or default_ledger())
    try:
        with open_for_reading(ledger_path) as ledger:
            runs = list(reversed(ledger.runs()))
    except EquipoiseError:
        return []
    items += [
        CompletionItem(run.id, help=visible(f"{run.study}: {', '.join(run.commands)}"))
        for run in runs
        if run.id.startswith(incomplete)
    ][:MAX_RUNS]
    return [item for item in items if item.value.startswith(incomplete)]


def complete_runs_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the runs that start with ``incomplete``; without such a run, ask for files."""
    return complete_runs(context, parameter, incomplete) or complete_files(
        context, parameter, incomplete
    )


def complete_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ask the shell for files."""
    return [CompletionItem(incomplete, type="file")]


def complete_studies(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the built-in studies that start with ``incomplete``, and ask the shell for files."""
    from equipoise.studies.catalogue import built_in_studies

    studies = [
        CompletionItem(study.name, help=study.summary)
        for study in built_in_studies()
        if study.name.startswith(incomplete)
    ]
    return [*studies, *complete_files(context, parameter, incomplete)]


def complete_revisions(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return ``HEAD``, branches and tags that start with ``incomplete``, the latest first."""
    from equipoise.revisions.git import run_git

    name_format = "--format=%(refname:short)"
    references = ("refs/heads", "refs/tags", "refs/remotes")
    try:
        output = run_git(
            Path.cwd(), "for-each-ref", "--sort=-creatordate", name_format, *references
        ).stdout
    except EquipoiseError:
        return []
    names = ["HEAD", *output.decode("utf-8", "replace").split()]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("completion", epilog='bash: eval "$(equipoise completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script for SHELL."""
    completion = get_completion_class(shell)
    assert completion is not None  # click has a class for each of these shells
    click.echo(completion(cli, {}, "equipoise", "_EQUIPOISE_COMPLETE").source())
    return 0
