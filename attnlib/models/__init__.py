"""Descendants of the Transformer, each assembled from `attnlib.nn` in one file, and equal to Hugging Face's.

Each has a configuration, `from_huggingface` for a module in memory, and `from_pretrained` for a folder of published
weights, whose tokenizer `tokenizer_of` reads. What is shipped with the course is read by `pretrained`, the detector of
scenes by `trained_detr`. (`InContext` is nobody's but the course's.)
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.models.bert import BERT
from attnlib.models.clip import CLIP, contrastive_loss
from attnlib.models.configs import BERTConfig, GPTConfig, T5Config
from attnlib.models.detr import DETR
from attnlib.models.gpt import GPT
from attnlib.models.in_context import InContext
from attnlib.models.loading import tokenizer_of
from attnlib.models.picture_configs import CLIPConfig, DETRConfig, ViTConfig
from attnlib.models.shipping import folder_of, pretrained
from attnlib.models.t5 import T5
from attnlib.models.vit import ViT

__all__ = [
    "BERT",
    "CLIP",
    "DETR",
    "GPT",
    "T5",
    "BERTConfig",
    "CLIPConfig",
    "DETRConfig",
    "GPTConfig",
    "InContext",
    "T5Config",
    "ViT",
    "ViTConfig",
    "contrastive_loss",
    "folder_of",
    "pretrained",
    "tokenizer_of",
]
