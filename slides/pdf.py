"""Decks as PDF, printed by Chromium from reveal.js's own print view."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage")


def chromium() -> str | None:
    """Where Chromium is, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def write(decks: Sequence[Path]) -> None:
    """Print every deck beside its page, light, one sheet a slide, everything revealed."""
    from playwright.sync_api import sync_playwright

    browser = chromium()
    if browser is None:
        raise SystemExit("No Chromium: install it (Debian: apt install chromium) or set CHROMIUM to its path.")
    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=browser, args=list(FLAGS)).new_page()
        for path in decks:
            page.goto(f"{path.resolve().as_uri()}?print-pdf&theme=light")
            page.wait_for_function("window.deckReady === true && document.querySelector('.pdf-page')")
            page.pdf(path=str(path.with_suffix(".pdf")), prefer_css_page_size=True, print_background=True)
            print(f"{path.stem}.pdf", flush=True)
