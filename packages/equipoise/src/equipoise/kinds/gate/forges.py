"""Comments and checks of a pull request, through the interface (API) of GitHub or GitLab.

GitHub: https://docs.github.com/rest/issues/comments and https://docs.github.com/rest/checks/runs.
GitLab: https://docs.gitlab.com/api/notes. A forge is one of the two services. Each lists the
comments in pages, and the header ``Link`` names the next page.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from equipoise.kinds.gate.annotations import CHECK_NAME, Check
from equipoise.model.errors import EXIT_OUTPUT_FAILED, EquipoiseError, UnusableInput

MAX_PAGES = 100
"""Maximum number of pages of comments that are read; a page has 100 comments."""
_ATTEMPTS = 4
"""Maximum number of attempts of one request."""
_MAX_WAIT_S = 60.0
"""Maximum number of seconds before the next attempt; a forge that asks for more is not awaited."""
_TIMEOUT_S = 30.0
_MAX_NEW_ANNOTATIONS = 50
"""Maximum number of annotations in one request."""
MAX_SUMMARY_CHARACTERS = 65_535
"""Maximum length of the summary of a check of GitHub."""
_MAX_ANSWER_BYTES = 32 << 20
_NEXT_PAGE = re.compile(r'<([^>]*)>\s*;[^,]*rel="?next"?')


class CommentFailed(EquipoiseError):
    """Exit status 74: the comment or the check could not be written."""

    exit_status = EXIT_OUTPUT_FAILED


class AccessDenied(CommentFailed):
    """Exit status 74: the token may not send this request."""


class Answer(Struct, frozen=True):
    """The successful answer of a forge to one request."""

    content: Any
    """Decoded JSON; ``None`` if the answer is empty."""
    next_page: str | None
    """Address of the next page of a list."""


class Connection:
    """Sends requests to the interface of one forge, and repeats those that failed for a moment."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        denied_hint: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``url`` is the beginning of all addresses. ``denied_hint`` is for a token without rights.

        Raise `UnusableInput` if the token would leave this host without encryption.
        """
        parts = urlsplit(url)
        is_loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback):
            raise UnusableInput(
                f"{url} is not an https address, and the token must stay secret",
                hint="set the address of the interface, such as https://api.github.com",
            )
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "User-Agent": "equipoise", **headers}
        self._denied_hint = denied_hint
        self._sleep = sleep
        # With a redirect, urllib would send the token to another host.
        self._opener = urllib.request.build_opener(_NoRedirects)

    def request(self, method: str, address: str, body: object = None) -> Answer:
        """Send a request and return the answer.

        The address is a path, or a complete address of this forge. Raise `CommentFailed` if the
        forge refuses the request, or still fails at the last attempt.
        """
        url = address if address.startswith("http") else f"{self._url}/{address}"
        if not url.startswith(f"{self._url}/"):
            raise CommentFailed(
                f"{self._url} named a page of another host: {url[:200]}",
                hint="check the address of the interface",
            )
        content = None if body is None else msgspec.json.encode(body)
        for attempt in range(1, _ATTEMPTS + 1):
            request = urllib.request.Request(url, content, self._headers, method=method)
            try:
                with self._opener.open(request, timeout=_TIMEOUT_S) as response:
                    return _answer_of(response.read(_MAX_ANSWER_BYTES), response.headers)
            except urllib.error.HTTPError as error:
                wait_s = _wait_before_repeat(error, attempt)
                if wait_s is None or attempt == _ATTEMPTS:
                    raise self._refusal(method, url, error) from error
            except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
                wait_s = float(2 ** (attempt - 1))
                if attempt == _ATTEMPTS:
                    raise CommentFailed(
                        f"{method} {url}: {error}", hint="check the network, and run it again"
                    ) from error
            self._sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def pages(self, address: str) -> Iterator[Any]:
        """Yield the elements of a list, page by page."""
        next_page: str | None = address
        for _ in range(MAX_PAGES):
            if next_page is None:
                return
            answer = self.request("GET", next_page)
            yield from answer.content
            next_page = answer.next_page

    def _refusal(self, method: str, url: str, error: urllib.error.HTTPError) -> CommentFailed:
        is_denied = error.code in (401, 403, 404)
        problem = f"{method} {url}: status {error.code} ({error.reason})"
        if is_denied:
            return AccessDenied(problem, hint=self._denied_hint)
        return CommentFailed(problem, hint="read the status of the service, and run it again")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def _answer_of(content: bytes, headers: Message) -> Answer:
    next_page = _NEXT_PAGE.search(headers.get("Link", ""))
    decoded = msgspec.json.decode(content) if content.strip() else None
    return Answer(decoded, None if next_page is None else next_page[1])


def _wait_before_repeat(error: urllib.error.HTTPError, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt; ``None`` if no attempt can help."""
    headers = error.headers
    is_limited = error.code == 429 or (
        error.code == 403
        and ("Retry-After" in headers or headers.get("X-RateLimit-Remaining") == "0")
    )
    if not is_limited and error.code < 500:
        return None
    wait_s = float(2 ** (attempt - 1))
    asked = headers.get("Retry-After", "")
    if asked.isdigit():
        wait_s = float(asked)
    elif is_limited and headers.get("X-RateLimit-Reset", "").isdigit():
        wait_s = max(wait_s, float(headers["X-RateLimit-Reset"]) - time.time())
    return wait_s if wait_s <= _MAX_WAIT_S else None


