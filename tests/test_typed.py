"""What a stranger's type checker finds: types, not Any; and stubs that say what the code does."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from attnlib import attention
from attnlib.core import Attended

ROOT = Path(__file__).parents[1]
MYPY = [sys.executable, "-m", "mypy"]
PACKAGES = ["attnlib", "attnlib.course", "attnlib.translation", "attnlib.variants"]

STRANGER = """\
import numpy as np
import torch
from attnlib import MultiHeadAttention, NadarayaWatson, attention, dot
from attnlib.models import BERT, GPT, BERTConfig, GPTConfig
from attnlib.nn import DecoderLayer, EncoderLayer, Transformer, TransformerConfig
from attnlib.probes import causality, padding

q, x, tokens = np.ones((3, 4)), torch.ones(2, 3, 8), torch.ones(2, 3, dtype=torch.int64)
layer, model = MultiHeadAttention(8, 2), NadarayaWatson(bandwidth=1.0).fit(q, q[:, 0])
reveal_type(attention(q, q, q[:, :1], mask=np.tri(3, dtype=bool)).out)  # ndarray
reveal_type(attention(q, q, q).weights)  # ndarray
reveal_type(attention(x, x, x, score=dot, bias=x @ x.mT).weights)  # Tensor
reveal_type(attention(x, x, x, weights=False).out)  # Tensor
reveal_type(layer(x).out)  # Tensor
reveal_type(layer(x, causal=True, weights=True).weights)  # Tensor | None
reveal_type(EncoderLayer(8, 2, 32)(x).out)  # Tensor
reveal_type(DecoderLayer(8, 2, 32)(x, x).out)  # Tensor
reveal_type(Transformer(TransformerConfig(n_source=9, n_target=9))(tokens, tokens).logits)  # Tensor
reveal_type(GPT(GPTConfig(n_tokens=9))(tokens).logits)  # Tensor
reveal_type(BERT(BERTConfig(n_tokens=9))(tokens))  # Tensor
reveal_type(model)  # NadarayaWatson
reveal_type(model.predict(q))  # ndarray
reveal_type(causality(layer, x, draws=2))  # Report
padding(layer, x)  # error
causality(layer, x, drawn=2)  # error
attention([1.0], q, q)  # error
MultiHeadAttention("8", 2)  # error
layer(x, casual=True)  # error
"""


def test_types_hold_inside():
    """The first of this file: what it reads it keeps, for the one below. Torch alone takes most of a minute."""
    done = subprocess.run([*MYPY, "--no-error-summary"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stranger_finds_types_and_is_told_of_mistakes(tmp_path):
    """All checks are on in her file."""
    (tmp_path / "stranger.py").write_text(STRANGER)
    settings = (ROOT / "pyproject.toml").read_text()
    off = tomllib.loads(settings)["tool"]["mypy"]["disable_error_code"]
    hers = f'[[tool.mypy.overrides]]\nmodule = "stranger"\nenable_error_code = {off}\n'
    (tmp_path / "pyproject.toml").write_text(f"{settings}\n{hers}")
    command = [*MYPY, f"--config-file={tmp_path}/pyproject.toml", f"{tmp_path}/stranger.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found: dict[int, str] = {}
    for line, said in re.findall(r"stranger\.py:(\d+): (.*)", done.stdout, flags=re.MULTILINE):
        kind = re.sub(r"\w+\.|\[.*\]", "", said.partition('"')[2].rstrip('"')) if "Revealed" in said else "error"
        found.setdefault(int(line), kind)
    wanted = [(i, line.partition("  # ")[2]) for i, line in enumerate(STRANGER.splitlines(), 1) if "  # " in line]
    assert found == dict(wanted), done.stdout + done.stderr


def test_what_the_readme_shows_holds_under_strict(tmp_path):
    code = re.findall(r"^```python\n(.*?)^```", (ROOT / "attnlib" / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    whole = [block for block in code if block.startswith(("import", "from"))]  # the others go on from them
    files = [tmp_path / f"block{number}.py" for number in range(len(whole))]
    for file, block in zip(files, whole, strict=True):
        file.write_text(block)
    done = subprocess.run([*MYPY, "--strict", *map(str, files)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", PACKAGES)
def test_a_stub_offers_what_the_package_offers(name):
    package = importlib.import_module(name)
    stub = ast.parse((Path(package.__file__).parent / "__init__.pyi").read_text())
    offered = {
        alias.asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert offered.keys() == set(package.__all__)
    for what, home in offered.items():
        source = importlib.import_module(home)
        theirs = getattr(source, what, None) or importlib.import_module(f"{home}.{what}")
        assert theirs is getattr(package, what), what


def test_the_stub_of_attention_has_its_arguments():
    stub = ast.parse((ROOT / "attnlib" / "core" / "attention.pyi").read_text())
    parameters = inspect.signature(attention).parameters
    forms = [node.args for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert len(forms) == 2
    for form in forms:
        assert [a.arg for a in (*form.args, *form.kwonlyargs, form.kwarg)] == list(parameters)
        assert len(form.kwonlyargs) == sum(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    (fields,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "Attended")
    assert tuple(field.target.id for field in fields.body) == Attended._fields
