"""`equipoise comment` against a server on loopback that answers as the documented interfaces do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from equipoise.kinds.gate.comment import read_gate, shortened, summary_of
from equipoise.kinds.gate.forges import CommentFailed, Connection
from equipoise.kinds.gate.terms import COMMENT_MARK
from equipoise.model.errors import UnusableInput
from equipoise.report.json_document import encode
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.documents import document_of
from packages.equipoise.tests.kinds.gate.test_report import gate_document_of, row

BOT = "github-actions[bot]"
HEAD = "a" * 40
"""The commit of the pull request for which an earlier job ran."""


def read_summary(path: Path) -> str:
    """The summary of the gate whose result is in a file."""
    return summary_of(read_gate(path))


def result_of(name: str) -> bytes:
    """The result of a gate in which the benchmark of this name is slower."""
    return encode(gate_document_of(row(name, "slower", 1.05, 1.2)))


@dataclass
class ForgeServer:
    """Comments of one pull request, in pages of two; ``failures`` are answered first."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    check_failures: list[int] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    written: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Requests that wrote something, with their bodies."""
    tokens: set[str] = field(default_factory=set)
    url: str = ""

    def add(self, author: str, body: str) -> None:
        user = {"login": author, "username": author}
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": body, "user": user, "author": user})

    def last_of_comment(self) -> tuple[str, str]:
        return [request for request in self.requests if "/check-runs" not in request[1]][-1]

    def checks(self) -> list[dict[str, Any]]:
        return [body for _, path, body in self.written if "/check-runs" in path]

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]


class _Handler(BaseHTTPRequestHandler):
    forge: ForgeServer

    def log_message(self, *arguments: object) -> None:
        """The test reads ``requests`` instead."""

    def _answer(self, status: int, content: object, headers: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _handle(self) -> None:
        forge = self.forge
        path, _, query = self.path.partition("?")
        forge.requests.append((self.command, path))
        forge.tokens |= {
            self.headers.get("Authorization", ""),
            self.headers.get("PRIVATE-TOKEN", ""),
        }
        length = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(length) or "{}")
        if "/check-runs" in path:
            status = forge.check_failures.pop(0) if forge.check_failures else 201
            if status == 201:
                forge.written.append((self.command, path, sent))
            self._answer(status, {"id": 70}, {})
        elif path.endswith("/pulls/9"):
            self._answer(200, {"number": 9, "head": {"sha": HEAD}}, {})
        elif path.endswith("/pulls"):
            pulls = [{"number": 8, "head": {"sha": "b" * 40}}, {"number": 7, "head": {"sha": HEAD}}]
            self._answer(200, pulls if "head=mallory%3Apatch-1" in query else [], {})
        elif forge.failures:
            status, headers = forge.failures.pop(0)
            self._answer(status, {"message": "no"}, headers)
        elif path == "/user":
            self._answer(200, {"username": "gate-bot"}, {})
        elif self.command == "GET":
            page = int(dict(part.split("=") for part in query.split("&")).get("page", "1"))
            last = 2 * page >= len(forge.comments)
            link = (
                {}
                if last
                else {"Link": f'<{forge.url}{path}?per_page=2&page={page + 1}>; rel="next"'}
            )
            self._answer(200, forge.comments[2 * page - 2 : 2 * page], link)
        elif self.command == "POST":
            forge.written.append((self.command, path, sent))
            forge.add(BOT, sent["body"])
            self._answer(201, forge.comments[-1], {})
        else:
            forge.written.append((self.command, path, sent))
            number = int(path.rpartition("/")[2])
            forge.comments[number - 1]["body"] = sent["body"]
            self._answer(200, forge.comments[number - 1], {})

    do_GET = do_POST = do_PATCH = do_PUT = _handle


@pytest.fixture
def forge() -> Iterator[ForgeServer]:
    served = ForgeServer()
    handler = type("Handler", (_Handler,), {"forge": served})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield served
        server.shutdown()
        thread.join()


def github_variables(forge: ForgeServer, folder: Path, number: int = 7) -> dict[str, str]:
    event = folder / "event.json"
    pull = {"number": number, "head": {"sha": HEAD}}
    event.write_text(json.dumps({"action": "opened", "pull_request": pull}))
    return {
        "GITHUB_API_URL": forge.url,
        "GITHUB_TOKEN": "secret",
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_EVENT_PATH": str(event),
    }


def gitlab_variables(forge: ForgeServer) -> dict[str, str]:
    return {
        "CI_API_V4_URL": forge.url,
        "GITLAB_TOKEN": "secret",
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
    }


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = tmp_path / "gate.json"
    path.write_bytes(result_of("sum"))
    return path


