"""Control a headless Chromium by the DevTools protocol over a pipe, with the standard library only."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --hide-scrollbars --force-color-profile=srgb "
    "--disable-dev-shm-usage --remote-debugging-pipe"
).split()


def why_not() -> str | None:
    """Return the reason why this machine has no usable browser, or None."""
    if os.name != "posix":
        return "Chromium is driven over a pipe of POSIX"
    if executable() is None:
        return "no Chromium is installed (Debian: apt-get install chromium)"
    return None


def executable() -> str | None:
    """Return the path of the Chromium on this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One browser with one tab."""

    def __init__(self, width: int = 1280, height: int = 800) -> None:
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        (commands_in, commands), (replies, replies_out) = os.pipe(), os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands_in, replies_out)]

        def at_three_and_four() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [
                str(executable()),
                *FLAGS,
                f"--user-data-dir={self.profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            preexec_fn=at_three_and_four,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (commands_in, replies_out, *high):
            os.close(end)
        self.commands, self.replies = commands, replies
        self.numbers, self.buffer, self.session = itertools.count(1), b"", None
        self.problems: list[str] = []
        self.events: list[dict[str, Any]] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def close(self) -> None:
        """End the browser and delete its profile."""
        for end in (self.commands, self.replies):
            os.close(end)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its reply."""
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        while (reply := self._receive(time.monotonic() + 30)).get("id") != number:
            pass
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            if not select.select([self.replies], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self.replies, 1 << 16)
            if not part:
                raise ConnectionError("Chromium has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        event = json.loads(message)
        self._note(event)
        return event

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.events.append(params["request"])

    def open(self, path: Path) -> float:
        """Open a file, wait until the page is ready, and return the duration in seconds."""
        self.problems.clear()
        self.events.clear()
        began = time.perf_counter()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until("document.documentElement?.dataset.ready !== undefined")
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.perf_counter() - began

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", expression))
        return result["result"].get("value")

    def apply(self, function: str, *arguments: Any) -> Any:
        """Return the result of a JavaScript function for some arguments."""
        return self.evaluate(f"({function})({', '.join(map(json.dumps, arguments))})")

    def until(self, condition: str, seconds: float = 8.0) -> None:
        """Wait until a JavaScript condition holds."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise TimeoutError("; ".join([condition, *self.problems]))
            time.sleep(0.02)

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def media(self, scheme: str = "light", motion: str = "reduce", medium: str = "") -> None:
        """Set the media features: light or dark, motion or none, screen or print."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    def key(self, key: str, text: str | None = None, shift: bool = False) -> None:
        """Press a key in the element that has the focus."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}
        code = codes.get(key) or (ord(key.upper()) if key.isalnum() else 0)
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        if key == "Enter":
            text = "\r"
        elif len(key) == 1:
            text = text or key
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, words: str) -> None:
        """Type text."""
        for character in words:
            self.key(character)

    def click(self, selector: str, count: int = 1) -> None:
        """Click with the mouse in the middle of the first element that a selector finds."""
        x, y = self.evaluate(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.click_at(x, y, count)

    def click_at(self, x: float, y: float, count: int = 1) -> None:
        """Click with the mouse at a place of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=number)

    def screenshot(self) -> bytes:
        """Return the visible part of the page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
