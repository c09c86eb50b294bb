"""Open every lesson in JupyterLab as `make lab` does, in a real browser, and run all cells of the quick ones."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from nbformat import write

from publish.lessons.build import COURSE
from publish.lessons.cells import Cell
from publish.lessons.lessons import FOLDED, LessonError, read_notebook, unrun_notebook
from publish.lessons.running import SECONDS_A_CELL

LESSONS = sorted(COURSE.notebooks.glob("[0-9][0-9]_*.ipynb"))
# nbval runs every cell of every lesson; here, all of these few, and the others only if asked for.
RUN = {"00", "03"}
CONTROLS = "[role=slider]"  # in JupyterLab the arrow keys never reach a <select>
PATIENCE = 120  # seconds for what takes two on an idle machine: a limit, not an expectation


def until(ready, what, *, seconds=PATIENCE, page=None):
    """Wait until ``ready()`` gives something, and give it back; a page goes on hearing its events."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := ready():
            return found
        page.wait_for_timeout(200) if page else time.sleep(0.2)
    raise AssertionError(f"waited {seconds} s for {what}")


class Lab:
    """A JupyterLab server over a copy of the notebooks."""

    def __init__(self, root):
        self.root, self.mine = root, root / "my_lessons"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ["--no-browser", f"--port={self.port}", "--ServerApp.port_retries=0"]
        options += ["--IdentityProvider.token=secret"]
        # As in the Makefile, but for the options that a reader might give in LAB_ARGS.
        command = [sys.executable, "-m", "jupyterlab", "--config=notebooks/lab/config.py", *options]
        self.log = (root / "lab.log").open("w")
        own = {f"JUPYTER_{name}_DIR": str(root / name) for name in ("CONFIG", "DATA", "RUNTIME")}
        own |= {f"JUPYTERLAB_{name}_DIR": str(root / name) for name in ("SETTINGS", "WORKSPACES")}
        self.server = subprocess.Popen(
            command, cwd=root, env=os.environ | own, stdout=self.log, stderr=subprocess.STDOUT
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, method="GET"):
        """Ask the server's API."""
        request = Request(f"{self.url}/api/{path}", method=method, headers={"Authorization": "token secret"})
        with urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or "null")

    def ready(self):
        """Whether the server answers."""
        assert self.server.poll() is None, f"JupyterLab stopped:\n{(self.root / 'lab.log').read_text()}"
        try:
            return self.ask("status")
        except (URLError, ConnectionError):
            return None

    def close(self):
        """Stop the server and its kernels."""
        self.server.terminate()
        try:
            self.server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.server.kill()
        self.log.close()


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    root = tmp_path_factory.mktemp("lab")
    kept_out = shutil.ignore_patterns("source", "*.bak", ".ipynb_checkpoints", "__pycache__")
    shutil.copytree(COURSE.notebooks, root / "notebooks", ignore=kept_out)
    for name in ("attnlib", "studies"):  # lessons read measurements and scores there
        (root / name).symlink_to(COURSE.notebooks.parent / name)
    server = Lab(root)
    try:
        until(server.ready, "JupyterLab to answer")
        yield server
    finally:
        server.close()


