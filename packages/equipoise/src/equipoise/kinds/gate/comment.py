"""``equipoise comment``: write the summary of a gate as the comment on a pull request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import msgspec
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.streams import say
from equipoise.files.writing import read_whole
from equipoise.kinds.gate.forges import Connection, Forge, github, github_connection, gitlab
from equipoise.kinds.gate.report import gate_document
from equipoise.kinds.gate.terms import COMMENT_MARK, GateDocument
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EXIT_DONE, UnusableInput
from equipoise.report.json_document import read_document
from equipoise.report.renderers.markdown import to_markdown

_EVENT_HINT = "run it in a job of the event pull_request, or name one with --pull-request N"
_RESULT_HINT = "write it with equipoise gate --json FILE"
_CUT_NOTE = "\n\n… The rest is in the summary of the job.\n"
_GITHUB_BOT = "github-actions[bot]"
"""Name of the author of comments that are written with the token of a job."""


class CommentRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise comment`."""

    file: Path
    github: bool
    gitlab: bool
    pull_request: int | None
    author: str | None
    quiet: bool


@click.command("comment", epilog="Example: equipoise comment --github gate.json")
@click.argument("file", type=click.Path(path_type=Path))
@options.flag("--github", help="The pull request is on GitHub.")
@options.flag("--gitlab", help="The merge request is on GitLab.")
@click.option(
    "--pull-request",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="that of the job",
    help="Number of the pull request.",
)
@click.option(
    "--author",
    metavar="NAME",
    show_default=f"{_GITHUB_BOT}; on GitLab the user of the token",
    help="User whose comment is replaced.",
)
@options.flag("--quiet", help="Print nothing on success.")
@options.pass_request(CommentRequest)
def command(request: CommentRequest) -> int:
    """Write the summary of a gate as a comment on the pull request of this CI job.

    FILE is from `equipoise gate --json FILE`. An earlier comment of a gate is replaced. The
    variables of the job name the repository and the pull request. The token is in GITHUB_TOKEN or
    GITLAB_TOKEN.
    """
    if request.github == request.gitlab:
        raise UnusableInput(
            "one of --github and --gitlab is needed", hint="equipoise comment --github gate.json"
        )
    summary = read_summary(request.file)
    environment = own_environment()
    forge, is_own = (_on_github if request.github else _on_gitlab)(request, environment)
    done = forge.write(shortened(summary, forge.max_characters), COMMENT_MARK, is_own)
    if not request.quiet:
        say(f"{done} on {'pull' if request.github else 'merge'} request {forge.number}")
    return EXIT_DONE


def read_summary(path: Path) -> str:
    """Return the summary of the gate whose result is in a file, with its mark.

    The file may come from a pull request of a stranger. So the summary is written again, with all
    names escaped. Raise `UnusableInput` if the file is not the result of a gate.
    """
    document = read_document(path)
    if not isinstance(document, GateDocument):
        raise UnusableInput(f"{path} is not the result of a gate", hint=_RESULT_HINT)
    return f"{to_markdown(gate_document(document))}\n{COMMENT_MARK}\n"


def shortened(summary: str, max_characters: int) -> str:
    """Return a summary without its last lines if it is too long; the mark stays."""
    if len(summary) <= max_characters:
        return summary
    ending = f"{_CUT_NOTE}{COMMENT_MARK}\n"
    beginning = summary[: max_characters - len(ending)].rpartition("\n")[0]
    # An open block of code would swallow the note.
    if beginning.count("\n```") % 2:
        beginning = beginning.rpartition("\n```")[0]
    return beginning + ending


_IsOwn = Callable[[Any], bool]


def _on_github(request: CommentRequest, environment: Mapping[str, str]) -> tuple[Forge, _IsOwn]:
    url = environment.get("GITHUB_API_URL") or "https://api.github.com"
    token = _variable(environment, "GITHUB_TOKEN", "GITHUB_TOKEN: ${{ github.token }}")
    repository = _variable(environment, "GITHUB_REPOSITORY", "GITHUB_REPOSITORY: owner/name")
    connection = github_connection(url, token)
    number = request.pull_request
    if number is None:
        event = _github_event(environment)
        if event.pull_request is not None:
            number = event.pull_request.number
        else:
            assert event.workflow_run is not None
            pulls = f"repos/{quote(repository)}/pulls"
            number = _number_of_earlier_job(connection, pulls, event.workflow_run)
    author = request.author or _GITHUB_BOT
    return (
        github(connection, repository, number),
        lambda user: isinstance(user, dict) and user.get("login") == author,
    )


def _on_gitlab(request: CommentRequest, environment: Mapping[str, str]) -> tuple[Forge, _IsOwn]:
    number = request.pull_request or _positive(
        _variable(environment, "CI_MERGE_REQUEST_IID", "--pull-request N")
    )
    forge = gitlab(
        environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4",
        _variable(environment, "GITLAB_TOKEN", "a masked variable of the project"),
        _variable(environment, "CI_PROJECT_ID", "CI_PROJECT_ID: the number of the project"),
        number,
    )
    author = request.author or forge.connection.request("GET", "user").content["username"]
    return forge, lambda user: isinstance(user, dict) and user.get("username") == author


def _variable(environment: Mapping[str, str], name: str, example: str) -> str:
    value = environment.get(name)
    if not value:
        raise UnusableInput(f"the variable {name} is missing", hint=f"set it: {example}")
    return value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UnusableInput(
            f"{text!r} is not the number of a merge request", hint="name it with --pull-request N"
        )
    return int(text)


class _PullRequest(Struct):
    number: int


class _Owner(Struct):
    login: str


class _HeadRepository(Struct):
    owner: _Owner


class _WorkflowRun(Struct):
    """The job that ran before this one, perhaps in a fork."""

    head_repository: _HeadRepository
    head_branch: str
    head_sha: str


class _Event(Struct):
    pull_request: _PullRequest | None = None
    workflow_run: _WorkflowRun | None = None


def _github_event(environment: Mapping[str, str]) -> _Event:
    path = Path(_variable(environment, "GITHUB_EVENT_PATH", "--pull-request N"))
    try:
        event = msgspec.json.decode(read_whole(path, hint=_EVENT_HINT), type=_Event)
    except msgspec.DecodeError as error:
        message = f"{path} is not an event of GitHub: {error}"
        raise UnusableInput(message, hint=_EVENT_HINT) from error
    if event.pull_request is None and event.workflow_run is None:
        raise UnusableInput(f"the event in {path} has no pull request", hint=_EVENT_HINT)
    return event


def _number_of_earlier_job(connection: Connection, pulls: str, job: _WorkflowRun) -> int:
    """Return the number of the pull request for which an earlier job ran.

    GitHub itself names the head of that job, so a job in a fork cannot name another pull request.
    """
    head = quote(f"{job.head_repository.owner.login}:{job.head_branch}", safe="")
    for pull in connection.pages(f"{pulls}?state=open&per_page=100&head={head}"):
        if pull["head"]["sha"] == job.head_sha:
            return int(pull["number"])
    raise UnusableInput(
        f"no open pull request has the head {job.head_sha}",
        hint="the branch has a later commit; the gate of that commit writes the comment",
    )
