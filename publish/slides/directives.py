"""What a deck's Markdown may say beyond MyST: things of the lesson by name, and what the lecturer says.

::

    ```{lesson-figure} one_sentence
    :steps: left 0.2 0.5
    ```
"""

import base64
import html
import shutil
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst.directives import unchanged_required
from docutils.statemachine import StringList
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from publish.site import raw
from publish.slides import named

MAX_LINES = 5
MAX_CODE = 8


class Taken(SphinxDirective):
    """Something of the lesson, by its name; an unknown name is an error at its line."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """What stands on the slide."""
        try:
            return [self.taken(*named.resolved(self.env.docname, self.arguments[0]))]
        except named.NotFoundError as error:
            raise self.error(str(error)) from error

    def beside(self, path: Path) -> Path:
        """Where a file that belongs to the decks is written."""
        whole = Path(self.env.app.outdir) / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        return whole


def figure(slide: Taken, number: str, name: str) -> nodes.Node:
    """A figure, written beside the deck, uncovered in steps if it says so."""
    picture, alt = named.picture(number, name)
    path = Path("figures") / f"{number}_{name}.png"
    slide.beside(path).write_bytes(base64.b64decode(picture))
    steps = slide.options.get("steps", "")
    later = '<span class="fragment step"></span>' * (len(steps.split()) - 1)
    return raw(f'<figure><img src="{path.as_posix()}" alt="{html.escape(alt)}" data-steps="{steps}">{later}</figure>')


def output(slide: Taken, number: str, name: str) -> nodes.Node:
    """What a cell shows or printed, or the rows of it that are named."""
    text = named.printed(number, name, list(slide.content))
    if text.startswith("<"):
        return raw(f'<div class="drawn">{text}</div>')
    if text.startswith("|"):
        return _parsed(slide, text)
    return raw(f'<pre class="output">{html.escape(_short(name, text, MAX_LINES))}</pre>')


def table(slide: Taken, number: str, name: str) -> nodes.Node:
    """A table of the lesson's prose, by a part of it."""
    return _parsed(slide, named.written_table(number, name, list(slide.content)))


def formula(_slide: Taken, number: str, name: str) -> nodes.Node:
    """A formula, by a part of it."""
    tex = named.formula(number, name)
    return nodes.math_block(tex, tex, nowrap=False, number=None)


def code(_slide: Taken, number: str, name: str) -> nodes.Node:
    """The code of a cell."""
    text = _short(name, named.code(number, name), MAX_CODE)
    return raw(highlight(text, PythonLexer(), HtmlFormatter(cssclass="code")))


def slider(slide: Taken, number: str, name: str) -> nodes.Node:
    """A figure that moves; its page is copied beside the deck."""
    page = named.slider(number, name)
    path = Path("moving") / page.name
    shutil.copyfile(page, slide.beside(path))
    return raw(f'<iframe data-src="{path.as_posix()}?fit" title="A figure that moves"></iframe>')


def _parsed(slide: Taken, text: str) -> nodes.Node:
    box = nodes.container(classes=["table"])
    slide.state.nested_parse(StringList(text.splitlines()), slide.content_offset, box)
    return box


def _short(name: str, text: str, most: int) -> str:
    if (lines := len(text.splitlines())) > most:
        raise named.NotFoundError(f"{name!r} has {lines} lines: a slide holds {most}. Name those that matter.")
    return text


class Notes(SphinxDirective):
    """What the lecturer says, after the minutes that it takes: ``:::{notes} 2 min``."""

    optional_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        """An aside that the speaker's view shows."""
        if len(self.arguments) != 2:
            raise self.error("Notes say how many minutes they take: `:::{notes} 2 min`.")
        box = nodes.container()
        text = [f"*{' '.join(self.arguments)}*", "", *self.content]
        self.state.nested_parse(StringList(text), self.content_offset, box)
        return [raw('<aside class="notes">'), *box.children, raw("</aside>")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Teach Sphinx the directives, and which option each of them knows."""
    for taken, *options in ((figure, "steps"), (output,), (table,), (formula,), (code,), (slider,)):
        known = {"taken": taken, "option_spec": dict.fromkeys(options, unchanged_required)}
        app.add_directive(f"lesson-{taken.__name__}", type(taken.__name__, (Taken,), known))
    app.add_directive("notes", Notes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
