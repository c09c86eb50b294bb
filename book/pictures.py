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
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ()) if "data" in output]
    return {
        hashlib.sha256(base64.b64decode(output["data"]["image/png"])).hexdigest(): output["metadata"]["image/png"][
            "alt"
        ]
        for output in outputs
        if "alt" in output["metadata"].get("image/png", {})
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-read", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
