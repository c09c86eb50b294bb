"""Weights that others have published, put into a model of ours: all of them, or a clear word and none."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from attnlib._base.checks import check_folder
from attnlib._base.renamed import say_renamed
from attnlib.training.weights import put_weights, read, weights_of, write

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Blueprint", "FromHuggingFace", "Part", "open_tokenizer", "tokenizer_of"]

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"


class Part(NamedTuple):
    """Of which published tensors a weight of ours is made: one below the other, each ``transposed`` first or not."""

    names: tuple[str, ...]
    transposed: bool = False

    def joined(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The weight."""
        found = [self.turned(tensors[name]) for name in self.names]
        return found[0] if len(found) == 1 else torch.cat(found)

    def turned(self, tensor: Tensor) -> Tensor:
        """From their convention to ours, or back; a bias is the same in both."""
        return tensor.T if self.transposed and tensor.ndim == 2 else tensor


@dataclass(frozen=True)
class Blueprint:
    """How a published model becomes one of ours.

    ``config`` is our configuration, ``parts`` says for each weight of ours what it is made of. ``prefix`` stands
    before the published names, or not, as in files of different age. ``copies`` gives, for how a name may end, the
    name that says the same, or None for what is no weight. ``renamed`` are old spellings and the new. What begins
    with ``outside``, if that is given, belongs to a part of theirs that is not taken over.
    """

    config: Any
    parts: dict[str, Part]
    prefix: str = ""
    copies: dict[str, str | None] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    outside: str = ""

    def named(self, tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
        """The tensors by the names that ``parts`` uses, and which copies are none."""
        found, copies, wrong = {}, {}, []
        for name, tensor in tensors.items():
            if self.outside and name.startswith(self.outside):
                continue
            short = name.removeprefix(self.prefix)
            for old, new in self.renamed.items():
                short = short.replace(old, new)
            end = next((end for end in self.copies if short.endswith(end)), None)
            (found if end is None else copies)[short] = tensor
            if end and self.copies[end]:
                wrong.append((short, self.copies[end]))
        wrong = [pair for pair in wrong if pair[1] in found and not torch.equal(copies[pair[0]], found[pair[1]])]
        return found, [f"{copy} must be as {original}, of which it is a copy here" for copy, original in wrong]


class FromHuggingFace:
    """A model that can take over the weights of Hugging Face's; ``architectures`` says of which, and how."""

    architectures: ClassVar[dict[str, Callable[[dict[str, Any], Collection[str]], Blueprint]]]
    published_settings: ClassVar[Callable[[Any], dict[str, Any]]]
    _folder: Path | None = None  # where it was read from, until version 2

    @classmethod
    def from_huggingface(cls, module: nn.Module) -> Self:
        """The same model with the weights of a module of `transformers`, in its dtype.

        Raises ``TypeError`` when it is none of the kind, ``ValueError`` for options that have no counterpart here.
        """
        settings = getattr(module, "config", None)
        if not isinstance(module, nn.Module) or not hasattr(settings, "to_dict"):
            raise TypeError(f"module must be a model of transformers; got {type(module).__name__}")
        tensors, dtype = module.state_dict(), next(module.parameters()).dtype
        blueprint = cls._blueprint(settings.to_dict(), tensors, f"module, a {type(module).__name__},")
        return cls._filled(blueprint, tensors, dtype, "module").train(module.training)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The model in ``folder``, as it is published, config.json and model.safetensors, in evaluation mode.

        Nothing is fetched. Weights become float32, whatever they were kept in. Its tokenizer is read by
        `attnlib.models.tokenizer_of`.

        Raises ``FileNotFoundError`` when the folder or a file is not there, ``ValueError`` when one is not what it
        should be: a tensor that is missing, of another shape, or not wanted is named, and nothing is loaded.
        """
        if isinstance(folder, str) and not Path(folder).exists():
            raise FileNotFoundError(
                f"folder must be there; there is no folder {folder}. Nothing is fetched: put {CONFIG} and {WEIGHTS} "
                f"of a published model into one, or give a model of transformers to {cls.__name__}.from_huggingface. "
                "What comes with attnlib is read by attnlib.models.pretrained"
            )
        folder = check_folder("folder", folder)
        for name, what in ((CONFIG, "say what the model is"), (WEIGHTS, "hold all weights in one safetensors file")):
            if not (folder / name).exists():
                raise FileNotFoundError(f"{folder / name} must {what}; there is none")
        try:
            settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{folder / CONFIG} must be JSON; {error}") from None
        tensors, _ = read(folder / WEIGHTS)
        blueprint = cls._blueprint(settings, tensors, str(folder / CONFIG))
        model = cls._filled(blueprint, tensors, torch.float32, str(folder / WEIGHTS)).eval()
        model._folder = folder
        return model

    def __iter__(self) -> Iterator[Any]:
        """The old pair: `from_pretrained` once returned the model and its tokenizer."""
        if self._folder is None:
            raise TypeError(f"a {type(self).__name__} has no parts to go through: call it, model(tokens)")
        say_renamed("model, tokenizer = from_pretrained(folder)", "from_pretrained(folder) and tokenizer_of(folder)")
        there = (self._folder / TOKENIZER).exists()
        return iter((self, tokenizer_of(self._folder) if there else None))

    @property
    def model(self) -> Self:
        """The first of the old pair: itself."""
        if self._folder is None:
            raise AttributeError(f"a {type(self).__name__} is the model")
        say_renamed("from_pretrained(folder).model", "from_pretrained(folder), and its tokenizer tokenizer_of(folder)")
        return self

    def save_published(self, folder: str | Path, dtype: torch.dtype = torch.float32) -> None:
        """Write the model to ``folder``, made if need be, as `from_pretrained` reads it, and Hugging Face's does.

        Raises ``ValueError`` when it has weights for which there is no published name, or ``dtype`` has no fractions.
        """
        if not dtype.is_floating_point:
            raise ValueError(f"dtype must be one of floating-point numbers; got {dtype}")
        settings, folder = type(self).published_settings(self.config), Path(folder)
        blueprint, own = self.architectures[settings["model_type"]](settings, ()), weights_of(self)
        unknown = sorted(own.keys() ^ blueprint.parts.keys())
        if unknown:
            raise ValueError(f"model must be as {settings['model_type']} is published; it differs in {unknown[0]}")
        tensors = {}
        for name, part in blueprint.parts.items():
            names = [blueprint.prefix + one for one in part.names]
            tensors |= zip(names, part.turned(own[name]).to(dtype).chunk(len(names)), strict=True)
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / WEIGHTS, tensors, {"format": "pt"})
        (folder / CONFIG).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def _blueprint(cls, settings: dict[str, Any], names: Collection[str], where: str) -> Blueprint:
        kind = settings.get("model_type")
        if kind not in cls.architectures:
            known = " or ".join(cls.architectures)
            raise ValueError(f"{where} must say that model_type is {known}, for a {cls.__name__}; got {kind}")
        try:
            return cls.architectures[kind](settings, names)
        except KeyError as error:
            raise ValueError(f"{where} must say what {error} is; it does not") from None

    @classmethod
    def _filled(cls, blueprint: Blueprint, tensors: Mapping[str, Tensor], dtype: torch.dtype, where: str) -> Self:
        model, (there, wrong) = cls(blueprint.config).to(dtype), blueprint.named(tensors)
        own, parts = model.state_dict(), blueprint.parts
        used = {name for part in parts.values() for name in part.names}
        wrong += [f"{name} is missing" for name in sorted(used - there.keys())]
        wrong += [f"{name} is not of this model" for name in sorted(there.keys() - used)]
        made = {}
        for name, part in parts.items():
            if not there.keys() >= set(part.names):
                continue
            made[name] = part.joined(there).to(dtype)
            if made[name].shape != own[name].shape:
                shape = tuple(part.turned(own[name]).shape)
                got = " and ".join(str(tuple(there[one].shape)) for one in part.names)
                wrong.append(f"{' and '.join(part.names)} must be {shape} in all; got {got}")
        if wrong:
            more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
            raise ValueError(f"{where} must hold the weights of its config; {'; '.join(wrong[:4])}{more}")
        put_weights(model, made, where)
        return model


def tokenizer_of(folder: str | Path) -> Tokenizer:
    """The tokenizer of a published model: tokenizer.json in its folder.

    Raises ``FileNotFoundError`` when the folder or the file is not there, ``ValueError`` when the file is none.

    >>> from attnlib.models import folder_of
    >>> tokenizer_of(folder_of("rxnmapper")).encode("CCO").tokens
    ['[CLS]', 'C', 'C', 'O', '[SEP]']
    """
    path = check_folder("folder", Path(folder)) / TOKENIZER
    if not path.exists():
        raise FileNotFoundError(f"{path} must hold the tokenizer, as the tokenizers library writes it; there is none")
    return open_tokenizer(path)


def open_tokenizer(path: str | Path) -> Tokenizer:
    """The tokenizer in a tokenizer.json. Raises ``ValueError`` when the file is none."""
    from tokenizers import Tokenizer  # needed only here, and takes its time

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{path} must be a tokenizer.json, as the tokenizers library writes it; {error}") from None
