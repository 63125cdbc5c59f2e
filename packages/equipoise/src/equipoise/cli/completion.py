"""``equipoise completion``: the completion script of a shell, and what a shell completes.

A shell asks while the user types: whatever cannot be read is completed by nothing, without a word.
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
"""Number of runs that a shell lists, the latest first."""


def complete_runs(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return ``last`` and the runs of the ledger that begin so, each with what it compared."""
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
    """Return runs of the ledger; where none begins so, ask the shell for files."""
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
    """Return the built-in studies that begin so, and ask the shell for files."""
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
    """Return the branches and tags of the repository that begin so, the latest first."""
    from equipoise.revisions.git import run_git

    form = "--format=%(refname:short)"
    references = ("refs/heads", "refs/tags", "refs/remotes")
    try:
        listed = run_git(Path.cwd(), "for-each-ref", "--sort=-creatordate", form, *references)
    except EquipoiseError:
        return []
    names = ["HEAD", *listed.stdout.decode("utf-8", "replace").split()]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("completion", epilog='bash: eval "$(equipoise completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script for SHELL."""
    completion = get_completion_class(shell)
    assert completion is not None  # click knows each of the choices
    click.echo(completion(cli, {}, "equipoise", "_EQUIPOISE_COMPLETE").source())
    return 0
