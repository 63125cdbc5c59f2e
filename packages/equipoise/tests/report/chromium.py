"""A headless Chromium that is spoken to over a pipe: no port, no driver, nothing left behind.

The DevTools protocol over ``--remote-debugging-pipe``: JSON messages that end in a zero byte,
read by the browser from its file descriptor 3 and written to 4. It ends when the pipe closes.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = "chromium"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)
ANSWER_WITHIN_S = 300.0
"""A loaded machine may take a minute for what usually takes a second."""
GRACE_S = 5.0

KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
"""Number and text of each key that a test presses."""

DRAWN = "document.documentElement?.dataset.drawn"
"""True in a page of ours once its charts are drawn: the theme that they are drawn in."""
MARKS = """[...document.querySelectorAll('.chart')].map(chart => {
  const picture = chart.querySelector('svg, canvas');
  if (!picture) return 0;
  if (picture.tagName === 'CANVAS') {
    const pixels = picture.getContext('2d').getImageData(0, 0, picture.width, picture.height);
    return new Set(new Uint32Array(pixels.data.buffer)).size;
  }
  return picture.querySelectorAll('[class*=mark-] path, [class*=mark-] line').length;
})"""
"""How much each chart of a page shows: its marks, or the different colours of its pixels."""


class Browser:
    """One page in one browser; remembers what the page complained of and asked for."""

    def __init__(self, to_browser: int, from_browser: int, home: Path, group: int) -> None:
        self._to, self._from = to_browser, from_browser
        self.home, self.group = home, group
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        self.opened = home

    def attach(self) -> None:
        """Take the first page and listen to its console and its network."""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command; its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next_message()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, path: Path, width: int = 1280, height: int = 800, *, ready: str) -> None:
        """Open a file from disk and wait until the expression ``ready`` is true in it."""
        self.opened = path
        self.resize(width, height)
        self.call("Page.navigate", url=path.as_uri())
        self.wait_until(ready)

    def show(self, text: str, width: int = 1280, height: int = 800, *, ready: str = DRAWN) -> None:
        """Forget what happened, and open a page of this text from disk."""
        path = self.home / "report.html"
        path.write_text(text, encoding="utf-8")
        self.events.clear()
        self.open(path, width, height, ready=ready)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        code, text = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code="Space" if key == " " else key,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=code,
            )

    def resize(self, width: int, height: int) -> None:
        """Give the page this size; below 600 pixels, that of a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if width < 600 else 1,
            mobile=width < 600,
        )

    def prefer(self, scheme: str) -> None:
        """Pretend that the reader's system is ``light`` or ``dark``."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def wait_until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never true: {expression}\n{self.complaints()}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        """Write a picture of the first screen as a PNG file."""
        shot = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Everything that the console shows as an error or a warning, and what was thrown."""
        messages = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                messages.append(json.dumps(parameters["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded":
                messages.append(json.dumps(parameters["entry"]))
            elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in (
                "error",
                "warning",
                "assert",
            ):
                messages.append(json.dumps(parameters["args"]))
        return messages

    def requests(self) -> list[str]:
        """Addresses of the requests that the page made; embedded data makes none."""
        made = [
            str(event["params"]["request"]["url"])
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [address for address in made if not address.startswith("data:")]

    def dialogs(self) -> list[str]:
        """The text of every dialog that the page opened."""
        return [
            str(event["params"]["message"])
            for event in self.events
            if event.get("method") == "Page.javascriptDialogOpening"
        ]

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            readable, _, _ = select.select([self._from], [], [], ANSWER_WITHIN_S)
            assert readable, "Chromium does not answer"
            part = os.read(self._from, 1 << 20)
            assert part, "Chromium ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with an empty profile of its own; both are gone afterwards."""
    program = shutil.which(PROGRAM)
    assert program is not None
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    with tempfile.TemporaryDirectory(
        prefix="equipoise-chromium-", ignore_cleanup_errors=False
    ) as home:
        process = subprocess.Popen(
            # Bash gives the two ends the numbers that Chromium expects, and is replaced by
            # it; a plain sh cannot name descriptors above 9.
            [
                "/bin/bash",
                "-c",
                f'exec "$0" "$@" 3<&{browser_reads} 4>&{browser_writes}',
                program,
                *FLAGS,
                f"--user-data-dir={home}/profile",
                "about:blank",
            ],
            pass_fds=(browser_reads, browser_writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": home, "TMPDIR": home, "XDG_CONFIG_HOME": home},
        )
        os.close(browser_reads)
        os.close(browser_writes)
        try:
            browser = Browser(we_write, we_read, Path(home), process.pid)
            browser.attach()
            yield browser
        finally:
            os.close(we_write)
            os.close(we_read)
            _end(process)


def assert_quiet(browser: Browser) -> None:
    """No console message, no dialog and no request but for the file itself."""
    assert browser.complaints() == []
    assert browser.dialogs() == []
    assert browser.requests() == [browser.opened.as_uri()]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a browser whose pipe has closed; end it and its helpers if it stays."""
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + GRACE_S
    while _group_lives(process.pid):
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.02)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