@contextmanager
def watched(browser):
    """A page that remembers what it asked for and what went wrong in it."""
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.set_default_timeout(PATIENCE * 1000)
    tab.asked, tab.errors = [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("websocket", lambda websocket: tab.asked.append(websocket.url))
    tab.on("pageerror", lambda error: tab.errors.append(str(error)))
    yield tab
    tab.close()


def end_kernels(lab):
    """End every kernel of the server."""
    for session in lab.ask("sessions"):
        lab.ask(f"sessions/{session['id']}", "DELETE")


@pytest.fixture
def page(lab, browser):
    """A page of a test's own."""
    with watched(browser) as tab:
        yield tab
    end_kernels(lab)


@pytest.fixture(scope="module")
def desk(lab, browser):
    """One page in which lesson after lesson is opened and closed, as in a reader's weeks."""
    with watched(browser) as tab:
        tab.goto(f"{lab.url}/?token=secret&reset")
        tab.get_by_text("| Idle").first.wait_for()
        assert LESSONS[0].name in tab.url  # it opens by itself
        all_is_well(lab, tab)
        yield tab
    end_kernels(lab)


def elsewhere(lab, urls):
    """The addresses that are not this machine's."""
    home = f"127.0.0.1:{lab.port}"
    parts = [(url, urlsplit(url)) for url in urls]
    return [url for url, part in parts if part.scheme not in ("data", "blob", "about") and part.netloc != home]


def unfold(path):
    """Unfold the excursions of a copy, in which nothing has been run yet."""
    notebook = read_notebook(path)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    for cell in notebook.cells:
        cell.metadata.pop(FOLDED, None)
    write(notebook, path)


def untagged_errors(code):
    """The errors among outputs that the lesson does not mean to show."""
    return [
        f"{cell.id}: {out.ename}: {out.evalue}"
        for cell in code
        for out in cell.outputs
        if out.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", ())
    ]


def saved(lab, page, path):
    """Save the notebook in the browser; its code cells once all were run or one has failed."""
    if any(session["kernel"]["execution_state"] != "idle" for session in lab.ask("sessions")):
        return None
    page.keyboard.press("ControlOrMeta+s")
    try:
        code = [cell for cell in read_notebook(path).cells if cell.cell_type == "code"]
    except LessonError:  # caught while it was being written
        return None
    finished = all(cell.execution_count for cell in code if cell.source.strip())
    return code if finished or untagged_errors(code) else None


def move_every_control(page):
    """Each control of each slider changes the picture below it, by the keyboard alone."""
    for _ in range(60):  # cells out of sight are drawn when they come near
        page.locator(".jp-WindowedPanel-outer").first.evaluate("panel => panel.scrollBy(0, 2000)")
        page.wait_for_timeout(50)
    for place in range(page.locator(".widget-interact").count()):
        box = page.locator(".widget-interact").nth(place)
        for number in range(box.locator(CONTROLS).count()):
            box.scroll_into_view_if_needed()
            control, before = box.locator(CONTROLS).nth(number), shown_by(box)
            control.focus()
            at, most = (control.get_attribute(f"aria-value{end}") for end in ("now", "max"))
            for _ in range(2):
                page.keyboard.press("ArrowLeft" if at == most else "ArrowRight")
            what = f"control {number + 1} of slider {place + 1} to change what is shown"
            after = until(lambda box=box, before=before: shown_by(box) != before and shown_by(box), what, page=page)
            assert "Traceback" not in after


def shown_by(box):
    """What a slider shows: the address of its picture, which holds it."""
    return box.locator(".jp-OutputArea").evaluate("area => (area.querySelector('img') ?? {}).src + area.innerText")


def all_is_well(lab, page):
    """Nothing went wrong, nothing asks for an answer, and nothing was fetched from another machine."""
    assert page.get_by_text("Error displaying widget").count() == 0
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".jp-toastContainer").get_by_text("news").count() == 0
    assert page.errors == []
    assert elsewhere(lab, page.asked) == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_opens_in_jupyterlab(lab, desk, path):
    desk.asked, desk.errors = [], []
    current = desk.locator(".lm-DockPanel-tabBar .lm-TabBar-tab.lm-mod-current")
    current.locator(".lm-TabBar-tabCloseIcon").click()  # the one before; at first lesson 00, which opens by itself
    desk.get_by_role("button", name="Discard").click()  # the version of Python, which JupyterLab has written into it
    end_kernels(lab)
    desk.locator(".jp-DirListing-itemText", has_text=path.name).dblclick()
    current.get_by_text(path.name).wait_for()
    desk.locator(".jp-Notebook .jp-Cell").first.wait_for()
    desk.locator(f'[title="Change kernel for {path.name}"]', has_text="| Idle").wait_for()
    all_is_well(lab, desk)


@pytest.mark.parametrize(
    "path", [p for p in LESSONS if p.name[:2] in RUN or "LAB_ALL" in os.environ], ids=lambda path: path.stem
)
def test_a_lesson_runs_in_jupyterlab(lab, page, path):
    copy = lab.mine / path.name
    unfold(copy)
    open_lesson(lab, page, path.name)
    assert path.name in page.url
    choose(page, "Run", "Run All Cells")
    limit = PATIENCE + SECONDS_A_CELL
    code = until(lambda: saved(lab, page, copy), f"{path.name} to run", seconds=limit, page=page)
    assert untagged_errors(code) == []
    move_every_control(page)
    all_is_well(lab, page)


