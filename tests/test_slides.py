"""The decks: written for the last row, true to their lessons, and nothing over the edge."""

import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_output

from attnlib.course.columns import in_columns
from attnlib.course.lessons import LESSONS
from publish.decks import NOTES, length, slides_of
from publish.slides import named

ROOT = Path(__file__).parents[1]
SLIDES = ROOT / "slides"
READY = [lesson for lesson in LESSONS if lesson.ready]
EACH = pytest.mark.parametrize("lesson", READY, ids=lambda lesson: lesson.number)
PLACES = "Reveal.getSlides().map(Reveal.getIndices).map(({ h, v }) => [h, v ?? 0])"
# What is over the edge, too small or too much on the slide in view.
MEASURED = """() => {
  const slide = Reveal.getCurrentSlide(), scale = Reveal.getScale(), edge = slide.getBoundingClientRect();
  const found = [], parts = [...slide.children].filter((part) => !part.matches("aside, .step"));
  for (const part of slide.querySelectorAll(":is(h1, h2, h3, p, li, pre, img, table, iframe, mjx-math)")) {
    if (part.closest("aside")) continue;
    const box = part.getBoundingClientRect();
    if (box.top < edge.top - 1 || box.bottom > edge.bottom - 30 * scale || box.left < edge.left ||
        box.right > edge.right + 1)
      found.push(`${part.tagName} over the edge: ${part.textContent.slice(0, 40)}`);
    if (parseFloat(getComputedStyle(part).fontSize) < 20) found.push(`${part.tagName} in small letters`);
    if (part.tagName === "PRE" && part.scrollWidth > part.clientWidth + 1) found.push("a line is cut");
    if (part.tagName === "IMG" && box.height < 200) found.push("a figure is too small to see");
  }
  for (const [i, part] of parts.entries())
    if (i && part.getBoundingClientRect().top < parts[i - 1].getBoundingClientRect().bottom - 1)
      found.push(`${part.tagName} lies on what is above it`);
  let lines = 0;
  for (const part of slide.querySelectorAll(":scope > :is(p, ul, ol) :is(*), :scope > p")) {
    if (!part.matches("p")) continue;
    lines += Math.round(part.getBoundingClientRect().height / scale / parseFloat(getComputedStyle(part).lineHeight));
  }
  for (const part of slide.querySelectorAll("pre.output")) lines += part.textContent.split("\\n").length;
  if (lines > 5 && !document.title.includes("the decks"))
    found.push(`${lines} lines, with those that are wrapped; at most 5`);
  for (const image of slide.querySelectorAll("img"))
    if (!image.alt || !image.complete || !image.naturalWidth) found.push(`no picture or no words: ${image.src}`);
  if (slide.querySelector("mjx-merror")) found.push("a formula is wrong");
  return found;
}"""


def deck(lesson):
    return (SLIDES / f"{lesson.file}.md").read_text("utf-8")


def heading(slide):
    return slide.partition("\n")[0].lstrip("# ")


# What a deck says.


@EACH
def test_a_deck_is_as_long_as_a_lecture(lesson):
    slides, minutes = length(deck(lesson))
    assert 12 <= slides <= 25
    assert 20 <= minutes <= 60


def test_the_deck_of_one_lecture_takes_three_quarters_of_an_hour():
    text = (SLIDES / "lecture.md").read_text("utf-8")
    assert 40 <= length(text)[1] <= 48
    check_slides(text)


@EACH
def test_every_slide_has_a_point_and_the_lecturer_has_notes(lesson):
    text = deck(lesson)
    assert text.startswith(f"# {lesson.heading}\n")
    check_slides(text)


def check_slides(text):
    for slide in slides_of(text):
        assert heading(slide), slide
        assert len(NOTES.findall(slide)) == 1, f"{heading(slide)}: notes, once, with their minutes"
        assert slide.rstrip().endswith(":::"), f"{heading(slide)}: the notes stand last"
        assert not re.search(r"Excursion|\bcheck\(\"|not attempted", slide), heading(slide)


