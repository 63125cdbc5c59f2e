"""``equipoise comment``: write the summary of a gate on a pull request.

GitHub gets a comment, and a check with annotations of the lines of slower benchmarks. GitLab gets a
comment; the annotations are a file that the job hands over as a Code Quality report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import msgspec
from msgspec import Struct

from equipoise.cli import options
from equipoise.cli.options.outputs import check_folder
from equipoise.cli.streams import say
from equipoise.cli.writing import write_file
from equipoise.files.writing import read_whole
from equipoise.kinds.gate.annotations import check_of, code_quality_report
from equipoise.kinds.gate.forges import (
    MAX_SUMMARY_CHARACTERS,
    AccessDenied,
    Connection,
    Forge,
    GitHub,
    github,
    github_connection,
    gitlab,
)
from equipoise.kinds.gate.report import gate_document
from equipoise.kinds.gate.terms import COMMENT_MARK, GateDocument
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EXIT_DONE, UnusableInput
from equipoise.report.json_document import read_document
from equipoise.report.renderers.markdown import to_markdown

_EVENT_HINT = "run it in a job of the event pull_request, or name one with --pull-request N"
_RESULT_HINT = "write it with equipoise gate --json FILE"
_CHECK_HINT = "give the job `permissions: checks: write`"
_CUT_NOTE = "\n\n… The rest is in the summary of the job.\n"
_GITHUB_BOT = "github-actions[bot]"
"""Name of the author of comments that are written with the token of a job."""


class CommentRequest(Struct, frozen=True, kw_only=True):
    """Request of `equipoise comment`."""

    file: Path
    github: bool
    gitlab: bool
    code_quality: Path | None
    pull_request: int | None
    author: str | None
    quiet: bool


@click.command("comment", epilog="Example: equipoise comment --github gate.json")
@click.argument("file", type=click.Path(path_type=Path))
@options.flag("--github", help="The pull request is on GitHub.")
@options.flag("--gitlab", help="The merge request is on GitLab.")
@options.file_option(
    "--code-quality",
    help="Write the lines of slower benchmarks as a Code Quality report of GitLab.",
)
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

    FILE is from `equipoise gate --json FILE`. An earlier comment of a gate is replaced. On GitHub,
    a check annotates the lines of slower benchmarks, too. The variables of the job name the
    repository and the pull request. The token is in GITHUB_TOKEN or GITLAB_TOKEN.
    """
    names_forge = request.github or request.gitlab
    if (request.github and request.gitlab) or not (names_forge or request.code_quality):
        raise UnusableInput(
            "one of --github and --gitlab is needed", hint="equipoise comment --github gate.json"
        )
    document = read_gate(request.file)
    show = (lambda message: None) if request.quiet else say
    if request.code_quality is not None:
        check_folder(request.code_quality)
        write_file(request.code_quality, code_quality_report(document))
    summary = summary_of(document)
    environment = own_environment()
    if request.github:
        pull, head, is_own = _on_github(request, environment)
        show(f"{_write(pull, summary, is_own)} on pull request {pull.number}")
        if _write_check(pull, head, document):
            show(f"wrote a check on commit {head[:10]}")
    elif request.gitlab:
        merge, is_own = _on_gitlab(request, environment)
        show(f"{_write(merge, summary, is_own)} on merge request {merge.number}")
    return EXIT_DONE


def _write(forge: Forge, summary: str, is_own: _IsOwn) -> str:
    return forge.write(shortened(summary, forge.max_characters), COMMENT_MARK, is_own)


def _write_check(pull: GitHub, head: str, document: GateDocument) -> bool:
    """Write the check of a gate; return whether the token may do this."""
    check = check_of(document.gate, head)
    summary = "\n".join(filter(None, (to_markdown(gate_document(document)), check.note)))
    try:
        pull.write_check(check, head, shortened(summary, MAX_SUMMARY_CHARACTERS))
    except AccessDenied as error:
        # The comment is written, and jobs that were set up for the comment lack this permission.
        say(f"no check was written: {error}", _CHECK_HINT)
        return False
    return True


def read_gate(path: Path) -> GateDocument:
    """Return the result of a gate in a file.

    Raise `UnusableInput` if the file is not the result of a gate.
    """
    document = read_document(path)
    if not isinstance(document, GateDocument):
        raise UnusableInput(f"{path} is not the result of a gate", hint=_RESULT_HINT)
    return document


def summary_of(document: GateDocument) -> str:
    """Return the summary of a gate, with the mark of its comment.

    The result may come from a pull request of a stranger. So the summary is written again, with all
    names escaped.
    """
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


def _on_github(
    request: CommentRequest, environment: Mapping[str, str]
) -> tuple[GitHub, str, _IsOwn]:
    """Return the pull request, its head, and whether a user is the author of our comment."""
    url = environment.get("GITHUB_API_URL") or "https://api.github.com"
    token = _variable(environment, "GITHUB_TOKEN", "GITHUB_TOKEN: ${{ github.token }}")
    repository = _variable(environment, "GITHUB_REPOSITORY", "GITHUB_REPOSITORY: owner/name")
    connection = github_connection(url, token)
    number, head = request.pull_request, None
    if number is None:
        event = _github_event(environment)
        if event.pull_request is not None:
            number, head = event.pull_request.number, event.pull_request.head.sha
        else:
            assert event.workflow_run is not None
            pulls = f"repos/{quote(repository)}/pulls"
            number = _number_of_earlier_job(connection, pulls, event.workflow_run)
            head = event.workflow_run.head_sha
    author = request.author or _GITHUB_BOT
    pull = github(connection, repository, number)
    return (
        pull,
        pull.head() if head is None else head,
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


class _Head(Struct):
    sha: str


class _PullRequest(Struct):
    number: int
    head: _Head


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