def test_an_excursion_is_folded_until_it_is_asked_for(lab, page):
    texts = ("# A lesson", "## Excursion: aside", "Left out at first.", "## The rest")
    notebook = unrun_notebook([Cell("markdown", text) for text in texts], "99")
    write(notebook, lab.mine / "99_folded.ipynb")
    page.goto(f"{lab.url}/lab/tree/my_lessons/99_folded.ipynb?token=secret&reset")
    heading = page.locator(".jp-MarkdownCell", has_text="Excursion: aside")
    heading.wait_for()
    page.get_by_text("| Idle").first.wait_for()
    page.get_by_role("heading", name="The rest").wait_for()
    aside = page.locator(".jp-MarkdownOutput", has_text="Left out at first.")
    assert not aside.is_visible()
    heading.hover()
    heading.locator(".jp-collapseHeadingButton").click()
    aside.wait_for()
    assert page.errors == []


def open_lesson(lab, page, name):
    """Open a notebook of the reader's and wait until its kernel is there."""
    page.goto(f"{lab.url}/lab/tree/my_lessons/{name}?token=secret&reset")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.get_by_text("| Idle").first.wait_for()


def choose(page, *path):
    """Walk through a menu; the last of the path is clicked."""
    page.get_by_role("menuitem", name=path[0], exact=True).click()
    for submenu in path[1:]:
        entry = page.locator(".lm-Menu-itemLabel").get_by_text(submenu, exact=True).last
        entry.wait_for()
        entry.click()


def test_the_file_browser_shows_lessons_and_no_machinery(lab, page):
    open_lesson(lab, page, "00_start_here.ipynb")
    listed = page.locator(".jp-DirListing-item .jp-DirListing-itemText")
    listed.first.wait_for()
    names = [name.strip() for name in listed.all_inner_texts()]
    assert names[: len(LESSONS)] == [path.name for path in LESSONS]
    assert not {"attnlib", "notebooks", "source", "publish", "lab"} & set(names)


def test_a_link_leads_from_lesson_to_lesson(lab, page):
    open_lesson(lab, page, "00_start_here.ipynb")
    link = page.get_by_role("link", name="01 · What will the next household spend on food?").last
    link.scroll_into_view_if_needed()
    link.click()
    page.locator(".lm-TabBar-tab.lm-mod-current", has_text="01_nadaraya_watson.ipynb").first.wait_for()
    assert page.errors == []


def test_a_wrong_answer_is_told_what_is_wrong_and_the_right_one_counts(lab, page):
    answers = [
        'from attnlib import check\ncheck("00.1", lambda weights, values: (weights * values).mean())',
        'check("00.1", lambda weights, values: (weights * values).sum() / weights.sum())',
        "def half_written(weights, values):\n    return (weights *",
        'print("goes on")',
    ]
    write(unrun_notebook([Cell("code", answer) for answer in answers], "98"), lab.mine / "98_answers.ipynb")
    open_lesson(lab, page, "98_answers.ipynb")
    said = []
    for place in range(len(answers)):
        cell = page.locator(".jp-CodeCell").nth(place)
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        output = cell.locator(".jp-OutputArea-output").first
        output.wait_for()
        said.append(output.inner_text())
    assert "00.1" in said[0]
    assert "solved" not in said[0]
    assert "right" in said[1].lower()
    assert "SyntaxError" in said[2]
    assert said[3].strip() == "goes on"


def test_a_figure_can_be_read_in_the_dark_theme(lab, page):
    name = "01_nadaraya_watson.ipynb"
    shutil.copy(COURSE.notebooks / name, lab.mine / name)  # with its figures
    open_lesson(lab, page, name)
    choose(page, "Settings", "Theme", "JupyterLab Dark")
    page.locator('body[data-jp-theme-light="false"]').wait_for(state="attached")
    picture = page.locator(".jp-OutputArea-output img").first
    picture.scroll_into_view_if_needed()
    # Ink is dark: the picture brings its own white page, whatever the theme's is.
    corner = picture.evaluate(
        """img => { const canvas = document.createElement('canvas'); canvas.width = canvas.height = 1;
        const context = canvas.getContext('2d'); context.drawImage(img, 0, 0);
        return Array.from(context.getImageData(0, 0, 1, 1).data) }"""
    )
    assert corner == [255, 255, 255, 255]
    assert page.errors == []
