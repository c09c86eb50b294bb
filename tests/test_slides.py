"""The decks: short enough to be read from the last row, asked before it is shown, and nothing over the edge."""

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest

from attnlib.course.lessons import LESSONS
from building.lessons import HEADER, read_source, unrun_notebook
from decks import choosing, packing, pages, pieces, prose

ROOT = Path(__file__).parents[1]
READY = [lesson for lesson in LESSONS if lesson.ready]
EACH = pytest.mark.parametrize("lesson", READY, ids=lambda lesson: lesson.number)
PLACES = "Reveal.getSlides().map(Reveal.getIndices).map(({ h, v }) => [h, v ?? 0])"
VIEWS = {"1280x720": (1280, 720), "1920x1080": (1920, 1080)}
# What is over the edge, too small or too much on the slide in view; formulas may be as wide as the slide.
MEASURED = """() => {
  const slide = Reveal.getCurrentSlide(), page = slide.querySelector(".page");
  const edge = page.getBoundingClientRect(), scale = edge.width / 1280;
  const body = slide.querySelector(".body"), found = [];
  const seen = "h1, h2, h3, p, li, pre, img, table, mjx-container > svg";
  for (const part of slide.querySelectorAll(`.page :is(${seen})`)) {
    const box = part.getBoundingClientRect();
    const wide = part.tagName === "PRE" ? part.scrollWidth * scale : box.width;
    if (box.top < edge.top - 1 || box.bottom > edge.bottom - 34 * scale || box.left + wide > edge.right + 1)
      found.push(`${part.tagName} over the edge: ${part.textContent.slice(0, 40)}`);
    if (parseFloat(getComputedStyle(part).fontSize) < 20) found.push(`${part.tagName} in small letters`);
  }
  if (body && body.scrollHeight > body.clientHeight + 1) found.push("more than fits");
  let lines = 0;
  for (const part of body ? body.querySelectorAll("p:not(.next), li") : []) {
    if (part.closest(".formula")) continue;
    lines += Math.round(part.getBoundingClientRect().height / scale / parseFloat(getComputedStyle(part).lineHeight));
  }
  for (const part of body ? body.querySelectorAll(".output pre") : []) lines += part.textContent.split("\\n").length;
  if (lines > 5) found.push(`${lines} lines`);
  for (const image of slide.querySelectorAll("img"))
    if (!image.alt || !image.complete || !image.naturalWidth) found.push(`no picture or no words: ${image.src}`);
  const said = slide.cloneNode(true);
  said.querySelectorAll("pre, code").forEach((part) => part.remove());
  if (said.textContent.includes("$")) found.push("a formula is left raw");
  if (slide.querySelector("[data-mml-node=merror]")) found.push("a formula is wrong");
  return found;
}"""


def slides_of(lesson):
    return pages.deck_of(lesson).slides


# What a deck holds.


@EACH
def test_a_deck_is_as_long_as_a_lecture(lesson):
    assert 12 <= pages.deck_of(lesson).count <= 25


@EACH
def test_a_slide_is_read_at_a_glance(lesson):
    for slide in slides_of(lesson):
        assert slide.pieces or slide.kind == "title", f"{slide.heading}: nothing but a heading"
        shown = [piece for piece in slide.pieces if piece.kind in (*packing.ALONE, *packing.SHOWN)]
        assert len(shown) <= 1, slide
        assert slide.lines <= 5 or slide.shows in ("figure", "table", "code"), slide
        assert slide.shows != "figure" or (len(slide.pieces) == 1 and not slide.heading), "a figure fills its slide"
        for piece in slide.pieces:
            assert piece.kind != "code" or piece.lines <= pieces.MAX_CODE, piece
            assert piece.kind != "output" or pieces.fits(piece), piece


