"""The book in a real browser: nothing from outside, nothing too wide, readable for everybody; searched.

Each kind of page is opened as it is seen on a desk, light and dark, and on a phone; ``BOOK_ALL=1`` opens every page.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from test_lab_browser import PATIENCE

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")

PAGES = (
    "index.html",
    "notebooks/02_from_kernels_to_attention.html",
    "notebooks/CLAIMS.html",
    "notebooks/SYMBOLS.html",
    "api/core.html",
    "api/variants.html",
    "_modules/attnlib/core/attention.html",
    "figures/README.html",
    "search.html?q=attention",
)
SEEN = {"desk": (1440, "light"), "desk, dark": (1440, "dark"), "phone": (390, "light")}
LIMIT = 3_000_000  # bytes

TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"
# Formulas that end beyond their column: a phone scrolls them, a desk has no need to.
CUT = """
[...document.querySelectorAll("div.math mjx-math")]
  .filter(formula => innerWidth > 1000 && formula.offsetWidth > formula.closest("div.math").clientWidth)
  .map(formula => formula.closest("div.math").textContent)
"""
# All is there: formulas set, and every picture that is near enough to be fetched.
THERE = """
async () => {
  if (document.readyState !== "complete") return false;
  await window.MathJax?.startup?.promise;
  const near = [...document.images].filter(i => i.getBoundingClientRect().top < innerHeight + 1000);
  return near.every(i => i.complete);
}
"""
SQUASHED = """
[...document.querySelectorAll(".bd-article img")]
  .filter(i => i.complete && i.naturalWidth && i.clientWidth)
  .filter(i => { const style = getComputedStyle(i);
                 const width = i.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
                 const height = i.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
                 return Math.abs(height - width * i.naturalHeight / i.naturalWidth) > 1 + 0.01 * height; })
  .map(i => i.alt)
"""
# How light the paper is on which each picture lies: 0 where it has none.
GROUNDS = """
[...document.querySelectorAll(".bd-article img")]
  .map(i => getComputedStyle(i).backgroundColor.match(/[\\d.]+/g).map(Number))
  .map(([r, g, b, alpha = 1]) => alpha == 1 ? Math.min(r, g, b) : 0)
