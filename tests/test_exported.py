"""Models as graphs: compiled whole, exported with batches and lengths open, and run by others with equal numbers."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import onnxruntime
import pytest
import torch
from torch.export import Dim
from torch.utils._pytree import tree_leaves

from attnlib.models import BERT, GPT, T5, BERTConfig, GPTConfig, T5Config
from attnlib.nn import DecoderLayer, EncoderLayer, MultiHeadAttention, Positional, Transformer, TransformerConfig

POSITIONS = ("none", "sinusoidal", "learned", "relative", "alibi", "rotary")
SMALL = {"n_tokens": 20, "n_max": 16, "d_model": 16, "n_heads": 4, "n_layers": 1}
# Of a batch, and how long; graphs are made with the first. One batch is as large as heads are many.
SIZES = [(2, 7), (3, 6), (1, 4), (4, 5)]

LOAD = """
import sys, torch
import attnlib.models  # which knows the tuples that are returned
for path in sys.argv[1:]:
    graph = torch.export.load(path).module()
    calls = torch.load(path + ".calls")
    out = [torch.utils._pytree.tree_leaves(graph(*inputs, **options)) for inputs, options in calls]
    torch.save(out, path + ".out")
"""


def _rows(batch, n):
    return torch.randn(batch, n, 16)


def _tokens(batch, n):
    return torch.randint(4, 20, (batch, n))


def _real(batch, n):
    """Which tokens are real: of the last text, all but two."""
    real = torch.ones(batch, n, dtype=torch.bool)
    real[-1, -2:] = False
    return real


def _padded(batch, n):
    return _tokens(batch, n) * _real(batch, n)  # 0 fills up


def _some(batch, n):
    """A mask under which one query sees nothing."""
    mask = torch.rand(batch, n, n) < 0.7
    mask[0, 1] = False
    return mask


def _transformer():
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(
        TransformerConfig(n_source=20, n_target=30, d_model=16, n_heads=4, position="relative", **layers)
    )


def _gpt(position="learned"):
    return GPT(GPTConfig(**SMALL, position=position))


# What is made, its inputs for a batch and a length, its options likewise.
MADE = {
    "heads": (lambda: MultiHeadAttention(16, 4, n_kv_heads=2), [_rows], {"mask": _some}),
    "encoder layer": (lambda: EncoderLayer(16, 4, 32), [_rows], {"causal": True}),
    "decoder layer": (lambda: DecoderLayer(16, 4, 32), [_rows, lambda b, n: _rows(b, n + 2)], {"weights": True}),
    "Transformer": (_transformer, [_padded, lambda b, n: _tokens(b, n - 1)], {}),
    "GPT": (_gpt, [_tokens], {"mask": _real}),
    "BERT": (lambda: BERT(BERTConfig(**SMALL)), [_tokens], {"mask": _real}),
}
OTHERS = {
    "heads with weights": (lambda: MultiHeadAttention(16, 4), [_rows], {"mask": _some, "weights": True}),
    "T5": (lambda: T5(T5Config(n_tokens=20, d_model=16, n_heads=4)), [_padded, lambda b, n: _tokens(b, n - 1)], {}),
    **{f"GPT, {p}": (lambda p=p: _gpt(p), [_tokens], {}) for p in POSITIONS},
}
ALL = MADE | OTHERS


@cache
def case(name):
    """The model, and what it is called with, size by size."""
    torch.manual_seed(0)
    make, inputs, options = ALL[name]
    calls = [
        (tuple(x(*size) for x in inputs), {key: x(*size) if callable(x) else x for key, x in options.items()})
        for size in SIZES
    ]
    return make().eval().requires_grad_(False), calls


def leaves(out):
    return [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]


def same(got, model, call):
    inputs, options = call
    got = [torch.as_tensor(x) for x in leaves(got)]
    torch.testing.assert_close(got, leaves(model(*inputs, **options)), rtol=1e-5, atol=1e-5)


def open_sizes(options, inputs):
    """All batches and lengths, which ``torch.export`` is to leave open; what is no tensor has none."""
    sizes = [{0: Dim.DYNAMIC, 1: Dim.DYNAMIC} for _ in inputs]
    more = {"mask": dict.fromkeys(range(options["mask"].ndim), Dim.DYNAMIC)} if "mask" in options else {}
    return sizes, {key: more.get(key) for key in options}


@cache
def exported(name):
    """The graph of a model, made once for all that use it."""
    model, ((inputs, options), *_) = case(name)
    sizes, more = open_sizes(options, inputs)
    names = list(model.forward.__annotations__)[: len(inputs)]
    return torch.export.export(model, inputs, options, dynamic_shapes=dict(zip(names, sizes, strict=True)) | more)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_compiles_into_one_graph(name):
    model, calls = case(name)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    for inputs, options in calls[:2]:
        same(compiled(*inputs, **options), model, (inputs, options))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """What a fresh process gets from the graphs that were saved, by name."""
    folder, paths = tmp_path_factory.mktemp("graphs"), {}
    for i, name in enumerate(ALL):
        paths[name] = str(folder / f"{i}.pt2")
        torch.export.save(exported(name), paths[name])
        torch.save(case(name)[1], paths[name] + ".calls")
    subprocess.run([sys.executable, "-c", LOAD, *paths.values()], check=True)
    return {name: torch.load(path + ".out") for name, path in paths.items()}


@pytest.mark.parametrize("name", ALL)
def test_exported_and_saved_it_runs_in_a_fresh_process_at_other_sizes(name, elsewhere):
    model, calls = case(name)
    for got, call in zip(elsewhere[name], calls, strict=True):
        same(got, model, call)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_onnxruntime_runs_it_with_equal_numbers(name, tmp_path):
    model, calls = case(name)
    program = torch.onnx.export(exported(name), dynamo=True, verbose=False)
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for inputs, options in calls:
        tensors = [*inputs, *(x for x in options.values() if isinstance(x, torch.Tensor))]
        fed = {place.name: x.numpy() for place, x in zip(session.get_inputs(), tensors, strict=True)}
        same(list(map(torch.from_numpy, session.run(None, fed))), model, (inputs, options))


def test_bad_input_is_named_before_and_after_a_graph_was_made():
    model, _ = case("GPT")
    exported("GPT")
    with pytest.raises(ValueError, match="tokens must hold tokens from 0 to 19; got 20"):
        model(torch.tensor([[3, 20]]))
    heads = MultiHeadAttention(16, 4)
    with pytest.raises(ValueError, match="x_q must have shape"):
        torch.export.export(heads, (torch.randn(2, 5, 15),))
    with pytest.raises(ValueError, match="q holds NaN"):
        heads(torch.full((2, 5, 16), torch.nan))


def test_a_graph_leaves_the_table_of_positions_alone():
    positional = Positional("sinusoidal", d_model=8, n_heads=2, n_max=16, bidirectional=True)
    torch.compile(positional.add_to, fullgraph=True, backend="eager")(torch.zeros(1, 5, 8))
    assert positional.table is None
