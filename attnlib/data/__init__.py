"""Data: real sets here; `functions`, `prompts`, `tasks`, `text` and the translators' languages need torch, by name.

They know arrays and seeds, and no model.
"""

from attnlib.data.datasets import digits, engel
from attnlib.data.interface_texts import interface_texts
from attnlib.data.reactions import reactions

__all__ = ["digits", "engel", "interface_texts", "reactions"]