@EACH
def test_something_is_asked_or_said_before_a_figure(lesson):
    before = None
    for slide in slides_of(lesson):
        if slide.shows == "figure":
            assert before is not None, slide.pieces[0].name
            assert any(piece.kind in ("question", "text", "finding") for piece in before.pieces), slide.pieces[0].name
        before = slide


@EACH
def test_what_is_for_the_reader_is_left_out(lesson):
    deck = pages.deck_of(lesson)
    shown = "\n".join(slide.heading + "\n" + "\n".join(piece.body for piece in slide.pieces if piece.kind != "figure")
                      for slide in deck.slides)  # fmt: skip
    notes = "\n".join("\n".join(slide.notes) for slide in deck.slides)
    for text in (shown, notes):
        assert not re.search(r"Excursion:|Where this comes from|\*\*\d\d\.\d\*\*|\bcheck\(\"|^import ", text, re.M)
    assert not re.search(r"\*\*\d\d\.\d+\*\*|not attempted", shown)
    assert not {slide.section for slide in deck.slides} & {"Exercises", "Where this comes from"}


@EACH
def test_claims_and_summary_are_in(lesson):
    slides = slides_of(lesson)
    source = (ROOT / "notebooks" / "source" / f"{lesson.file}.md").read_text("utf-8")
    claims = source.partition("\n## What people get wrong")[2].partition("\n## ")[0]
    said = re.findall(r'^\*\*["“](.+?)["”]\*\*', claims, re.M)
    assert [slide.heading.strip("“”") for slide in slides if slide.kind == "claim" and slide.heading] == said
    for slide in slides:
        if slide.kind == "claim" and slide.heading:
            assert slide.pieces, f"{slide.heading}: what became of it?"
    assert slides[-1].kind == "end"
    assert slides[-1].pieces, "nothing leads on to the next lesson"
    assert any(slide.kind == "summary" for slide in slides)


@EACH
def test_the_lecturer_has_notes(lesson):
    slides = slides_of(lesson)
    with_notes = sum(bool("".join(slide.said).strip()) for slide in slides)
    assert with_notes >= 0.8 * len(slides)


# How it is made.


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("One. Two? Three.", ["One.", "Two?", "Three."]),
        ("Of $x. Y$ this. And `a. B` that.", ["Of $x. Y$ this.", "And `a. B` that."]),
        ("It is **here.** Next.", ["It is **here.**", "Next."]),
        ("M.-T. Luong and E. A. Nadaraya asked. So do we.", ["M.-T. Luong and E. A. Nadaraya asked.", "So do we."]),
    ],
)
def test_sentences(text, cut):
    assert prose.sentences(text) == cut


def section(*found):
    return pieces.Section("Heading", [pieces.Piece(*piece) for piece in found])


def test_an_output_answers_the_question_before_it():
    told = section(("paragraph", "*How many of them will it be?*"), ("output", "12"), ("paragraph", "Twelve. More."))
    assert [(p.kind, p.body) for p in choosing.chosen(told) if p.kind != "notes"] == [
        ("question", "*How many of them will it be?*"),
        ("output", "12"),
        ("finding", "Twelve. More."),
    ]


def made(text):
    """The slides of a lesson that is written here, not run."""
    return packing.slides(pieces.sections(unrun_notebook(read_source(HEADER + "# 01 · A\n\n+++\n\n" + text), "01")))


def test_a_source_may_say_what_is_shown_and_is_told_what_it_has_not():
    text = '+++ {"deck": ["Then…", "In short: that.", "Last…"]}\n\n## B\n\nFirst this. Then that.\n\nAt last. Last.'
    assert [piece.body for piece in made(text)[0].pieces] == ["Then that.", "In short: that.", "Last."]
    with pytest.raises(pieces.DeckError, match="'Lost'"):
        made(text.replace("Last…", "Lost…"))


