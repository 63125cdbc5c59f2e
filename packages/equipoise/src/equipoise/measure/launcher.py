"""The native launcher, which starts, times and accounts for one trial at a time.

The launcher is a separate small program (``crates/launcher``), because the Python process must not
be in the measurement (rule 4). One launcher receives all trials of a campaign through a pipe.

On request the launcher counts events with ``perf_event_open``, in the trial's process and all its
descendants. docs/evidence/counters.md explains each counter, and the cost of counting. The file
crates/launcher/src/counters.rs has the same names of counters.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Literal, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.files.limits import limit_reached
from equipoise.files.writing import becomes_readable
from equipoise.measure.abandoned import end_descendants
from equipoise.measure.scratch import as_latin1, identity_of
from equipoise.measure.untimed import describe_status
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.plan import Output, Process

Containment = Literal["auto", "cgroup", "process-group"]
"""How the descendants of a trial are kept together, so that all of them can be ended."""
OnWait = Callable[[], None]
"""Function to call about once a second during a long trial."""
SOFTWARE_COUNTERS = ("task_clock", "page_faults", "context_switches", "cpu_migrations")
"""Counters of the kernel, which all hosts have; ``task_clock`` is in seconds."""
HARDWARE_COUNTERS = tuple(
    "cycles instructions cache_references cache_misses branches branch_misses".split()
)
"""Counters of the processor, if it has them."""
COUNTERS = (*SOFTWARE_COUNTERS, *HARDWARE_COUNTERS)
_ON_WAIT_INTERVAL_S = 1.0
"""Seconds between two calls of `OnWait`."""
_CHUNK_BYTES = 1 << 16
"""Maximum number of bytes of one read from the launcher."""
_LEAD_NS = 3_000_000
"""Nanoseconds from the first request of a pair until both start. Both launchers are ready then:
reading a request and opening the files of a trial takes less than a millisecond."""
_MAX_CLOSING_S = 30.0
"""Maximum seconds until the launcher ends; it may wait twice 10 s for unkillable processes."""


def counters_among(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that are counters of the launcher."""
    return tuple(name for name in metrics if name in COUNTERS)


class User(Struct, frozen=True):
    """A user and its group."""

    uid: int
    gid: int


class Request(Struct, frozen=True):
    """One trial to run.

    Strings from the system may contain any bytes, in the form of ``os.fsdecode``.
    """

    argv: tuple[str, ...]
    """Arguments, the first of which is usually the program."""
    environment: Mapping[str, str]
    """Complete environment."""
    working_folder: str
    program: str | None = None
    """Absolute path of the file to execute; by default the first argument."""
    input: str | None = None
    """File for standard input, relative to the working folder; by default none."""
    output: Output = field(default_factory=Output)
    """Destination of standard output; a file is emptied first."""
    timeout_s: float = 600.0
    """Seconds after which every descendant is killed; positive and finite."""
    error_cap_bytes: int = 4096
    """Number of bytes of the end of standard error to report."""
    process: Process = Process()
    """Process settings; their working folder is ignored."""
    user: User | None = None
    """User to run as; by default the launcher's. Only root may set it."""
    start_at_ns: int | None = None
    """Instant of the monotonic clock at which to start, at most a second away; by default at once.
    The launcher waits for it on the CPUs of ``process``."""


class Report(Struct, frozen=True):
    """Report of one trial that ran or could not start; an unknown value is ``None``."""

    pid: int | None
    wall_ns: int | None
    """Nanoseconds of the monotonic clock from just before the start to the observed end."""
    user_s: float | None
    """User CPU seconds of the process and of its children that were waited for. The counts below
    cover the same processes."""
    sys_s: float | None
    max_rss_bytes: int | None
    """Peak memory of the largest of these processes. If it is near ``floor_rss_bytes``, the trial
    may have used less."""
    floor_rss_bytes: int | None
    """The launcher's own peak memory. The kernel lets the peak of the trial begin there."""
    minor_faults: int | None
    major_faults: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    block_reads: int | None
    """Reads from storage, in units of 512 bytes."""
    block_writes: int | None
    exit: int | None
    """Exit status; ``None`` if the trial did not start or a signal ended it."""
    signal: int | None
    """Signal that ended the trial; 9 after a timeout."""
    timed_out: bool
    stopped_by: int | None
    """Signal that stopped a trial waiting for a terminal; the launcher then killed the trial."""
    could_not_start: str | None
    """Unusable file or folder, with the reason: "/no/such: No such file or directory"."""
    start_errno: int | None
    error_tail: str
    """End of the trial's standard error."""
    error_bytes: int | None
    output_bytes: int | None
    """Number of bytes written to standard output, if they are counted."""
    left_behind: int
    """Number of descendants that outlived the trial and were killed."""
    containment: Literal["cgroup", "process_group"]
    cpu: int | None
    """CPU on which the trial ran last."""
    run_delay_s: float | None
    """Seconds during which the trial's main thread was ready but waited for a CPU."""
    out_of_memory: bool | None
    """Whether the kernel killed the trial because memory ran out."""
    counters: dict[str, float | None] = field(default_factory=dict)
    """Requested counters by name, of the process and all its descendants. A counter counts from the
    exec to the observed end of the process."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Reason for each value that is ``None`` or incomplete (rule 7)."""
    started_ns: int | None = None
    """Instant of the monotonic clock just before the start."""


