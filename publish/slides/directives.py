"""What a deck's Markdown may say beyond MyST: things of the lesson by name, and what the lecturer says.

::

    ```{lesson-figure} one_sentence
    :steps: left 0.2 0.5
    ```
"""

from __future__ import annotations

import base64
import html
import shutil
from pathlib import Path
from typing import ClassVar

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

    def taken(self, number: str, name: str) -> nodes.Node:
        """What stands on the slide, from this lesson."""
        raise NotImplementedError

    def parsed(self, text: str) -> nodes.Node:
        """A table in Markdown."""
        box = nodes.container(classes=["table"])
        self.state.nested_parse(StringList(text.splitlines()), self.content_offset, box)
        return box

    def beside(self, path: Path) -> Path:
        """Where a file that belongs to the decks is written."""
        whole = Path(self.env.app.outdir) / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        return whole


class Figure(Taken):
    """A figure, written beside the deck, uncovered in steps if it says so."""

    option_spec: ClassVar = {"steps": unchanged_required}

    def taken(self, number: str, name: str) -> nodes.Node:  # noqa: D102
        picture, alt = named.picture(number, name)
        path = Path("figures") / f"{number}_{name}.png"
        self.beside(path).write_bytes(base64.b64decode(picture))
        steps = self.options.get("steps", "")
        later = '<span class="fragment step"></span>' * (len(steps.split()) - 1)
        image = f'<img src="{path.as_posix()}" alt="{html.escape(alt)}" data-steps="{steps}">'
        return raw(f"<figure>{image}{later}</figure>")


class Output(Taken):
    """What a cell printed, or the rows that are named; a table where the columns are named."""

    option_spec: ClassVar = {"columns": unchanged_required}

    def taken(self, number: str, name: str) -> nodes.Node:  # noqa: D102
        if page := named.drawn(number, name):
            return raw(f'<div class="drawn">{page}</div>')
        text = named.printed(number, name, list(self.content))
        if "columns" in self.options:
            text = named.table(text, [column.strip() for column in self.options["columns"].split(",")])
        if text.startswith("|"):
            return self.parsed(text)
        return raw(f'<pre class="output">{html.escape(short(name, text, MAX_LINES))}</pre>')


class Table(Taken):
    """A table of the lesson's prose, by a part of it."""

    def taken(self, number: str, name: str) -> nodes.Node:  # noqa: D102
        return self.parsed(named.written_table(number, name, list(self.content)))


class Formula(Taken):
    """A formula, by a part of it."""

    def taken(self, number: str, name: str) -> nodes.Node:  # noqa: D102
        tex = named.formula(number, name)
        return nodes.math_block(tex, tex, nowrap=False, number=None)


class Code(Taken):
    """The code of a cell."""

    def taken(self, number: str, name: str) -> nodes.Node:  # noqa: D102
        text = short(name, named.code(number, name), MAX_CODE)
        return raw(highlight(text, PythonLexer(), HtmlFormatter(cssclass="code")))


class Slider(Taken):
    """A figure that moves; its page is copied beside the deck."""

    def taken(self, number: str, name: str) -> nodes.Node:  # noqa: D102
        page = named.slider(number, name)
        path = Path("moving") / page.name
        shutil.copyfile(page, self.beside(path))
        return raw(f'<iframe data-src="{path.as_posix()}?fit" title="A figure that moves"></iframe>')


def short(name: str, text: str, most: int) -> str:
    """A text that a slide can hold."""
    if (lines := len(text.splitlines())) > most:
        raise named.NotFoundError(f"{name!r} has {lines} lines: a slide holds {most}. Name those that matter.")
    return text


class Notes(SphinxDirective):
    """What the lecturer says, after the minutes that it takes: ``:::{notes} 2 min``."""

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        """An aside that the speaker's view shows."""
        box = nodes.container()
        text = [f"*{' '.join(self.arguments)}*", "", *self.content]
        self.state.nested_parse(StringList(text), self.content_offset, box)
        return [raw('<aside class="notes">'), *box.children, raw("</aside>")]


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    for directive in (Figure, Output, Table, Formula, Code, Slider):
        app.add_directive(f"lesson-{directive.__name__.lower()}", directive)
    app.add_directive("notes", Notes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
