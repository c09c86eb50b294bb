"""The decks: Markdown files of `slides`, with what they take from the lessons by name; ``make.py`` is the way in."""