"""


class Quiet(SimpleHTTPRequestHandler):
    """A server that keeps its log to itself."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def address(book):
    """Where the book is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=book))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def tab(browser, request):
    with opened(browser, getattr(request, "param", "desk")) as tab:
        yield tab


@contextmanager
def opened(browser, seen):
    """A page of a width and in a light that remembers what it asked for, how much came, and what went wrong in it."""
    width, light = SEEN[seen]
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=light)
    tab.set_default_timeout(PATIENCE * 1000)
    tab.asked, tab.errors, tab.weight = [], [], 0
    tab.on("request", lambda asked: tab.asked.append(asked.url))
    tab.on("requestfailed", lambda asked: note_failed(tab, asked))
    tab.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.on("response", lambda came: weigh(tab, came))
    try:
        yield tab
    finally:
        tab.close()


def note_failed(tab, asked):
    """Note what could not be fetched; what was still on its way when the page was left did not fail."""
    if asked.failure != "net::ERR_ABORTED":
        tab.errors.append(f"{asked.url} failed: {asked.failure}")


def weigh(tab, came):
    """Add what came to the weight of the page; note what did not."""
    tab.weight += int(came.headers.get("content-length", 0))
    if came.status >= 400:
        tab.errors.append(f"{came.url}: {came.status}")


def serious(tab):
    """What axe finds that keeps somebody out: the rule, how grave, and where first."""
    tab.add_style_tag(content="* { transition: none !important }")  # on its way a colour is neither of two
    found = axe.Axe().run(tab).response["violations"]
    grave = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    return [(rule["id"], rule["impact"], rule["nodes"][0]["html"][:120]) for rule in grave]


def whole(tab, page):
    """Whether nothing is wrong with a page; ``pytest`` says what is."""
    tab.goto(page)
    tab.wait_for_function(THERE)  # not for silence: some pages never fall silent
    assert tab.errors == []
    assert [url for url in tab.asked if not url.startswith((page[: page.index("/", 8)], "data:", "blob:"))] == []
    assert tab.weight < LIMIT
    assert not tab.evaluate(TOO_WIDE)
    assert tab.locator("mjx-merror").count() == 0
    assert tab.evaluate(CUT) == []
    assert serious(tab) == []


@pytest.mark.parametrize("tab", SEEN, indirect=True)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_whole(tab, address, page):
    whole(tab, address + page)


@pytest.mark.skipif("BOOK_ALL" not in os.environ, reason="every page takes many minutes: BOOK_ALL=1 make test")
@pytest.mark.parametrize("seen", SEEN)
def test_every_page_is_whole(browser, seen, address, book):
    wrong = {}
    for path in sorted(book.rglob("*.html")):
        if "_static" not in path.parts:
            try:
                with opened(browser, seen) as tab:  # a page that follows another in one tab may never fall silent
                    whole(tab, address + path.relative_to(book).as_posix())
            except AssertionError as error:
                wrong[path.relative_to(book).as_posix()] = str(error)
    assert wrong == {}


@pytest.mark.parametrize("tab", SEEN, indirect=True)
def test_figures_keep_their_shape_and_are_dark_in_the_dark(tab, address):
    tab.goto(f"{address}notebooks/01_nadaraya_watson.html")
    pictures = tab.locator(".bd-article img")
    for i in range(pictures.count()):  # those in a folded excursion too, and all are fetched when they come near
        tab.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        pictures.nth(i).scroll_into_view_if_needed()
    there = "n => [...document.images].filter(i => i.naturalWidth > 99).length === n"
    tab.wait_for_function(there, arg=pictures.count())  # the network was idle once, before the last were fetched
    assert tab.evaluate(SQUASHED) == []
    if tab.evaluate("document.documentElement.dataset.theme") == "dark":
        assert min(tab.evaluate(GROUNDS)) > 200, "white, before it is turned"
        filters = "[...document.querySelectorAll('.bd-article img')].map(image => getComputedStyle(image).filter)"
        assert all("invert" in one for one in tab.evaluate(filters))


@pytest.mark.parametrize("tab", ["desk, dark"], indirect=True)
def test_a_picture_whose_colours_are_what_it_shows_keeps_them(tab, address):
    tab.goto(f"{address}notebooks/22_pictures_and_words.html")
    filters = "images => images.map(image => getComputedStyle(image).filter)"
    coloured = "[alt*='in colour']"
    assert tab.locator(f".bd-article img{coloured}").evaluate_all(filters) == ["none", "none"], "white is not black"
    turned = tab.locator(f".bd-article img:not({coloured})").evaluate_all(filters)
    assert turned
    assert all("invert" in one for one in turned)


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("bandwidth", {"What will the next household", "Symbols and terms", "NadarayaWatson"}),
        ("padding", {"How do you hide the future?", "attnlib.masks.padding", "Symbols and terms"}),
        ("softmax", {"attnlib.core.masked_softmax", "Who decides what near means?"}),
    ],
)
def test_a_word_is_searched_and_found(tab, address, word, found):
    tab.goto(f"{address}index.html")
    tab.keyboard.press("Control+k")
    tab.keyboard.type(word)
    tab.keyboard.press("Enter")
    tab.get_by_text("Search finished").wait_for()
    results = tab.locator("#search-results li a").all_inner_texts()
    for words in found:
        assert any(words in result for result in results), (words, results)
    assert [said for said in tab.locator("#search-results .context").all_inner_texts() if "\\(" in said] == []
    tab.locator("#search-results li a").first.click()
    tab.wait_for_load_state()
    assert tab.locator(".bd-article h1").count() == 1
    assert tab.errors == []


def test_an_excursion_is_folded_until_it_is_asked_for(tab, address):
    tab.goto(f"{address}notebooks/01_nadaraya_watson.html")
    folded = tab.locator("details.excursion").first
    assert not folded.locator("p").first.is_visible()
    folded.locator("summary").click()
    folded.locator("p").first.wait_for(state="visible")