def test_the_first_gate_writes_a_comment_on_github_and_the_next_one_replaces_it(
    forge: ForgeServer, result: Path, tmp_path: Path, equipoise: Equipoise
) -> None:
    variables = github_variables(forge, tmp_path)
    for name in ("someone", "another"):
        forge.add(name, "looks good")
    answer = equipoise("comment", "--github", str(result), environment=variables)
    assert (answer.status, answer.err) == (
        0,
        "equipoise: wrote a new comment on pull request 7\n"
        "equipoise: wrote a check on commit aaaaaaaaaa\n",
    )
    assert forge.bodies() == ["looks good", "looks good", read_summary(result)]
    assert "| sum |" in forge.bodies()[-1]
    result.write_bytes(result_of("later"))
    answer = equipoise("comment", "--github", str(result), environment=variables)
    assert "replaced the comment on pull request 7" in answer.err
    assert forge.bodies() == ["looks good", "looks good", read_summary(result)]
    assert forge.last_of_comment() == ("PATCH", "/repos/owner/name/issues/comments/3")
    assert forge.tokens == {"Bearer secret", ""}


def test_a_merge_request_of_gitlab_gets_the_comment_of_the_token_s_user(
    forge: ForgeServer, result: Path, equipoise: Equipoise
) -> None:
    forge.add("gate-bot", f"earlier\n{COMMENT_MARK}")
    answer = equipoise("comment", "--gitlab", str(result), environment=gitlab_variables(forge))
    assert answer.status == 0, answer
    assert forge.bodies() == [read_summary(result)]
    assert forge.requests[-1] == ("PUT", "/projects/42/merge_requests/7/notes/1")
    assert forge.tokens == {"secret", ""}


def test_a_comment_of_somebody_else_with_our_mark_is_not_touched(
    forge: ForgeServer, result: Path, tmp_path: Path, equipoise: Equipoise
) -> None:
    forge.add("mallory", f"trap {COMMENT_MARK}")
    answer = equipoise(
        "comment", "--github", str(result), environment=github_variables(forge, tmp_path)
    )
    assert answer.status == 0, answer
    assert forge.bodies() == [f"trap {COMMENT_MARK}", read_summary(result)]


@pytest.mark.parametrize(
    "failures",
    [
        [(502, {})],
        [(429, {"Retry-After": "0"}), (503, {})],
        [(403, {"X-RateLimit-Remaining": "0", "Retry-After": "0"})],
    ],
)
def test_a_request_is_repeated_after_a_limit_or_an_outage(
    failures: list[tuple[int, dict[str, str]]],
    forge: ForgeServer,
    result: Path,
    tmp_path: Path,
    equipoise: Equipoise,
) -> None:
    forge.failures = list(failures)
    answer = equipoise(
        "comment", "--github", str(result), environment=github_variables(forge, tmp_path)
    )
    assert answer.status == 0, answer
    assert forge.bodies() == [read_summary(result)]


@pytest.mark.parametrize(
    ("failures", "problem", "hint"),
    [
        ([(403, {})], "status 403", "permissions: pull-requests: write"),
        ([(429, {"Retry-After": "3600"})], "status 429", "run it again"),
        ([(302, {"Location": "http://127.0.0.1:1/"})], "status 302", "run it again"),
    ],
)
def test_a_refused_comment_is_reported_with_a_hint(
    failures: list[tuple[int, dict[str, str]]],
    problem: str,
    hint: str,
    forge: ForgeServer,
    result: Path,
    tmp_path: Path,
    equipoise: Equipoise,
) -> None:
    forge.failures = list(failures)
    answer = equipoise(
        "comment", "--github", str(result), environment=github_variables(forge, tmp_path)
    )
    assert answer.status == 74
    assert problem in answer.err and hint in answer.err
    assert "secret" not in answer.err
    assert len(forge.requests) == 1


def test_the_last_of_several_failures_is_reported_after_growing_waits(forge: ForgeServer) -> None:
    waits: list[float] = []
    forge.failures = [(500, {})] * 4
    connection = Connection(forge.url, {}, denied_hint="", sleep=waits.append)
    with pytest.raises(CommentFailed, match="status 500"):
        connection.request("GET", "user")
    assert waits == [1.0, 2.0, 4.0]


def test_a_page_of_another_host_is_not_read(forge: ForgeServer) -> None:
    with pytest.raises(CommentFailed, match="named a page of another host"):
        Connection(forge.url, {}, denied_hint="").request("GET", "http://127.0.0.1:1/page")


def test_a_token_is_not_sent_without_encryption() -> None:
    with pytest.raises(UnusableInput, match="the token must stay secret"):
        Connection("http://example.com/api", {}, denied_hint="")


