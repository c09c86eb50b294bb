"""What tests share: the same examples every time, a small course of three lessons and the book, each built once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

from publish.lessons import build, pages
from publish.lessons.lessons import HEADER, Course, LessonFiles
from publish.printing import FLAGS, chromium

# A plugin for a pytest of its own. Read for its examples here, it would import the package anew under all other tests.
collect_ignore = ["shapes.py"]

# A test that fails only now and then, or only on a slow machine, teaches people to run it again.
settings.register_profile("course", deadline=None, derandomize=True, database=None)
settings.load_profile("course")

STANDIN = """
import io

from matplotlib.figure import Figure


class Picture:
    def __init__(self, ys, alt):
        self.ys, self.alt = ys, alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        figure, file = Figure(figsize=(2, 1), dpi=50), io.BytesIO()
        figure.add_axes((0, 0, 1, 1)).plot(self.ys, linewidth=5)
        figure.savefig(file, format="png")
        size = {"width": 100, "height": 50}
        return {"image/png": file.getvalue(), "text/plain": self.alt}, {"image/png": size}
"""

FIRST = """\
# 1 · A line

What does it look like?

```{code-cell}
from standin import Picture
x = 2
x + 1
```

## Look

```{code-cell}
:figure: line

Picture([1, 3, 2], "A line that rises to 3 and falls to 2")
```

```{code-cell}
:tags: [live, nbval-ignore-output]

from ipywidgets import interact
interact(lambda a: print(a), a=(0, 3));
```

Prose with $x^2$ that is only for reading.

+++

A paragraph in a cell of its own.

```{code-cell}
:tags: [raises-exception]

[][1]
```

```{code-cell}
print("one"); print("two")
```
"""

SECOND = """\
# 2 · A falling line

```{code-cell}
:figure: fall

from standin import Picture
Picture([3, 1], "A line that falls to 1")
```
"""

THIRD = """\
# 3 · A sum

```{code-cell}
1 + 1
```
"""


# Without a network Chromium loads pictures from 8,000 pixels below the window on, instead of 1,250.
# The second half is Playwright's own, which the first would replace: there is a mouse.
AS_ONLINE = (
    "--blink-settings=lazyLoadingImageMarginPxOffline=1250,"
    "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
)


@pytest.fixture(scope="session")
def built_course(tmp_path_factory) -> Course:
    """The small course, built. Not to be written to: see `course`."""
    root = tmp_path_factory.mktemp("built")
    (root / "notebooks" / "source").mkdir(parents=True)
    (root / "notebooks" / "standin.py").write_text(STANDIN)
    for name, text in {"01_line": FIRST, "02_fall": SECOND, "03_sum": THIRD}.items():
        (root / "notebooks" / "source" / f"{name}.md").write_text(HEADER + text)
    made = Course(root)
    assert build.main([], made) == 0
    return made


@pytest.fixture
def course(built_course, tmp_path, monkeypatch) -> Course:
    """A copy of the small course, built, to be played with, without what attnlib says about itself."""
    for page in ("CLAIMS", "SYMBOLS"):
        monkeypatch.delitem(pages.PAGES, f"notebooks/{page}.md")
    return Course(Path(shutil.copytree(built_course.root, tmp_path / "course")))


@pytest.fixture
def line(course) -> LessonFiles:
    """Its first lesson."""
    return course.lessons()[0]


@pytest.fixture(scope="module")
def browser():
    """Chromium; where there is none, what needs it is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if chromium() is None:
        pytest.skip("no Chromium: install it (Debian: apt install chromium) or set CHROMIUM to its path")
    with playwright.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium(), args=[*FLAGS, AS_ONLINE])
        yield opened
        opened.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What makes the book comes first: later both processes would meet at it, and one wait for the other."""
    items.sort(key=lambda item: item.path.name != "test_book.py")


@pytest.fixture(scope="session")
def book(tmp_path_factory) -> Path:
    """The pages of the book, made once for all processes that test, without a warning."""
    pytest.importorskip("myst_nb", reason="what makes the book is not installed: make book, or pip install -e .[book]")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # whose folder lies in the one of all
        shared = shared.parent
    made = shared / "book"
    with FileLock(shared / "book.lock"):
        if not made.exists():
            command = [sys.executable, "-m", "publish", "book", str(made)]
            done = subprocess.run(command, cwd=build.COURSE.root, capture_output=True, text=True)
            (made / "said").write_text(f"{done.returncode}\n{done.stdout}{done.stderr}")
    code, _, said = (made / "said").read_text().partition("\n")
    assert code == "0", f"make book fails:\n{said}"
    return made / "html"
