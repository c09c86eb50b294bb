"""Pages as PDF, printed by Chromium, for those who want paper."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage")
MINUTE = 60_000  # milliseconds
# Everything is there: pictures that would be fetched when near, what is folded, formulas.
OPENED = """async () => {
  for (const image of document.images) image.loading = "eager";
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  await window.MathJax?.startup?.promise;
  await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
}"""


def chromium() -> str | None:
    """Where Chromium is, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def write(pages: Sequence[Path], query: str = "", ready: str = "true", **options: object) -> None:
    """Print each page beside itself, once an expression of its own is true; options are those of Playwright."""
    from playwright.sync_api import sync_playwright

    browser = chromium()
    if browser is None:
        raise SystemExit("No Chromium: install it (Debian: apt install chromium) or set CHROMIUM to its path.")
    with sync_playwright() as play:
        tab = play.chromium.launch(executable_path=browser, args=list(FLAGS)).new_page()
        tab.set_default_timeout(5 * MINUTE)
        for page in pages:
            tab.goto(page.resolve().as_uri() + query)
            tab.wait_for_function(ready)
            tab.evaluate(OPENED)
            tab.pdf(path=str(page.with_suffix(".pdf")), print_background=True, **options)
            print(page.with_suffix(".pdf"), flush=True)
