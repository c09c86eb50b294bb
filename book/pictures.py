"""Pictures of lessons: with the words that their notebooks have for those who cannot see them, fetched when near."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def describe(app: Sphinx, doctree: nodes.document) -> None:
    """Put a notebook's alt texts on its pictures: myst-nb names a picture's file after its bytes, and so do we."""
    path = Path(app.env.doc2path(app.env.docname))
    words = alt_texts(json.loads(path.read_text("utf-8"))) if path.suffix == ".ipynb" else {}
    for image in doctree.findall(nodes.image):
        image["alt"] = words.get(Path(image["uri"]).stem) or image.get("alt", "")
        image["loading"] = "lazy"


def alt_texts(notebook: dict) -> dict[str, str]:
    """The alt text of each picture of a notebook, by the SHA-256 of its bytes."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    pictures = [(output["data"]["image/png"], output["metadata"]) for output in outputs if _shows(output)]
    return {
        hashlib.sha256(base64.b64decode(png)).hexdigest(): metadata["image/png"]["alt"]
        for png, metadata in pictures
        if "alt" in metadata.get("image/png", {})
    }


def _shows(output: dict) -> bool:
    return "image/png" in output.get("data", {})


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-read", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
