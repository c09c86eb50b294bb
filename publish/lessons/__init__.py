"""Source -> notebook -> pages: a lesson's two written forms, its rules, numbers and minutes, and what is made of them.

``build.py`` is the way in; ``sides.py`` decides what was edited and what follows. Nothing here is needed by the book.
"""
