"""Records which files a Python program runs and reads, for `equipoise gate --touched`.

::

    python3 executed_files.py SCRIPT [ARGUMENTS]

runs a script and records it. If this file is on ``PYTHONPATH`` under the name ``sitecustomize.py``,
every Python program records itself. At its end, each process writes a file into the folder
``EQUIPOISE_EXECUTED_FILES``. Nothing of such a run is timed for a verdict.

The Python of the user need not have Equipoise. From version 3.12 on, ``sys.monitoring`` reports
each function once; before, a profile function gets every call.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import CodeType, FrameType
from typing import Any

FOLDER_VARIABLE = "EQUIPOISE_EXECUTED_FILES"
"""Environment variable with the folder for the records."""
_MONITORING_ID = 3
"""Number of a tool of ``sys.monitoring`` that neither debuggers, coverage nor profilers use."""
_FLAG_OF_FUNCTIONS = 0x01
"""Flag ``CO_OPTIMIZED`` of code: functions have it, bodies of modules and of classes do not."""
_EVENTS_OF_PROGRAMS = frozenset(
    "os.exec os.fork os.forkpty os.posix_spawn os.spawn os.system subprocess.Popen".split()
)
"""Audit events of a process that starts a program, or that a new program replaces."""
_INSTALLED = tuple(f"{prefix}{os.sep}" for prefix in (sys.prefix, sys.base_prefix))
"""Folders with Python and installed packages, for example the plugins of pytest."""
_MODULES_OF_UNSEEN_PROCESSES = (
    "multiprocessing.popen_spawn_posix",
    "multiprocessing.popen_forkserver",
)
"""Modules that start processes without an audit event."""


class Recorder:
    """Records the files of this process from `start` to its end."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._parent = os.getppid()
        self._ran: set[str] = set()
        self._read: set[str] = set()
        self._absolute_paths: dict[str, str] = {}
        self._programs = 0
        self._own_programs = 0
        self._problem: str | None = None
        self._disable: object = None

    def start(self) -> None:
        """Record functions and opened files of all threads from now on."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            threading.setprofile(self._on_event)
            sys.setprofile(self._on_event)
        else:
            try:
                monitoring.use_tool_id(_MONITORING_ID, "equipoise")
            except ValueError:
                self._problem = "another tool uses sys.monitoring"
            else:
                event = monitoring.events.PY_START
                monitoring.register_callback(_MONITORING_ID, event, self._on_start)
                monitoring.set_events(_MONITORING_ID, event)
                self._disable = monitoring.DISABLE
        # Functions that a program registers later run before this one.
        atexit.register(self.write)
        sys.addaudithook(self._on_audit)

    def write(self) -> None:
        """Write the record of this process into the folder."""
        problem = self._problem
        if not hasattr(sys, "monitoring") and sys.getprofile() != self._on_event:
            problem = "it sets a profile function"
        if any(name in sys.modules for name in _MODULES_OF_UNSEEN_PROCESSES):
            problem = "it starts processes of multiprocessing"
        # Functions of this file and of other threads still add files.
        ran, read = frozenset(self._ran), frozenset(self._read)
        record = {
            "parent": self._parent,
            "ran": sorted(map(_printable, ran)),
            "read": sorted(map(_printable, read - ran)),
            "programs": self._programs,
            "own_programs": self._own_programs,
            "problem": problem,
        }
        path = os.path.join(self._folder, f"{os.getpid()}-{time.monotonic_ns()}")
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(f"{path}.part", f"{path}.json")

    def _on_event(self, frame: Any, event: str, argument: object) -> None:
        if event == "call":
            self._add(frame.f_code)

    def _on_start(self, code: CodeType, offset: int) -> object:
        self._add(code)
        return self._disable

    def _add(self, code: CodeType) -> None:
        files = self._ran if code.co_flags & _FLAG_OF_FUNCTIONS else self._read
        path = self._absolute_paths.get(code.co_filename)
        if path is None:
            # Names such as <string> are not files.
            is_file = not code.co_filename.startswith("<")
            path = os.path.abspath(code.co_filename) if is_file else ""
            self._absolute_paths[code.co_filename] = path
        if path:
            files.add(path)

    def _on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" or event == "import":
            # A module that is a native library has its file name, other modules have none.
            path = arguments[0 if event == "open" else 1]
            if isinstance(path, (str, bytes)):
                self._read.add(os.path.abspath(os.fsdecode(path)))
        elif event in _EVENTS_OF_PROGRAMS:
            self._programs += 1
            self._own_programs += _is_started_by_project()
            if event == "os.exec":
                self._problem = "it replaces itself by another program"
                self.write()


def _is_started_by_project() -> bool:
    """Return whether a function on the stack may be of the project, not of installed packages.

    Only the main thread is started by a function that is known.
    """
    if threading.current_thread() is not threading.main_thread():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", *_INSTALLED)) and name != __file__:
            return True
        frame = frame.f_back
    return False


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _run_script() -> None:
    import runpy

    del sys.argv[0]
    Recorder(os.environ[FOLDER_VARIABLE]).start()
    runpy.run_path(sys.argv[0], run_name="__main__")


def _import_hidden_customization() -> None:
    """Run the ``sitecustomize`` that Python would import without this one."""
    own_folder = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec(
        "sitecustomize", [path for path in sys.path if os.path.abspath(path) != own_folder]
    )
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "__main__":
    _run_script()
elif __name__ == "sitecustomize":
    # A program may start another one with a changed environment.
    if FOLDER_VARIABLE in os.environ:
        Recorder(os.environ[FOLDER_VARIABLE]).start()
    _import_hidden_customization()