def test_what_is_not_spoken_of_is_in_no_deck():
    aside = "## Excursion: b\n\n+++\n\nAside.\n\n```{code-cell}\n:deck: [code]\n\nx = 1\n```\n\n"
    exercise = "## Exercises\n\n**01.1** Try.\n\n+++\n\n"
    slides = made("## A\n\nBefore.\n\n+++\n\n" + aside + exercise + "## C\n\nCore. $x$ is said.")
    assert [(slide.heading, len(slide.pieces)) for slide in slides] == [("A", 1), ("C", 1)]


def test_a_sixth_line_goes_to_the_next_slide():
    six = ", ".join(f'"Line {i}, of a length that leaves no room for another one beside it."' for i in range(6))
    slides = made(f'+++ {{"deck": [{six}]}}\n\n## B\n\nNothing.')
    assert [len(slide.pieces) for slide in slides] == [5, 1]


def test_arrays_and_names_are_shown_in_words():
    assert pieces.readable("one_row (2,)\n[1. 2.]") == "one row  [1. 2.]"
    assert pieces.readable("  too_high 19") == "too_high 19"


# What is seen.


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if "sphinx-revealjs" not in installed():
        pytest.skip("reveal.js is not installed: make slides, once, installs it")
    folder = tmp_path_factory.mktemp("decks")
    pages.write(pages.decks(), folder)
    return folder


def installed():
    return {found.metadata["Name"] for found in distributions()}


def test_the_page_of_all_decks_leads_to_every_deck(built):
    text = (built / "index.html").read_text("utf-8")
    for lesson in READY:
        assert f'href="{lesson.file}.html"' in text
        assert (built / f"{lesson.file}.html").exists()


def test_nothing_points_outside(built):
    for page in built.glob("*.html"):
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.read_text("utf-8")), page.name


@EACH
def test_every_slide_is_looked_at(built, browser, lesson):
    page = browser.new_page()
    said, asked = [], []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    for name, (width, height) in VIEWS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.goto((built / f"{lesson.file}.html").as_uri())
        page.wait_for_function("window.deckReady === true")
        for across, down in page.evaluate(PLACES):
            page.evaluate(f"Reveal.slide({across}, {down}, 99)")
            assert page.evaluate(MEASURED) == [], f"slide {across + 1} at {name}"
            if down:
                assert_it_moves(page)
    page.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def assert_it_moves(page):
    """The figure that moves is all in view, and the keyboard moves it."""
    frame = page.frame_locator("section.present.moving iframe")
    picture, control = frame.locator("img"), frame.locator("input, select").first
    before = picture.get_attribute("src")
    box, edge = picture.bounding_box(), page.locator("section.present.moving iframe").bounding_box()
    assert edge["y"] < box["y"]
    assert box["y"] + box["height"] <= edge["y"] + edge["height"] + 1
    control.focus()
    for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        if picture.get_attribute("src") != before:
            return
    raise AssertionError("no key moves it")


def test_the_figures_that_move_are_in_the_decks():
    found = [slide.moving for lesson in READY for slide in slides_of(lesson) if slide.moving]
    assert found == sorted(page.stem for page in (ROOT / "figures" / "moving").glob("*.html"))


def test_the_keys_work(built, browser):
    lesson = next(one for one in READY if one.number == "02")
    page = browser.new_page(color_scheme="light")
    page.goto((built / f"{lesson.file}.html").as_uri())
    page.wait_for_function("window.deckReady === true")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.keyboard.press("d")
    dark = page.evaluate(paper)
    assert light == "rgb(255, 255, 255)" != dark
    page.goto((built / f"{lesson.file}.html").as_uri() + "?theme=light")
    page.wait_for_function("window.deckReady === true")
    assert page.evaluate(paper) == light
    hidden = "Reveal.getCurrentSlide().querySelectorAll('.fragment:not(.visible)').length"
    page.evaluate("Reveal.slide(1, 0)")
    before = page.evaluate(hidden)
    page.keyboard.press("Space")
    assert page.evaluate(hidden) == before - 1
    page.close()
