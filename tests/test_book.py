"""The book, made once: every link leads somewhere, every picture has words, every name that is imported is there."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from html.parser import HTMLParser
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest

import attnlib
from attnlib.course.claims import CLAIMS
from attnlib.course.lessons import LESSONS
from attnlib.course.symbols import SYMBOLS
from publish.lessons.build import COURSE
from publish.lessons.lessons import read_notebook
from publish.notebooks import figures

ROOT = COURSE.root
READY = [lesson for lesson in LESSONS if lesson.ready]
LIMIT = 3_000_000  # bytes


class Page(HTMLParser):
    """What a page leads to, what it fetches, what can be led to on it, and its pictures."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.fetched, self.images = {""}, [], [], []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        """Take note of a tag."""
        found = dict(attrs)
        self.ids |= {found.get("id", ""), found.get("name", "") if tag == "a" else ""}
        if tag == "a" and "href" in found:
            self.links.append(found)
        elif tag == "link" and found.get("rel") not in ("index", "search", "next", "prev", "author", "canonical"):
            self.fetched.append(found["href"])
        if "src" in found:
            self.fetched.append(found["src"])
        if tag == "img":
            self.images.append(found)


@pytest.fixture(scope="module")
def pages(book):
    """Every page, by its path."""
    return {path: Page(path) for path in book.rglob("*.html") if "_static" not in path.parts}


def names_of_reference(book):
    """The dotted names in the reference, from the addresses of its entries."""
    return {name for path in book.glob("api/*.html") for name in Page(path).ids if "attnlib." in name}


def leads_nowhere(pages, path, link):
    """Whether a link within the book has no end; one to elsewhere is not followed."""
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return False
    target = (path.parent / unquote(address.path)).resolve() if address.path else path
    fragment = unquote(address.fragment)
    return not target.is_file() or (target in pages and fragment not in pages[target].ids)


def test_every_link_leads_somewhere(pages):
    dead = {
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in [*(a["href"] for a in page.links), *page.fetched]
        if leads_nowhere(pages, path, link)
    }
    assert sorted(dead) == []


def test_nothing_is_fetched_from_outside(pages):
    assert [(path.name, url) for path, page in pages.items() for url in page.fetched if urlsplit(url).netloc] == []


def test_no_page_is_too_heavy(pages):
    assert {path.name: path.stat().st_size for path in pages if path.stat().st_size > LIMIT} == {}


@pytest.mark.parametrize("lesson", READY, ids=lambda lesson: lesson.number)
def test_a_lesson_has_its_pictures_in_words_and_its_notebook(book, pages, lesson):
    file = COURSE.notebooks / f"{lesson.file}.ipynb"
    notebook = read_notebook(file)
    words = Counter(alt for _, _, alt in figures(notebook))
    words.update(
        alt
        for cell in notebook.cells
        for alt in re.findall(r"!\[(.*?)\]\(", cell.source)
        if cell.cell_type == "markdown"
    )
    page = pages[book / "notebooks" / f"{lesson.file}.html"]
    assert Counter(image["alt"] for image in page.images if "_images" in image["src"]) == words
    notebooks = [a["href"] for a in page.links if a["href"].endswith(".ipynb")]
    assert [(book / "notebooks" / href).read_bytes() == file.read_bytes() for href in notebooks] == [True]


def test_every_picture_has_words(pages):  # those that move get theirs by a script: see test_moving
    still = [(path, page) for path, page in pages.items() if path.parent.name != "_moving"]
    images = [(path.name, image) for path, page in still for image in page.images]
    assert [(name, image["src"]) for name, image in images if len(image.get("alt", "")) < 9] == []


def test_tables_are_tables_and_there_is_one_way_on(book):
    for lesson in READY:
        text = (book / "notebooks" / f"{lesson.file}.html").read_text("utf-8")
        assert not re.search(r"<p>\|", text), f"{lesson.number}: a table is left in Markdown"
        assert "the map of the course" not in text, f"{lesson.number}: two rows of links at the end"


def test_lessons_follow_each_other(book):
    for lesson, after in pairwise(READY):
        text = (book / "notebooks" / f"{lesson.file}.html").read_text("utf-8")
        assert re.search(rf'class="right-next"\s+href="{after.file}\.html"', text)
        text = (book / "notebooks" / f"{after.file}.html").read_text("utf-8")
        assert re.search(rf'class="left-prev"\s+href="{lesson.file}\.html"', text)


def imports(code):
    """The names that some code imports from the library, with their modules."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attnlib"):
            yield from ((node.module, alias.name) for alias in node.names)