@EACH
def test_claims_are_in_and_the_end_leads_on(lesson):
    text = deck(lesson)
    source = (ROOT / "notebooks" / "source" / f"{lesson.file}.md").read_text("utf-8")
    claims = source.partition("\n## What people get wrong")[2].partition("\n## ")[0]
    said = re.findall(r'^\*\*["“](.+?)["”]\*\*', claims, re.MULTILINE)
    assert [one.strip("“”") for one in map(heading, slides_of(text)) if one.startswith("“")] == said
    later = READY[READY.index(lesson) + 1 :]
    assert f"]({later[0].file if later else 'index'}.md)" in slides_of(text)[-1]
    assert "## What you know now\n" in text


# How it is made.


def test_a_name_finds_one_thing_or_says_what_it_found():
    assert named.resolved("06_self_attention", "one_sentence") == ("06", "one_sentence")
    assert named.resolved("lecture", "01:households") == ("01", "households")
    with pytest.raises(named.NotFoundError, match=r"nothing named 'no_such'\. Its names are: .*one_sentence"):
        named.picture("06", "no_such")
    with pytest.raises(
        named.NotFoundError, match=r"nothing named 'one_sentence'\. Lesson 06 has: write 06:one_sentence"
    ):
        named.picture("12", "one_sentence")
    with pytest.raises(named.NotFoundError, match="There is no lesson 66"):
        named.picture("66", "one_sentence")
    with pytest.raises(named.NotFoundError, match="nothing named 'one_sentense'"):
        named.picture("06", "one_sentense")
    with pytest.raises(named.NotFoundError, match="prints no row that begins 'nothing'"):
        named.printed("06", "claim-3", ["nothing"])
    with pytest.raises(named.NotFoundError, match=r"no slider 'none'\. It has: bank"):
        named.slider("06", "none")


def test_rows_of_a_table_are_picked_with_its_head(monkeypatch):
    table = in_columns("run", {"new": ["84 %", "97 %"], "new colours": ["1 %", "2 %"], "guessing": "4 %"})
    output = new_output("display_data", data={"text/plain": repr(table), "text/html": table._repr_html_()})
    monkeypatch.setattr(named, "cell", lambda number, name: new_code_cell("x", outputs=[output]))
    whole = table._repr_html_().splitlines()
    assert named.printed("06", "x").splitlines() == whole
    assert named.printed("06", "x", ["guessing", "new"]).splitlines() == [*whole[:2], whole[4], whole[2], whole[-1]]
    with pytest.raises(
        named.NotFoundError, match=r"prints no row that begins 'run 0'\. Its rows: new, new colours, guessing"
    ):
        named.printed("06", "x", ["run 0"])


def test_a_row_is_found_by_its_whole_name_first():
    rows = named.printed("08", "claim-30", ["pairs"]).splitlines()
    assert len(rows) == 1
    assert rows[0].split() == ["pairs", "36"]
    assert named.printed("14", 'print("greedy:"', ["greedy"]).split() == ["greedy", "7"]


# What is seen.


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if "sphinx-revealjs" not in {found.metadata["Name"] for found in distributions()}:
        pytest.skip("reveal.js is not installed: make slides, once, installs it")
    folder = tmp_path_factory.mktemp("decks")
    command = [sys.executable, "-m", "publish", "slides", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_name_is_found_and_every_deck_is_linked(built):
    text = (built / "index.html").read_text("utf-8")
    for path in SLIDES.glob("*.md"):
        if path.stem not in ("README", "index"):
            assert f'href="{path.stem}.html"' in text
            assert (built / f"{path.stem}.html").exists()


def test_nothing_points_outside(built):
    for page in built.glob("*.html"):
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.read_text("utf-8")), page.name


