"""Descendants of the Transformer, each assembled from `attnlib.nn` in one file, and equal to Hugging Face's.

Each has a configuration, `from_huggingface` for a module in memory, and `from_pretrained` for a folder of published
weights. What is shipped with the course is read by `pretrained`.
"""

from attnlib.models.configs import GPTConfig
from attnlib.models.gpt import GPT

__all__ = ["GPT", "GPTConfig"]