class Starter(Protocol):
    """An object that runs trials: the launcher or, in tests, a scripted clock."""

    def run(self, request: Request, on_wait: OnWait | None = None) -> Report:
        """Run one trial to its end."""
        ...


class PairStarter(Protocol):
    """An object that runs two trials at once: `PairLauncher` or, in tests, a scripted clock."""

    def run_pair(
        self, requests: tuple[Request, Request], on_wait: OnWait | None = None
    ) -> tuple[Report, Report]:
        """Run two trials at once to their ends."""
        ...


class Launcher(AbstractContextManager["Launcher"]):
    """A running launcher; a context manager.

    ``containment`` is explained in crates/launcher/README.md; ``auto`` chooses the best way. With
    ``cgroup``, a process group is used if no cgroup can be created, and the report has the reason
    in ``unknown["cgroup"]``. ``inherit_stdout`` is the descriptor that a trial inherits as standard
    output. ``counters`` are names of `COUNTERS`. If this machine lacks or forbids a counter, the
    reports have ``None`` for this counter, and the reason.

    ``scratch`` is the scratch folder of the campaign. The launcher removes this folder at the end,
    even if this process is killed. Give the folder as ``shared_scratch`` if another launcher
    removes the folder. If the launcher is killed, `close` ends the processes of the folder.

    The constructor raises `UnusableInput` if a counter does not exist, and `EquipoiseError` if the
    launcher cannot be started.
    """

    def __init__(
        self,
        program: Path,
        *,
        containment: Containment = "auto",
        inherit_stdout: int = 1,
        counters: tuple[str, ...] = (),
        scratch: Path | None = None,
        shared_scratch: Path | None = None,
    ) -> None:
        _check_counters(counters)
        self._scratch = shared_scratch or scratch
        self._identity = identity_of(self._scratch)
        arguments = [str(program), "--containment", containment, "--identity", self._identity]
        if counters:
            arguments += ["--counters", ",".join(counters)]
        if scratch is not None:
            arguments += ["--scratch", str(scratch)]
        descriptors: tuple[int, ...] = ()
        # If the descriptor is closed, the launcher reports this for each trial that inherits it.
        with suppress(OSError):
            descriptors = (os.dup(inherit_stdout),)
            arguments += ["--inherit-stdout", str(descriptors[0])]
        try:
            self._process = _start_launcher(arguments, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._requests = _required_pipe(self._process.stdin)
        self._reports = _required_pipe(self._process.stdout)
        self._errors = _required_pipe(self._process.stderr)

    @property
    def pid(self) -> int:
        """Process number of the launcher."""
        return self._process.pid

    def __exit__(self, *_: object) -> None:
        """Close the launcher at the end of the block."""
        self.close()

    def run(self, request: Request, on_wait: OnWait | None = None) -> Report:
        """Run one trial to its end and return its report.

        If the program cannot be started, the report has the reason. An interruption (Ctrl-C, or an
        error in ``on_wait``) ends the launcher, the trial and all its descendants. Raise
        `EquipoiseError` if the launcher refuses the request or has died.
        """
        self.begin(request)
        return self.finish(on_wait)

    def begin(self, request: Request) -> None:
        """Start one trial without waiting for its end."""
        try:
            self._send(_encode(request))
        except BaseException:
            self.close()
            raise

    def has_ended(self) -> bool:
        """Return whether the running trial, or the launcher, has ended."""
        return becomes_readable(self._reports.fileno(), 0.0)

    def finish(self, on_wait: OnWait | None = None) -> Report:
        """Wait for the end of the running trial and return its report, as `run` does."""
        try:
            answer = self._receive(on_wait)
        except BaseException:
            self.close()
            raise
        return _decode(answer)

    def close(self) -> None:
        """End the launcher and a running trial; may be called again."""
        self._requests.close()
        try:
            self._process.wait(_MAX_CLOSING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode < 0:
            # A killed launcher could not end its descendants.
            end_descendants(self.pid, self._identity, self._scratch)
        self._reports.close()
        self._errors.close()

    def _send(self, line: bytes) -> None:
        if self._requests.closed:
            raise EquipoiseError(
                "the launcher is closed", hint="create a new `Launcher` for the next trial"
            )
        unsent_bytes = memoryview(line)
        try:
            while unsent_bytes:
                unsent_bytes = unsent_bytes[os.write(self._requests.fileno(), unsent_bytes) :]
        except BrokenPipeError:
            raise self._death_error() from None

    def _receive(self, on_wait: OnWait | None) -> bytes:
        answer = bytearray()
        while not answer.endswith(b"\n"):
            if becomes_readable(self._reports.fileno(), _ON_WAIT_INTERVAL_S):
                chunk = os.read(self._reports.fileno(), _CHUNK_BYTES)
                if not chunk:
                    raise self._death_error()
                answer += chunk
            elif on_wait is not None:
                on_wait()
        return bytes(answer)

    def _death_error(self) -> EquipoiseError:
        # The launcher writes at most one line to this pipe, so writing never blocks it.
        output = os.read(self._errors.fileno(), _CHUNK_BYTES)
        status_text = describe_status(self._process.wait())
        reason = output.decode("utf-8", "replace").strip()
        return EquipoiseError(
            f"the launcher died during a trial ({status_text}){': ' + reason if reason else ''}",
            hint="run `equipoise resume`: all finished trials are in the ledger",
        )


class PairLauncher(Struct, frozen=True):
    """Two launchers that start two trials at one instant."""

    launchers: tuple[Launcher, Launcher]

    def run_pair(
        self, requests: tuple[Request, Request], on_wait: OnWait | None = None
    ) -> tuple[Report, Report]:
        """Start two trials at one instant; return their reports when both have ended.

        An interruption ends both. Raise `EquipoiseError` as `Launcher.run` does.
        """
        try:
            start_at_ns = time.monotonic_ns() + _LEAD_NS
            for launcher, request in zip(self.launchers, requests, strict=True):
                launcher.begin(replace(request, start_at_ns=start_at_ns))
            first, second = (launcher.finish(on_wait) for launcher in self.launchers)
        except BaseException:
            for launcher in self.launchers:
                launcher.close()
            raise
        return first, second


def _check_counters(names: Iterable[str]) -> None:
    for name in names:
        if name not in COUNTERS:
            raise UnusableInput(
                f"no counter is called {name!r}", hint=f"choose among {', '.join(COUNTERS)}"
            )


def _start_launcher(arguments: list[str], descriptors: tuple[int, ...]) -> subprocess.Popen[bytes]:
    # Other variables are not passed on: a preload would increase each reported peak of memory.
    environment = {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}
    try:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise limit_reached(error) or EquipoiseError(
            f"the launcher {arguments[0]} cannot be started: {error.strerror}",
            hint="build it with `cargo build --release`, or install Equipoise again",
        ) from None


def _required_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "every standard stream of the launcher is a pipe"
    return pipe


def _encode(request: Request) -> bytes:
    folder = request.working_folder
    output: dict[str, str] = {"kind": request.output.kind}
    if request.output.path is not None:
        output["path"] = as_latin1(os.path.join(folder, request.output.path))
    variables = (f"{name}={value}" for name, value in request.environment.items())
    message = {
        "program": None if request.program is None else as_latin1(request.program),
        "argv": [as_latin1(argument) for argument in request.argv],
        "environment": [as_latin1(variable) for variable in variables],
        "working_folder": as_latin1(folder),
        "input": None if request.input is None else as_latin1(os.path.join(folder, request.input)),
        "output": output,
        "timeout_s": request.timeout_s,
        "error_cap_bytes": request.error_cap_bytes,
        "cpus": request.process.cpus,
        "random_addresses": request.process.random_addresses,
        "huge_pages": request.process.huge_pages,
        "user": request.user,
        "start_at_ns": request.start_at_ns,
    }
    return msgspec.json.encode(message) + b"\n"


def _decode_utf8(text: str) -> str:
    """Decode a text in which the launcher sent each byte as one character."""
    return text.encode("latin-1").decode("utf-8", "replace")


class _Refusal(msgspec.Struct):
    refused: str
    """Reason why the launcher does not run the request."""


def _decode(answer: bytes) -> Report:
    if answer.startswith(b'{"refused":'):
        refusal_reason = msgspec.json.decode(answer, type=_Refusal).refused
        raise EquipoiseError(
            f"the trial cannot start: {refusal_reason}",
            hint="correct this value in the command, its environment or its timeout",
        )
    report = msgspec.json.decode(answer, type=Report)
    reason = report.could_not_start
    return replace(
        report,
        error_tail=_decode_utf8(report.error_tail),
        could_not_start=None if reason is None else _decode_utf8(reason),
    )
