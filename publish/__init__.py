"""What is made from what people write: lessons, the book, the decks. The front door is ``python -m publish``.

`lessons` turns sources into notebooks and the pages drawn from them, `book` and `slides` lay notebooks out as web
pages. These two may use what lies beside this file, and nothing of `lessons`, which needs packages that they lack.
"""