@pytest.mark.parametrize(
    ("arguments", "left_out", "problem"),
    [
        ((), (), "one of --github and --gitlab is needed"),
        (("--github", "--gitlab"), (), "one of --github and --gitlab is needed"),
        (("--github",), ("GITHUB_TOKEN",), "the variable GITHUB_TOKEN is missing"),
        (("--github",), ("GITHUB_REPOSITORY",), "the variable GITHUB_REPOSITORY is missing"),
        (("--github",), ("GITHUB_EVENT_PATH",), "the variable GITHUB_EVENT_PATH is missing"),
        (("--gitlab",), ("CI_MERGE_REQUEST_IID",), "the variable CI_MERGE_REQUEST_IID is missing"),
    ],
)
def test_what_a_job_lacks_is_named(
    arguments: tuple[str, ...],
    left_out: tuple[str, ...],
    problem: str,
    forge: ForgeServer,
    result: Path,
    tmp_path: Path,
    equipoise: Equipoise,
) -> None:
    variables = {**github_variables(forge, tmp_path), **dict.fromkeys(left_out, "")}
    answer = equipoise("comment", *arguments, str(result), environment=variables)
    assert answer.status == 2
    assert problem in answer.err and "hint: " in answer.err
    assert forge.requests == []


@pytest.mark.parametrize(
    ("event", "problem"),
    [('{"ref": "main"}', "has no pull request"), ("{", "is not an event of GitHub")],
)
def test_an_event_without_a_pull_request_is_refused(
    event: str,
    problem: str,
    forge: ForgeServer,
    result: Path,
    tmp_path: Path,
    equipoise: Equipoise,
) -> None:
    variables = github_variables(forge, tmp_path)
    Path(variables["GITHUB_EVENT_PATH"]).write_text(event)
    answer = equipoise("comment", "--github", str(result), environment=variables)
    assert answer.status == 2
    assert problem in answer.err and "--pull-request N" in answer.err
    numbered = equipoise(
        "comment", "--github", "--pull-request", "9", str(result), environment=variables
    )
    assert numbered.status == 0, numbered
    assert forge.last_of_comment() == ("POST", "/repos/owner/name/issues/9/comments")
    assert [check["head_sha"] for check in forge.checks()] == [HEAD]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (encode(document_of()), "is not the result of a gate"),
        (result_of("sum")[:-20], "gate.json"),
        (b"hello", "gate.json"),
    ],
)
def test_a_file_that_no_gate_wrote_is_refused(
    content: bytes, problem: str, tmp_path: Path, forge: ForgeServer, equipoise: Equipoise
) -> None:
    (tmp_path / "gate.json").write_bytes(content)
    variables = github_variables(forge, tmp_path)
    answer = equipoise("comment", "--github", "gate.json", environment=variables)
    assert answer.status == 2
    assert problem in answer.err
    assert forge.requests == []


def workflow_run(branch: str, sha: str) -> str:
    """The event of a job that runs after the job of a pull request, perhaps of a fork."""
    repository = {"owner": {"login": "mallory"}}
    head = {"head_repository": repository, "head_branch": branch, "head_sha": sha}
    return json.dumps({"action": "completed", "workflow_run": head})


def test_the_second_job_comments_on_the_pull_request_of_the_fork_that_github_names(
    forge: ForgeServer, result: Path, tmp_path: Path, equipoise: Equipoise
) -> None:
    variables = github_variables(forge, tmp_path)
    event = Path(variables["GITHUB_EVENT_PATH"])
    event.write_text(workflow_run("patch-1", HEAD))
    answer = equipoise("comment", "--github", str(result), environment=variables)
    assert answer.status == 0, answer
    assert forge.last_of_comment() == ("POST", "/repos/owner/name/issues/7/comments")
    assert [check["head_sha"] for check in forge.checks()] == [HEAD]
    for branch, sha in (("patch-1", "c" * 40), ("other", HEAD)):
        event.write_text(workflow_run(branch, sha))
        answer = equipoise("comment", "--github", str(result), environment=variables)
        assert answer.status == 2
        assert f"no open pull request has the head {sha}" in answer.err


def test_a_long_summary_keeps_its_mark_and_closes_its_code() -> None:
    long = "table\n" + "```\n" + "line\n" * 40 + "```\n" + COMMENT_MARK + "\n"
    short = shortened(long, 150)
    assert len(short) <= 150
    assert short.startswith("table") and short.endswith(f"{COMMENT_MARK}\n")
    assert short.count("```") % 2 == 0
    assert shortened(long, 65_536) == long
