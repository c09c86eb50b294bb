"""Write attnlib/models/shipped/rxnmapper: the model of the package rxnmapper, as our `BERT` reads it.

``python tools/convert_rxnmapper.py FOLDER``, where FOLDER holds ``rxnmapper`` and its ``.dist-info``: where pip has
installed rxnmapper 0.4.3, or its unpacked wheel. Nothing of rxnmapper is run. The card, README.md, is written by hand.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing

from attnlib.data.molecules import TOKEN
from attnlib.models import BERT
from attnlib.training.weights import write

TARGET = Path(__file__).resolve().parents[1] / "attnlib/models/shipped/rxnmapper"
MODEL = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
SETTINGS = [
    "architectures",
    "model_type",
    "vocab_size",
    "embedding_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_hidden_groups",
    "inner_group_num",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "initializer_range",
    "pad_token_id",
]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def main() -> None:
    """Convert, and open the result once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder that holds rxnmapper and its .dist-info")
    folder = parser.parse_args().folder
    source = folder / MODEL
    licences = sorted(folder.glob("rxnmapper-*.dist-info/licenses/LICENSE"))
    if not source.is_dir() or len(licences) != 1:
        parser.error(f"folder must hold {MODEL} and rxnmapper-*.dist-info/licenses/LICENSE; got {folder}")
    TARGET.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(licences[0], TARGET / "LICENSE")
    shutil.copyfile(source / "vocab.txt", TARGET / "vocab.txt")
    settings = json.loads((source / "config.json").read_text(encoding="utf-8"))
    cleaned = {name: settings[name] for name in SETTINGS}
    (TARGET / "config.json").write_text(json.dumps(cleaned, indent=1) + "\n", encoding="utf-8")
    write(TARGET / "model.safetensors", weights(source / "pytorch_model.bin"), {"format": "pt"})
    tokenizer(TARGET / "vocab.txt").save(str(TARGET / "tokenizer.json"))
    model = BERT.from_pretrained(TARGET)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters in {TARGET}")


def weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors in float32, each once. Raises ``ValueError`` where what should be a copy is none."""
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    copies = {
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    }
    for copy, original in copies.items():
        if not torch.equal(tensors[copy], tensors[original]):
            raise ValueError(f"{copy} must equal {original}; it does not")
    return {name: tensor.float().contiguous() for name, tensor in tensors.items() if name not in copies}


def tokenizer(vocabulary: Path) -> Tokenizer:
    """Tokens by their regular expression, whatever lies between them dropped, as `re.findall` does."""
    words = vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    numbers = {word: i for i, word in enumerate(words)}
    made = Tokenizer(WordLevel(numbers, unk_token="[UNK]"))
    made.pre_tokenizer = Split(Regex(TOKEN), behavior="removed", invert=True)
    ends = [(word, numbers[word]) for word in ("[CLS]", "[SEP]")]
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.add_special_tokens([word for word in SPECIAL if word in numbers])
    return made


if __name__ == "__main__":
    main()
