"""What computes in the reader's browser: scripts of `book/live`, the weights that they read, and where they stand."""

import json
from base64 import b64encode

from docutils import nodes
from sphinx.application import Sphinx

from publish.notebooks import ROOT
from publish.site import raw

MODEL = ROOT / "attnlib" / "models" / "shipped" / "technical-english"

#: The scripts of a page, in their order.
SCRIPTS = {
    "book/cut_a_head": ("gpt.js", "bpe.js", "maps.js", "heads.js"),
    "notebooks/06_self_attention": ("gpt.js", "maps.js", "words.js"),
}


def fetch(app: Sphinx, page: str, _template: str, _context: dict, _doctree: object) -> None:
    """Let a page fetch what it computes with."""
    for script in SCRIPTS.get(page, ()):
        app.add_js_file(script, loading_method="defer")
    if page in SCRIPTS:
        app.add_css_file("live.css")


def open_lesson(app: Sphinx, doctree: nodes.document) -> None:
    """Put four words by hand before the first section of lesson 06; its script fills the place."""
    if app.env.docname == "notebooks/06_self_attention":
        section = next(iter(doctree.findall(nodes.section)))
        place = section.first_child_matching_class(nodes.section)
        section.insert(place, raw('<div id="four-words" class="live"></div>'))


def shipped() -> str:
    """The model as a script, which a page that was opened from a file may load too."""
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text("utf-8"))
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in tokenizer["model"]["merges"]]
    special = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    parts = {
        "config": json.loads((MODEL / "config.json").read_text("utf-8")),
        "tokenizer": {"vocab": tokenizer["model"]["vocab"], "merges": merges, "special": special},
        "weights": b64encode((MODEL / "model.safetensors").read_bytes()).decode(),
    }
    return f"const SHIPPED = {json.dumps(parts, separators=(',', ':'))};\n"


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the model beside the scripts."""
    if error is None and app.builder.format == "html":
        (app.outdir / "_static" / "weights.js").write_text(shipped(), encoding="utf-8")
