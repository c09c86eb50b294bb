"""Decks for speaking, made from the committed lessons: what a cell gives, what is shown of it, how it is set.

`prose` cuts Markdown into paragraphs and sentences, `pieces` reads a notebook, `choosing` says what is shown,
`packing` fills slides, `pages` writes HTML and `pdf` prints it. Uses `building`, the notebooks' builder.
"""
