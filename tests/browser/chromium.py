"""Chromium without a window, driven over its debugging pipe; nothing but the standard library.

A message is JSON that ends in a zero byte; Chromium reads on file descriptor 3 and writes on 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60
BAD = ("Runtime.exceptionThrown", "Log.entryAdded")
Message = dict[str, Any]


class Image(NamedTuple):
    """A decoded screenshot."""

    width: int
    height: int
    pixels: bytes
    """Three bytes each."""

    def at(self, x: int, y: int) -> tuple[int, ...]:
        place = 3 * (y * self.width + x)
        return tuple(self.pixels[place : place + 3])

    def colours(self) -> set[bytes]:
        return {self.pixels[place : place + 3] for place in range(0, len(self.pixels), 3)}


class Chromium:
    """One browser with one page."""

    def __init__(self, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        # Above the numbers that they get in the child, so that neither overwrites the other.
        reads = fcntl.fcntl(ours[0], fcntl.F_DUPFD_CLOEXEC, 20)
        writes = fcntl.fcntl(theirs[1], fcntl.F_DUPFD_CLOEXEC, 20)
        command = [str(BINARY), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *command],
            pass_fds=(reads, writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for each in (ours[0], theirs[1], reads, writes):
            os.close(each)
        self._in, self._out = os.fdopen(ours[1], "wb", buffering=0), os.fdopen(theirs[0], "rb", buffering=0)
        self._got = bytearray()
        self._number, self.events, self._session = 0, list[Message](), ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._in.close()
        self._process.terminate()
        self._process.wait(timeout=30)
        self._out.close()

    def ask(self, method: str, **parameters: Any) -> Message:
        """Send a command, and wait for its answer; what happens meanwhile is kept."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        while True:
            got = self._read()
            if got.get("id") == self._number:
                assert "error" not in got, got
                return dict(got["result"])
            self.events.append(got)

    def open(self, path: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> None:
        """Open a file as a window of some width would."""
        self.events.clear()
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=path.as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self.events.append(self._read())

    def run(self, expression: str) -> Any:
        """The value of an expression on the page; the page's policy does not bind the debugger."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """What a console would show: exceptions, and what the page's policy forbade."""
        self.run("0")  # what is under way arrives before its answer
        return [json.dumps(each["params"]) for each in self.events if each.get("method") in BAD]

    def requests(self) -> list[str]:
        """What was asked for, the page itself included."""
        request_events = (each for each in self.events if each.get("method") == "Network.requestWillBeSent")
        return [each["params"]["request"]["url"] for each in request_events]

    def screenshot(self, path: Path, *, scale: float = 1.0, whole: bool = False) -> Image:
        """What the window shows, or all of the page, also as a file."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize" if whole else "cssLayoutViewport"]
        width, height = size.get("clientWidth", size.get("width")), size.get("clientHeight", size.get("height"))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        data = base64.b64decode(self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=whole)["data"])
        path.write_bytes(data)
        return decoded(data)

    def _read(self) -> Message:
        while b"\0" not in self._got:
            ready, _, _ = select.select([self._out], [], [], PATIENCE)
            assert ready, f"Chromium has said nothing for {PATIENCE} seconds"
            more = self._out.read(1 << 16)
            assert more, "Chromium has gone away"
            self._got += more
        text, _, self._got = self._got.partition(b"\0")
        return dict(json.loads(text))


def decoded(png: bytes) -> Image:
    """The pixels of a PNG of 8 bits a channel, with or without transparency."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, packed = 8, bytearray()
    width = height = channels = 0
    while place < len(png):
        size, kind = int.from_bytes(png[place : place + 4], "big"), png[place + 4 : place + 8]
        body = png[place + 8 : place + 8 + size]
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            channels = {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            packed += body
        place += 12 + size
    raw, step, found = zlib.decompress(packed), width * channels, bytearray()
    before = bytearray(step)
    for row in range(height):
        start = row * (step + 1)
        before = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + step]), before, channels)
        found += before if channels == 3 else b"".join(bytes(before[i : i + 3]) for i in range(0, step, 4))
    return Image(width, height, bytes(found))


def _unfiltered(kind: int, line: bytearray, above: bytearray, channels: int) -> bytearray:
    if kind == 2:
        return bytearray((a + b) & 255 for a, b in zip(line, above, strict=True))
    for i in range(len(line) if kind else 0):
        left = line[i - channels] if i >= channels else 0
        corner = above[i - channels] if i >= channels else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + above[i]) // 2
        else:
            guess = min((left, above[i], corner), key=lambda each: abs(left + above[i] - corner - each))
        line[i] = (line[i] + guess) & 255
    return line
