"""Weights on disk, as safetensors: no file runs code when it is read, and none is ever half written."""

from __future__ import annotations

import json
import os
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors
import safetensors.torch
import torch

from attnlib._base.renamed import RenamedWeights, with_new_names

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["PART", "copies", "load", "put_weights", "read", "save", "weights_of", "write"]

CHECKSUM = "crc32"  # of the tensors, in the file's own metadata
BESIDE = "crc32_of_metadata"  # of what else stands there
PART = ".part"  # what a file ends in as long as it is not whole


def save(model: Module, path: str | Path) -> None:
    """Write the weights of ``model`` (parameters and buffers) to ``path`` as safetensors, whole or not at all.

    What is one tensor under two names is written once.

    Raises ``TypeError`` when the model's state holds anything but tensors.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save(torch.nn.Linear(2, 1), f"{folder}/line.safetensors")
    ...     again = load(torch.nn.Linear(2, 1), f"{folder}/line.safetensors")
    """
    write(Path(path), weights_of(model), {"format": "pt"})


def load(model: Module, path: str | Path) -> Module:
    """Fill ``model`` with the weights in ``path``, which `save` wrote or another program; returns ``model``.

    Nothing is converted on the way, and no weight stays as it was.

    Raises ``ValueError`` when a name, a shape or a dtype differs, naming it, or the file is no safetensors file; the
    model is then as before.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save(torch.nn.Linear(2, 1), f"{folder}/line.safetensors")
    ...     load(torch.nn.Linear(3, 1), f"{folder}/line.safetensors")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: ... weight is float32 (1, 2) there and float32 (1, 3) in the model
    """
    put_weights(model, read(Path(path))[0], str(path))
    return model


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write ``tensors`` to ``path``: whoever looks, at any moment, finds the old file or the new one, whole.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(Path(folder) / "x", {"a": torch.ones(2)})
    ...     read(Path(folder) / "x")[0]
    {'a': tensor([1., 1.])}
    """
    tensors, metadata = copies(tensors), metadata or {}
    sums = {CHECKSUM: _checksum(tensors), BESIDE: _text_checksum(metadata)}
    data = _in_order(safetensors.torch.save(tensors, metadata | sums))
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{PART}")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened; there its entry is safe a little later
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _in_order(data: bytes) -> bytes:
    """The same file with its metadata sorted: in whatever order safetensors has them, equal runs would differ."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors in ``path`` and what is written beside them.

    Raises ``ValueError`` when it is no safetensors file, or holds other numbers than were written.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            # Copied, so that nothing leans on a file that is about to be replaced.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} must be a whole safetensors file; {error}") from None
    sums = metadata.pop(CHECKSUM, None), metadata.pop(BESIDE, None)  # files of other programs have none
    for written, found in zip(sums, (_checksum(tensors), _text_checksum(metadata)), strict=True):
        if written not in (None, found):
            raise ValueError(
                f"{path} must hold what was written; its checksum is {found}, not {written}: it was damaged"
            )
    return tensors, metadata


def _checksum(tensors: dict[str, Tensor]) -> str:
    """CRC-32 of all bytes, tensor by tensor in the order of their names."""
    total = 0
    for name in sorted(tensors):
        total = zlib.crc32(_bytes(tensors[name]).numpy() if tensors[name].numel() else b"", total)
    return f"{total:08x}"


def _text_checksum(metadata: dict[str, str]) -> str:
    return f"{zlib.crc32(json.dumps(metadata, sort_keys=True).encode()):08x}"


def _bytes(tensor: Tensor) -> Tensor:
    """What it is made of, in which NaN equals NaN."""
    return tensor.reshape(-1).view(torch.uint8)


def copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same numbers, each tensor in memory of its own and in order, as the format wants them."""
    return {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format).contiguous()
        for name, tensor in tensors.items()
    }


def weights_of(model: Module) -> dict[str, Tensor]:
    """Parameters and buffers by name. Those that are one tensor under several names come once, under the first.

    >>> tied = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    >>> tied[1].weight = tied[0].weight
    >>> list(weights_of(tied))
    ['0.weight']
    """
    return {names[0]: tensor for names, tensor in _named(model)}


def put_weights(model: Module, tensors: dict[str, Tensor], where: str) -> None:
    """Copy ``tensors`` into ``model``, all of them or, with a ``ValueError`` about ``where``, none."""
    for prefix, part in model.named_modules():
        if isinstance(part, RenamedWeights):
            tensors = with_new_names(tensors, f"{prefix}." if prefix else "", part.renamed_weights)
    found, known, wrong = {}, set(), []
    for names, tensor in _named(model):
        known |= set(names)
        there = [name for name in names if name in tensors]
        if not there:
            wrong.append(f"{names[0]} is missing")
            continue
        found |= dict.fromkeys(names, tensors[there[0]])
        wrong += [
            f"{name} is {_kind(tensors[name])} there and {_kind(tensor)} in the model"
            for name in there
            if _kind(tensors[name]) != _kind(tensor)
        ]
        if not wrong and any(
            not torch.equal(*(_bytes(tensors[name]) for name in (there[0], other))) for other in there[1:]
        ):
            wrong.append(f"{' and '.join(there)} differ there and are one in the model")
    wrong += [f"{name} is not in the model" for name in tensors if name not in known]
    if wrong:
        more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise ValueError(f"{where} must hold the weights of this model; {'; '.join(wrong[:4])}{more}")
    model.load_state_dict(found)


def _named(model: Module) -> list[tuple[list[str], Tensor]]:
    groups: dict[int, tuple[list[str], Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"model must hold tensors only, to be stored; {name} is of type {type(tensor).__name__}")
        groups.setdefault(id(tensor), ([], tensor))[0].append(name)
    return list(groups.values())


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
