"""The book: notebooks and pages as they lie in the repository, with the reference; ``make.py`` is the way in."""
