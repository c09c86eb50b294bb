"""Take the picture of a lesson that README.md shows: `make lab` in a browser, at a question and its figure.

python tools/picture_of_a_lesson.py

Needs Chromium, named by CHROMIUM or found on the PATH.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
LESSON, DOWN = "01_nadaraya_watson.ipynb", 205  # pixels, to its first question and figure
PICTURE = ROOT / "figures" / "readme" / "lesson.png"
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]


def main() -> None:
    """Start JupyterLab over the lessons as they are, photograph, stop it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        own = {f"JUPYTER_{name}_DIR": f"{scratch}/{name}" for name in ("CONFIG", "DATA", "RUNTIME")}
        own |= {f"JUPYTERLAB_{name}_DIR": f"{scratch}/{name}" for name in ("SETTINGS", "WORKSPACES")}
        command = [sys.executable, "-m", "jupyterlab", "--config=notebooks/lab/config.py", "--no-browser"]
        command += [f"--port={port}", "--IdentityProvider.token=secret"]
        server = subprocess.Popen(command, cwd=ROOT, env=os.environ | own, stderr=subprocess.DEVNULL)
        try:
            with sync_playwright() as play:
                chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
                browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
                photograph(browser.new_page(viewport={"width": 1180, "height": 820}), port)
        finally:
            server.terminate()
            server.wait(60)


def photograph(page: Page, port: int) -> None:
    """Open the lesson, go down to its question, and take the picture."""
    address = f"http://127.0.0.1:{port}/lab/tree/my_lessons/{LESSON}?token=secret&reset"
    for _ in range(60):
        try:
            page.goto(address)
            break
        except Exception:  # the server is not there yet
            page.wait_for_timeout(500)
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.get_by_text("| Idle").first.wait_for()
    page.mouse.move(700, 500)
    page.mouse.wheel(0, DOWN)
    page.wait_for_timeout(1500)
    PICTURE.parent.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(64).save(PICTURE, optimize=True)  # a quarter of the bytes


if __name__ == "__main__":
    main()