@pytest.mark.parametrize("name", [*(lesson.file for lesson in READY), "lecture", "index"])
def test_every_slide_is_looked_at(built, browser, name):
    page = browser.new_page()
    page.set_viewport_size({"width": 1280, "height": 720})
    said, asked = [], []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto((built / f"{name}.html").as_uri())
    page.wait_for_function("window.deckReady === true")
    for across, down in page.evaluate(PLACES):
        page.evaluate(f"Reveal.slide({across}, {down}, 99)")
        heading = page.evaluate("Reveal.getCurrentSlide().querySelector('h1, h2, h3')?.textContent.trim()")
        assert page.evaluate(MEASURED) == [], f"slide {across + 1}, {heading}"
        if page.locator("section.present section.present iframe").count():
            assert_it_moves(page)
    page.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def assert_it_moves(page):
    """The figure that moves is all in view, and the keyboard moves it."""
    frame = page.frame_locator("section.present section.present iframe")
    picture, control = frame.locator("img"), frame.locator("input, select").first
    before = picture.get_attribute("src")
    box, edge = picture.bounding_box(), page.locator("section.present section.present iframe").bounding_box()
    assert edge["y"] < box["y"]
    assert box["y"] + box["height"] <= edge["y"] + edge["height"] + 1
    control.focus()
    for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        if picture.get_attribute("src") != before:
            return
    raise AssertionError("no key moves it")


def test_the_figures_that_move_are_in_the_decks():
    shown = [
        f"{path.stem[:2]}_{name}"
        for path in sorted(SLIDES.glob("[0-9]*.md"))
        for name in re.findall(r"\{lesson-slider\} (\w+)", path.read_text("utf-8"))
    ]
    assert shown == sorted(page.stem for page in (ROOT / "figures" / "moving").glob("*.html"))


def test_the_keys_work(built, browser):
    page = browser.new_page(color_scheme="light")
    page.goto((built / "02_from_kernels_to_attention.html").as_uri())
    page.wait_for_function("window.deckReady === true")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.keyboard.press("d")
    dark = page.evaluate(paper)
    assert light == "rgb(255, 255, 255)" != dark
    assert "invert" in page.evaluate("getComputedStyle(document.querySelector('figure img')).filter"), "dark is dark"
    page.goto((built / "02_from_kernels_to_attention.html").as_uri() + "?theme=light")
    page.wait_for_function("window.deckReady === true")
    assert page.evaluate(paper) == light
    hidden = "Reveal.getCurrentSlide().querySelectorAll('.fragment:not(.visible)').length"
    page.evaluate("Reveal.slide(1, 0)")
    before = page.evaluate(hidden)
    page.keyboard.press("Space")
    assert page.evaluate(hidden) == before - 1
    page.close()


# Of each page of a printed deck: what stands outside of its edges; a slider without its page counts as well.
OUTSIDE = """[...document.querySelectorAll(".pdf-page")].flatMap((page) => {
  const edge = page.getBoundingClientRect();
  return [...page.querySelectorAll(":is(h1, h2, p, pre, table, img, iframe):not(aside *)")].filter((part) => {
    const box = part.getBoundingClientRect();
    return box.left < edge.left + 20 || box.right > edge.right - 20 || box.bottom > edge.bottom + 1 ||
      (part.matches("iframe") && !part.src);
  }).map((part) => `${page.querySelector("h1, h2").textContent}: ${part.outerHTML.slice(0, 80)}`);
})"""


@pytest.mark.parametrize("name", ["16_gpt", "20_long_sequences"])
def test_on_paper_each_slide_has_a_page_and_keeps_to_it(built, browser, name):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto((built / f"{name}.html").as_uri() + "?print-pdf&theme=light")
    page.wait_for_function("window.deckReady === true")
    assert page.locator(".pdf-page").count() == len(slides_of((SLIDES / f"{name}.md").read_text("utf-8")))
    assert page.evaluate(OUTSIDE) == []
    page.close()


def test_what_answers_a_heading_comes_a_step_later(built, browser):
    page = browser.new_page()
    page.goto((built / "12_training_a_translator.html").as_uri())
    page.wait_for_function("window.deckReady === true")
    for heading, later in (("How near to its floor?", True), ("Will it get 17?", True), ("Judge whole", False)):
        [first] = page.query_selector_all(f"section:has(> h2:text('{heading}')) > h2 + *")
        assert ("fragment" in (first.get_attribute("class") or "")) is later
    page.close()