class Forge(Struct, frozen=True):
    """One pull request of a forge, and its comments."""

    connection: Connection
    number: int
    """Number of the pull request."""
    comments: str
    """Address of the list of comments."""
    author_key: ClassVar[str]
    """Key of the author in a comment."""
    max_characters: ClassVar[int]
    """Maximum length of a comment."""
    replace_method: ClassVar[str]
    """HTTP method that replaces a comment."""

    def write(self, body: str, mark: str, is_own: Callable[[Any], bool]) -> str:
        """Replace the latest own comment with a mark, or write a new one; return what was done."""
        own = [
            comment
            for comment in self.connection.pages(f"{self.comments}?per_page=100")
            if mark in (comment.get("body") or "") and is_own(comment.get(self.author_key))
        ]
        if not own:
            self.connection.request("POST", self.comments, {"body": body})
            return "wrote a new comment"
        latest = max(own, key=lambda comment: int(comment["id"]))
        self.connection.request(self.replace_method, self._address_of(latest), {"body": body})
        return "replaced the comment"

    def _address_of(self, comment: Any) -> str:
        raise NotImplementedError


class GitHub(Forge, frozen=True):
    """A pull request of GitHub."""

    author_key = "user"
    max_characters = 65_536
    replace_method = "PATCH"
    repository: str
    """Address of the repository: ``repos/OWNER/NAME``."""

    def head(self) -> str:
        """Return the commit at the head of the pull request."""
        answer = self.connection.request("GET", f"{self.repository}/pulls/{self.number}")
        return str(answer.content["head"]["sha"])

    def write_check(self, check: Check, head: str, summary: str) -> None:
        """Write a check on the commit ``head``; the summary is Markdown.

        An update only adds annotations, so each call makes a new check.
        """
        output = {"title": check.title, "summary": summary}
        annotations = [
            {
                "path": annotation.place.path,
                "start_line": annotation.place.line,
                "end_line": annotation.place.line,
                "annotation_level": "failure",
                "title": annotation.title,
                "message": annotation.message,
            }
            for annotation in check.annotations
        ]
        answer = self.connection.request(
            "POST",
            f"{self.repository}/check-runs",
            {
                "name": CHECK_NAME,
                "head_sha": head,
                "status": "completed",
                "conclusion": check.conclusion,
                "output": {**output, "annotations": annotations[:_MAX_NEW_ANNOTATIONS]},
            },
        )
        for start in range(_MAX_NEW_ANNOTATIONS, len(annotations), _MAX_NEW_ANNOTATIONS):
            batch = annotations[start : start + _MAX_NEW_ANNOTATIONS]
            self.connection.request(
                "PATCH",
                f"{self.repository}/check-runs/{int(answer.content['id'])}",
                {"output": {**output, "annotations": batch}},
            )

    def _address_of(self, comment: Any) -> str:
        return f"{self.repository}/issues/comments/{int(comment['id'])}"


class GitLab(Forge, frozen=True):
    """A merge request of GitLab."""

    author_key = "author"
    max_characters = 1_000_000
    replace_method = "PUT"

    def _address_of(self, comment: Any) -> str:
        return f"{self.comments}/{int(comment['id'])}"


def github_connection(url: str, token: str) -> Connection:
    """Return a connection to the interface of GitHub."""
    return Connection(
        url,
        {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
        denied_hint="give the job `permissions: pull-requests: write`; a pull request from a fork "
        "needs the second job of docs/how-to/comment-on-a-pull-request.md",
    )


def github(connection: Connection, repository: str, number: int) -> GitHub:
    """Return a pull request of GitHub; ``repository`` is ``OWNER/NAME``."""
    address = f"repos/{quote(repository)}"
    comments = f"{address}/issues/{number}/comments"
    return GitHub(connection, number, comments, address)


def gitlab(url: str, token: str, project: str, number: int) -> GitLab:
    """Return a merge request of GitLab; ``project`` is the number or path of the project."""
    connection = Connection(
        url,
        {"PRIVATE-TOKEN": token},
        denied_hint="set GITLAB_TOKEN to a project access token with the scope api and the role "
        "Reporter; the token of a job cannot write comments",
    )
    address = f"projects/{quote(project, safe='')}/merge_requests/{number}/notes"
    return GitLab(connection, number, address)
