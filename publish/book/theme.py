"""What the theme leaves undone: names for its switches, and a script that draws nothing."""

from sphinx.application import Sphinx


def label(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Say to those who hear a page what the arrow beside an entry of the list of pages does."""
    made = context["generate_toctree_html"]

    def labelled(*args: object, **options: object) -> object:
        tree = made(*args, **options)
        for arrow in getattr(tree, "select", lambda _: [])("summary"):
            above = arrow.find_parent("li").find("a")
            arrow["aria-label"] = f"Pages of {above.get_text() if above else 'this part'}"
        return tree

    context["generate_toctree_html"] = labelled


def empty(app: Sphinx, error: Exception | None) -> None:
    """Empty the script that draws icons, which the theme has as a font too; pages go on asking for it."""
    if error is None and app.builder.format == "html":
        (app.outdir / "_static" / "scripts" / "fontawesome.js").write_text("")