def test_the_reference_has_every_name_that_a_lesson_imports(book):
    known = {part for name in names_of_reference(book) for part in name.removeprefix("module-").split(".")}
    missing = set()
    for lesson in READY:
        cells = read_notebook(COURSE.notebooks / f"{lesson.file}.ipynb").cells
        codes = [cell.source for cell in cells if cell.cell_type == "code" and "attnlib" in cell.source]
        missing |= {pair for code in codes for pair in imports(code) if pair[1] not in known}
    assert sorted(missing) == []
    for name in set(attnlib.__all__) - known:  # a module may have all that it offers in an entry of its folder
        assert set(getattr(attnlib, name).__all__) <= known


def test_an_entry_of_the_reference_is_whole(book):
    text = (book / "api" / "core.html").read_text("utf-8")
    entry = text[text.index('id="attnlib.core.attention"') : text.index('id="attnlib.core.blockwise"')]
    signature = re.sub(r"<.*?>", "", entry.partition("<dd>")[0])
    assert "q: Float[Array, '... n_q d'], k: " in signature
    assert "score: Callable[[Array, Array], Array] = scaled_dot, mask: " in signature
    for part in (
        r"\text{Attention}(Q, K, V)",  # the equation
        "ValueError",
        "Vaswani et al. (2017)",
        "&gt;&gt;&gt; ",
        'href="../_modules/attnlib/core/attention.html#attention"',  # the code
        'href="scores.html#module-attnlib.scores"',  # a name in the text
        'href="masks.html#attnlib.masks.causal"',  # by the name that readers import
    ):
        assert part in entry, part


def test_no_sentence_is_taken_for_a_parameter(book):
    for path in book.glob("api/*.html"):
        assert not re.findall(r"<strong>(?:``|&gt;&gt;&gt;|Raises|Source)[^<]*", path.read_text("utf-8")), path.name


def test_the_ledger_leads_to_the_code_of_its_tests(book, pages):
    links = {a["href"] for a in pages[book / "notebooks" / "CLAIMS.html"].links}
    tests = (book / "tests" / "test_claims.html").read_text("utf-8")
    for claim in CLAIMS:
        assert f"../tests/test_claims.html#{claim.shows.replace(' ', '-')}" in links
        assert f">{claim.test.partition('::')[2]}<" in tests


def test_the_table_of_symbols_leads_to_the_reference(book, pages):
    links = [a["href"] for a in pages[book / "notebooks" / "SYMBOLS.html"].links]
    assert sum(link.startswith("../api/") and "#" in link for link in links) == sum(bool(s.code) for s in SYMBOLS)


def test_the_first_page_leads_to_every_lesson(book, pages):
    links = {a["href"] for a in pages[book / "index.html"].links}
    assert {f"notebooks/{lesson.file}.html" for lesson in READY} <= links


def test_what_is_searched_is_there(book):
    text = (book / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert {"bandwidth", "pad"} <= index["terms"].keys()


@pytest.mark.parametrize(
    ("repository", "target", "led"),
    [
        ("https://host/them/course/blob/HEAD", "../README.md", "https://host/them/course/blob/HEAD/README.md"),
        ("", "../README.md", None),
        ("", "../attnlib/masks.py", "attnlib.causal"),
        ("", "../tests/test_claims.py", "attnlib.causal"),
        ("", "../nowhere.md", "../nowhere.md"),
    ],
)
def test_a_link_to_a_file_outside_the_book_leads_elsewhere(repository, target, led):
    nodes, addnodes = pytest.importorskip("docutils.nodes"), pytest.importorskip("sphinx.addnodes")
    redirect = import_module("publish.book.links").redirect
    env = SimpleNamespace(docname="notebooks/CLAIMS", found_docs={"tests/test_claims"})
    app = SimpleNamespace(env=env, config=SimpleNamespace(repository=repository))
    link = addnodes.pending_xref("", nodes.literal("", "attnlib.causal"), reftype="myst", reftarget=target)
    page = nodes.paragraph("", "", link)
    redirect(app, page)
    assert page.astext() == "attnlib.causal"
    assert page[0].get("refuri", page[0].get("reftarget")) == led
