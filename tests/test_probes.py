"""Probes: each finds the models that are broken in its way, and says nothing of those that are not."""

from __future__ import annotations

import os
import warnings
from copy import deepcopy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlib
from attnlib import attention, causal, masks
from attnlib.probes import batch_independence, causality, first_difference, gradients, overfits, padding, permutation
from attnlib.probes.influence import orders
from attnlib.probes.outputs import change, first_tensor

BATCH, N, D = 3, 6, 8


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def floats(batch=BATCH, n=N, d=D, dtype=torch.float32):
    return torch.randn(batch, n, d, generator=torch.Generator().manual_seed(1)).to(dtype)


def tokens(batch=BATCH, n=N, size=11):
    return torch.randint(0, size, (batch, n), generator=torch.Generator().manual_seed(1))


class SelfAttention(nn.Module):
    """Attention with several heads in plain torch, and every way in which it is written wrong."""

    def __init__(self, bug="", n_heads=2, dtype=torch.float32, causal=True):
        super().__init__()
        self.bug, self.n_heads, self.causal = bug, n_heads, causal
        self.project = nn.Linear(D, 3 * D, dtype=dtype)
        self.out = nn.Linear(D, D, dtype=dtype)
        self.norm = nn.BatchNorm1d(D, dtype=dtype)

    def split(self, x):
        batch, n, d = x.shape
        if self.bug == "heads without transpose":
            return x.reshape(batch, self.n_heads, n, d // self.n_heads)
        return x.view(batch, n, self.n_heads, d // self.n_heads).transpose(1, 2)

    def allowed(self, n, like, real):
        mask = masks.causal(n, like=like) if self.causal else torch.ones(n, n, dtype=torch.bool)
        if self.bug == "diagonal off by one":
            mask = torch.ones(n, n).tril(1).bool()
        if self.bug == "mask inverted":
            mask = ~mask | torch.eye(n).bool()
        if self.bug == "one head":
            mask = mask.repeat(self.n_heads, 1, 1)
            mask[-1] = True
        if self.bug == "training only" and self.training:
            mask = torch.ones_like(mask)
        if real is None or self.bug == "padding attended":
            return mask
        keys = real[:, None, None, :]
        if self.bug == "padding inverted":
            keys = ~keys | torch.eye(n).bool()
        return mask & keys

    def weights(self, scores, mask):
        if self.bug == "mask multiplied":
            return (scores * mask).softmax(-1)
        if self.bug == "mask after softmax":
            return scores.softmax(-1) * mask
        if self.bug == "mask too weak":
            return (scores - 8 * (~mask).to(scores)).softmax(-1)
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    def forward(self, x, real=None):
        batched_first = self.bug != "batch first forgotten"
        x = x if batched_first else x.transpose(0, 1)
        q, k, v = (self.split(part) for part in self.project(x).chunk(3, -1))
        weights = self.weights(q @ k.mT / q.shape[-1] ** 0.5, self.allowed(x.shape[1], x, real))
        y = self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        if self.bug == "mean over positions":
            y = y - y.mean(1, keepdim=True)
        if self.bug == "small mean over positions":
            y = y + 1e-4 * x.mean(1, keepdim=True)
        if self.bug == "instance norm":
            y = F.instance_norm(y.mT).mT
        if self.bug == "batch norm":
            y = self.norm(y.mT).mT
        if self.bug == "last token":
            y = y + 0.1 * x[:, -1:]
        if self.bug == "batch mean":
            y = y - y.mean(0)
        return y if batched_first else y.transpose(0, 1)


FUTURE = [
    "diagonal off by one",
    "mask inverted",
    "mask multiplied",
    "mask after softmax",
    "mask too weak",
    "one head",
    "mean over positions",
    "small mean over positions",
    "instance norm",
    "last token",
    "heads without transpose",
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bug", FUTURE)
def test_causality_finds(bug, dtype):
    report = causality(SelfAttention(bug, dtype=dtype), floats(dtype=dtype))
    assert not report
    assert ": not causal (" in str(report)
    assert report.matrix.shape == (N, N)
    assert np.triu(report.matrix, 1).any()


@pytest.mark.parametrize("bug", FUTURE)
def test_causality_finds_them_without_gradients_too(bug):
    assert not causality(SelfAttention(bug), floats(), gradient=False)


def test_causality_says_which_position_reads_which():
    off_by_one = causality(SelfAttention("diagonal off by one"), floats())
    assert str(off_by_one) == "Position 0 reads position 1: not causal (5 of 15 such pairs)."
    assert np.array_equal(off_by_one.matrix, np.tri(N, k=1, dtype=bool))
    last = causality(SelfAttention("last token"), floats())
    assert str(last) == "Position 0 reads position 5: not causal (5 of 15 such pairs)."
    assert np.array_equal(np.triu(last.matrix, 1), np.triu(np.arange(N) == N - 1, 1) & np.ones((N, N), bool))
    right = causality(SelfAttention(), floats())
    assert str(right) == "Causal: no output changes when a later input does (6 positions)."
    assert np.array_equal(right.matrix, np.tri(N, dtype=bool))


@pytest.mark.parametrize("bug", ["training only", "batch norm"])
def test_a_leak_in_training_mode_only(bug):
    model = SelfAttention(bug)
    assert causality(model, floats())
    assert not causality(model, floats(), training=True)


@pytest.mark.parametrize("weight", [1e-4, 1e-3])
@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_small_leak_is_found_at_every_scale(weight, gradient, scale):
    def leak(x):
        return x + weight * x.roll(-2, dims=1)

    assert not causality(leak, scale * floats(), gradient=gradient)


def test_rounding_is_no_leak():
    noise = 1e-7

    def rounded(x):  # the whole row shifts what every output is rounded to
        return x.cumsum(1) * (1 + noise * torch.sign(x.sum((1, 2), keepdim=True)))

    assert causality(rounded, floats())
    assert not causality(rounded, floats(dtype=torch.float64))
    assert causality(rounded, floats(dtype=torch.float64), tolerance=1e-5)
    assert causality(lambda x: torch.fft.irfft(torch.fft.rfft(x, 16, 1), 16, 1)[:, :N], floats(), gradient=False)


def test_only_the_gradient_shows_what_half_precision_hides():
    report = causality(SelfAttention("small mean over positions", dtype=torch.bfloat16), floats(dtype=torch.bfloat16))
    assert str(report).endswith("such pairs). Only the gradient shows it.")
    assert causality(
        SelfAttention("small mean over positions", dtype=torch.bfloat16), floats(dtype=torch.bfloat16), gradient=False
    )


@pytest.mark.parametrize("bug", ["padding attended", "padding inverted", "mask multiplied", "mask after softmax"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_padding_finds(bug, dtype):
    report = padding(SelfAttention(bug, causal=False, dtype=dtype), floats(dtype=dtype), [6, 3, 4])
    assert not report
    assert "reads padding position" in str(report)


def test_padding_says_who_reads_what():
    x = floats()
    report = padding(SelfAttention("padding attended", causal=False), x, [6, 5, 4])
    assert str(report) == (
        "Position 0 of sequence 1 reads padding position 5 (13 such pairs). "
        "Sequence 1 answers differently without padding (2 sequences do)."
    )
    assert report.matrix[:, 4:].sum() == 9
    assert not report.matrix[:, :4].any()
    blind = padding(lambda x, real: x + x.shape[1], x, [6, 6, 4])
    assert str(blind) == "Sequence 2 answers differently without padding."  # it counts the padding, and never reads it
    right = padding(SelfAttention(causal=False), x, [6, 5, 4], nan=False)
    assert (
        str(right)
        == "Padding is ignored: real outputs are the same whatever stands in it, and without it (3 sequences)."
    )
    assert not right.matrix.any()


def test_a_weight_that_only_large_padding_shows():
    def nearly(x, real):
        return x + 1e-7 * (x * ~real[..., None]).sum(1, keepdim=True)

    report = padding(nearly, floats(), [6, 3, 4])
    assert not report
    assert "Only padding of 10,000 times the size of x shows it." in str(report)

    def hidden_late(x, real):  # sound, but for keys that are so large that the softmax leaves nothing to the others
        weights = (x @ x.mT).softmax(-1) * real[:, None]
        return weights / weights.sum(-1, keepdim=True) @ x

    assert str(padding(hidden_late, floats(), [6, 3, 4])).endswith(
        "Only padding of 10,000 times the size of x shows it."
    )
    careless = padding(
        lambda x, real: x + (x * ~real[..., None]).mean(1, keepdim=True) * 0, floats(), [6, 3, 4], nan=True
    )
    assert str(careless).endswith("Only padding that is NaN shows it.")


def test_padding_finds_a_mask_that_is_the_wrong_way_round_under_a_causal_one():
    def model(x, real, inverted=False):
        allowed = real[:, None] != inverted
        return x + attention(x, x, x, mask=allowed & causal(x.shape[1], like=x)).out

    x, lengths = torch.randn(3, 6, 4), [6, 3, 1]
    assert padding(model, x, lengths)
    report = padding(lambda x, real: model(x, real, inverted=True), x, lengths)
    assert not report
    assert "only under the opposite mask" in str(report)
    assert padding(lambda x, real: x * real[..., None], x, lengths)  # where no position reads another, all is well


def test_padding_of_pooled_outputs():
    x = floats()

    def mean(x, real):
        return (x * real[..., None]).sum(1) / real.sum(1)[:, None]

    assert padding(mean, x, [6, 5, 4])
    wrong = padding(lambda x, real: x.mean(1), x, [6, 5, 4])
    assert str(wrong) == (
        "The output of sequence 1 reads padding position 5 (3 such pairs). "
        "Sequence 1 answers differently without padding (2 sequences do)."
    )
    assert wrong.labels == ("padding position", "output of sequence")
    square = floats(d=N)
    assert padding(mean, square, [6, 5, 4], pooled=True)
    assert not padding(lambda x, real: x.mean(1), square, [6, 5, 4], pooled=True)
    with pytest.raises(ValueError, match=r"pooled must be given.*\(3, 6\)"):
        padding(mean, square, [6, 5, 4])


def test_nan_in_outputs_that_do_not_count():
    def masked(x, real):  # queries in the padding may attend to nothing
        allowed = real[:, None] & real[:, :, None]
        return (x @ x.mT).masked_fill(~allowed, -torch.inf).softmax(-1) @ x

    assert masked(floats(), torch.tensor([[True] * 5 + [False]])).isnan().any()
    assert padding(masked, floats(), [6, 3, 4])


def test_nan_of_a_sequence_of_length_zero_is_told():
    layer, x = nn.MultiheadAttention(D, 2, batch_first=True), floats()
    report = padding(lambda x, real: layer(x, x, x, key_padding_mask=~real)[0], x, [6, 4, 0])
    assert not report
    assert str(report) == "Sequence 2, of length 0, gives NaN: gradients of a loss on the others may be NaN too."
    real = torch.arange(N) < torch.tensor([6, 4, 0])[:, None]
    layer(x, x, x, key_padding_mask=~real)[0][real].sum().backward()
    assert layer.in_proj_weight.grad.isnan().any()
    assert padding(lambda x, real: attention(x, x, x, mask=real[:, None]).out, x, [6, 4, 0])

    def mean(x, real):
        return (x * real[..., None]).sum(1) / real.sum(1, keepdim=True)

    assert str(padding(mean, x, [5, 4, 0])).startswith("Sequence 2, of length 0, gives NaN")
    assert padding(lambda x, real: mean(x, real).nan_to_num(), x, [5, 4, 0])


def test_nan_in_the_padding():
    def careful(x, real):
        return torch.where(real[..., None], x, 0.0).cumsum(1)

    def careless(x, real):
        return (x * real[..., None]).flip(1).cumsum(1).flip(1)

    assert padding(careful, floats(), [6, 3, 4], nan=True)
    assert padding(careless, floats(), [6, 3, 4])
    assert not padding(careless, floats(), [6, 3, 4], nan=True)


@pytest.mark.parametrize(
    ("bug", "finding"), [("", "Equivariant"), ("heads without transpose", "Neither"), ("last token", "Neither")]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_permutation(bug, finding, dtype):
    report = permutation(SelfAttention(bug, causal=False, dtype=dtype), floats(dtype=dtype))
    assert str(report).startswith(finding)
    assert bool(report) == (finding == "Equivariant")


def test_two_of_the_orders_generate_all_others():
    swap, turn, *_ = orders(4, 1, torch.Generator())
    assert (swap.tolist(), turn.tolist()) == ([1, 0, 2, 3], [3, 0, 1, 2])


def test_permutation_of_what_knows_its_place():
    assert not permutation(SelfAttention(), floats())
    assert not permutation(lambda x: x + torch.arange(N)[:, None] / 100, floats())
    assert not permutation(lambda x: x - x.roll(1, dims=1), floats())  # moves with a turn of the ring, and no more


def test_invariant_outputs():
    pooled = permutation(lambda x: x.amax(1), floats())
    assert str(pooled) == "Invariant: the output is the same in every order of the inputs (6 positions)."
    assert not pooled
    spread = permutation(lambda x: x.mean(1, keepdim=True).expand_as(x), floats())
    assert spread
    assert "Equivariant too" in str(spread)
    same = permutation(lambda x: torch.stack([x.amax(1), x.amin(1)] * 3, 1), floats())
    assert str(same) == "Invariant: outputs are the same in every order of the inputs (6 positions)."
    assert not same


@pytest.mark.parametrize("bug", ["batch first forgotten", "batch mean"])
@pytest.mark.parametrize("batch", [2, 3, N])
def test_batch_independence_finds(bug, batch):
    report = batch_independence(SelfAttention(bug), floats(batch))
    assert not report
    assert "the batch is mixed" in str(report)


def test_batch_independence_says_which():
    report = batch_independence(SelfAttention("batch first forgotten"), floats())
    assert str(report) == (
        "Sequence 1 reads sequence 0: the batch is mixed (3 of 6 such pairs). Sequence 1 answers differently alone."
    )
    assert np.array_equal(report.matrix, np.tri(BATCH, dtype=bool))
    order = torch.arange(BATCH)[:, None, None]
    assert str(batch_independence(lambda x: x + order[: len(x)], floats())) == "Sequence 1 answers differently alone."
    squeezed = batch_independence(lambda x: x.cumsum(1).squeeze(), floats())
    assert str(squeezed).startswith("Sequence 0 alone: ")
    assert not squeezed
    assert batch_independence(lambda x: x.mean((1, 2)), floats())


def test_batch_independence_in_training_mode():
    normalised = SelfAttention("batch norm")
    assert batch_independence(normalised, floats())
    assert not batch_independence(normalised, floats(), training=True)
    dropped = nn.Sequential(nn.Linear(D, D), nn.Dropout())
    report = batch_independence(dropped, floats(), training=True)
    assert report
    assert str(report).endswith("None was run alone: the model draws random numbers.")


# Models that are right.


def encoder_layer(norm_first, dtype=torch.float32):
    return nn.TransformerEncoderLayer(D, 2, 16, norm_first=norm_first, batch_first=True, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm_first", [True, False])
def test_silent_on_torchs_encoder_layer(norm_first, dtype):
    layer, x = encoder_layer(norm_first, dtype), floats(dtype=dtype)
    future = masks.to_torch(masks.causal(N, like=x))

    def causal(x):
        return layer(x, src_mask=future, is_causal=True)

    def both(x, real):
        mask = masks.to_torch(masks.causal(x.shape[1], like=x))
        return layer(x, src_mask=mask, src_key_padding_mask=~real)

    assert causality(causal, x)
    assert not causality(layer, x)
    assert causality(causal, x, training=True)
    assert padding(both, x, [6, 3, 4])
    assert padding(lambda x, real: layer(x, src_key_padding_mask=~real), x, [6, 3, 4])
    assert not padding(lambda x, real: layer(x), x, [6, 3, 4])
    assert permutation(layer, x)
    assert batch_independence(layer, x)
    assert batch_independence(layer, x, training=True)
    assert gradients(layer, x)


def test_silent_on_an_encoder_that_computes_no_padding():
    with warnings.catch_warnings(action="ignore"):
        encoder = nn.TransformerEncoder(encoder_layer(False), 2)
        assert padding(lambda x, real: encoder(x, src_key_padding_mask=~real), floats(), [4, 5, 2])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_silent_on_torchs_attention(dtype):
    layer, x = nn.MultiheadAttention(D, 2, batch_first=True, dtype=dtype), floats(dtype=dtype)
    future = masks.to_torch(masks.causal(N, like=x))
    assert causality(lambda x: layer(x, x, x, attn_mask=future, need_weights=False), x)
    assert padding(lambda x, real: layer(x, x, x, key_padding_mask=~real), x, [6, 3, 4])
    assert permutation(lambda x: layer(x, x, x), x)
    assert batch_independence(lambda x: layer(x, x, x), x)
    wrong = nn.MultiheadAttention(D, 2, dtype=dtype)
    assert not batch_independence(lambda x: wrong(x, x, x), x)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("n", [2, 7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_silent_on_recurrent_and_convolutional_models(batch, n, dtype):
    gru = nn.GRU(D, 5, num_layers=2, batch_first=True, dtype=dtype)
    convolution = nn.Conv1d(D, 4, 3, dtype=dtype)
    for model in (gru, lambda x: convolution(F.pad(x.mT, (2, 0))).mT):
        x = floats(batch, n, dtype=dtype)
        assert causality(model, x)
        assert batch_independence(model, x)
        assert not permutation(model, x)
        assert gradients(model, x)
    assert not causality(nn.GRU(D, 5, bidirectional=True, batch_first=True), floats())


def test_silent_on_the_library_in_both_libraries():
    x = floats(dtype=torch.float64)

    def ours(x):
        return attnlib.attention(x, x, x, mask=attnlib.causal(x.shape[1], like=x))

    assert causality(ours, x)
    assert str(causality(ours, x.numpy())).endswith("(6 positions). The gradient was not looked at: NumPy has none.")
    assert not causality(lambda x: attnlib.attention(x, x, x), x.numpy())

    def padded(x, real):
        return attnlib.attention(x, x, x, mask=real[:, None])

    assert padding(padded, x, [6, 0, 3])
    assert padding(padded, x.numpy(), [6, 1, 3])
    assert batch_independence(ours, x.numpy())
    assert permutation(lambda x: attnlib.attention(x, x, x, weights=False), x)


@pytest.fixture(scope="module")
def hugging_face():
    os.environ["HF_HUB_OFFLINE"] = "1"
    transformers = pytest.importorskip("transformers")
    small = dict(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)
    gpt2 = transformers.GPT2Config(vocab_size=11, n_positions=16, n_embd=8, n_layer=2, n_head=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return {
            "gpt2": transformers.GPT2LMHeadModel(gpt2),
            "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(**small, max_position_embeddings=16)),
            "bert": transformers.BertModel(transformers.BertConfig(**small, max_position_embeddings=16)),
        }


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_silent_on_hugging_face_decoders(hugging_face, name):
    model, ids = hugging_face[name], tokens()
    assert str(causality(model, ids)) == "Causal: no output changes when a later input does (6 positions)."
    assert causality(model, ids, training=True)
    assert batch_independence(model, ids, n_tokens=11)
    assert padding(lambda ids, real: model(ids, attention_mask=real.long()), ids, [6, 3, 4])
    assert not permutation(model, ids)
    assert gradients(model, ids)


def test_silent_on_bert(hugging_face):
    model, ids = hugging_face["bert"], tokens()
    report = causality(model, ids)
    assert str(report) == "Position 0 reads position 1: not causal (15 of 15 such pairs)."
    assert padding(lambda ids, real: model(ids, attention_mask=real.long()), ids, [6, 3, 4])
    assert not padding(lambda ids, real: model(ids), ids, [6, 3, 4])
    assert batch_independence(model, ids)
    assert str(gradients(model, ids)).startswith("No gradient reaches 2 of 39 parameters: pooler.dense.weight, pooler")
    found = gradients(model, ids, expect_zero=["pooler.*"])
    assert found
    assert str(found) == (
        "A gradient reaches every parameter (37 of 39 asked about). Practically none, no more than rounding, reaches "
        "encoder.layer.0.attention.self.key.bias, encoder.layer.1.attention.self.key.bias."
    )


# Gradients and learning.


class Parts(nn.Module):
    """A model some of whose parameters are left out."""

    def __init__(self, bug=""):
        super().__init__()
        self.bug = bug
        self.embed, self.first, self.second = nn.Embedding(11, D), nn.Linear(D, D), nn.Linear(D, 11)
        self.unused = nn.Linear(2, 2) if bug == "unused" else None

    def forward(self, ids):
        x = self.embed(ids)
        if self.bug == "detached":
            x = x.detach()
        x = self.first(x)
        x = x * 0 if self.bug == "times zero" else x
        x = (x - 1e3).relu() if self.bug == "dead" else x
        return self.second(x)


@pytest.mark.parametrize(
    ("bug", "sentence"),
    [
        ("", "A gradient reaches every parameter (5)."),
        ("unused", "No gradient reaches 2 of 7 parameters: unused.weight, unused.bias."),
        ("detached", "No gradient reaches 1 of 5 parameters: embed.weight."),
        (
            "times zero",
            "No gradient reaches 4 of 5 parameters: embed.weight, first.weight, first.bias, second.weight.",
        ),
        ("dead", "No gradient reaches 4 of 5 parameters: embed.weight, first.weight, first.bias, second.weight."),
    ],
)
def test_gradients(bug, sentence):
    report = gradients(Parts(bug), tokens())
    assert str(report) == sentence
    assert bool(report) == (bug == "")


owner = SimpleNamespace(model=nn.Linear(3, 2))


def test_gradients_of_a_model_that_a_function_takes_from_an_object():
    assert gradients(lambda x: owner.model(x), torch.randn(1, 4, 3))


def test_the_first_difference_is_the_smallest_part_that_holds_it():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 2)))
    other, x = deepcopy(model), torch.randn(2, 3)
    assert first_difference(model, other, x)
    other[1][1].bias.data += 1
    assert "Given equal input, 1.1 (Linear) is the first" in first_difference(model, other, x).sentence
    other = deepcopy(model)
    other[1].forward = lambda x: 2 * model[1](x)  # what stands around its parts
    assert "Given equal input, 1 (Sequential) is the first" in first_difference(model, other, x).sentence
    with pytest.raises(TypeError, match=r"reference must be a torch\.nn\.Module; got function"):
        first_difference(model, lambda x: x, x)
    layer, rows = attnlib.nn.EncoderLayer(8, 2, 16), torch.randn(1, 4, 8)
    other = deepcopy(layer)
    other.self_attention.register_forward_pre_hook(
        lambda _, args, told: (args, told | {"causal": True}), with_kwargs=True
    )
    assert "(EncoderLayer) is the first" in first_difference(layer, other, rows).sentence


def test_no_difference_is_rounding_or_nan_on_both_sides():
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(2, 3)
    other = deepcopy(model)
    other[0].weight.data *= 1 + 3e-6
    assert first_difference(model, other, x)
    assert not first_difference(model, other, x, tolerance=1e-7)
    assert not first_difference(model.double(), other.double(), x.double())  # no rounding there
    model[0].bias.data[0] = other[0].bias.data[0] = torch.nan
    other[0].weight.data = model[0].weight.data.clone()
    assert first_difference(model, other, x.double())
    other[0].bias.data[0] = 0
    assert not first_difference(model, other, x.double())


def test_gradients_of_what_is_expected_frozen_or_infinite():
    assert gradients(Parts("unused"), tokens(), expect_zero=["unused.*"])
    frozen = Parts("detached")
    frozen.embed.requires_grad_(False)
    assert str(gradients(frozen, tokens())) == "A gradient reaches every parameter (4)."
    scale = nn.Parameter(torch.zeros(()))
    root = Parts()
    root.scale = scale
    report = gradients(lambda ids: root(ids) + root.scale.sqrt(), tokens())
    assert str(report) == "The gradient of root.scale is NaN or infinite."
    assert not report
    softmax = nn.Sequential(nn.Linear(D, D), nn.Softmax(-1))
    assert gradients(softmax, floats())  # the plain sum of a softmax has no gradient at all
    with torch.no_grad():
        assert not gradients(Parts("detached"), tokens())


def test_overfits():
    x, layer = floats(), nn.Sequential(nn.Linear(D, 32), nn.Tanh(), nn.Linear(32, 1))
    before = [p.clone() for p in layer.parameters()]
    y = x[..., :1] - x[..., 1:2]
    report = overfits(layer, x, y, F.mse_loss)
    assert report
    assert report.matrix[-1] <= 0.05 * report.matrix[0] < report.matrix[-2]
    assert all(torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))
    assert all(p.grad is None for p in layer.parameters())
    assert "Lines: loss." in repr(report.picture())
    assert str(overfits(layer, x, y, F.mse_loss)) == str(report)
    blind = overfits(lambda_module(lambda x: x * 0, nn.Linear(D, 1)), x, y, F.mse_loss, steps=20)
    assert not blind
    assert str(blind).startswith("Does not fit one batch: loss ")
    assert not overfits(layer, x, y, F.mse_loss, steps=200, below=1e-12)
    exploding = overfits(layer, x, y, lambda out, y: (out - y).exp().exp().exp().sum() * 1e30, lr=10.0)
    assert "NaN or infinite after" in str(exploding)
    detached = overfits(layer, x, y, lambda out, y: F.mse_loss(out.detach(), y))
    assert str(detached) == "The loss has no gradient, so that nothing can be learned."


def lambda_module(before, layer):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(before(x))

    return Model()


# What a probe leaves behind, and what it cannot see.

PROBES = [
    causality,
    partial(padding, lengths=[6, 3, 4]),
    permutation,
    batch_independence,
    gradients,
]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("probe", PROBES, ids=["causality", "padding", "permutation", "batch", "gradients"])
def test_a_probe_leaves_no_trace(probe, training):
    model, x = SelfAttention("batch norm"), floats()
    model.train()
    model.out.eval()
    model(x).sum().backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    random, numbers, before = torch.get_rng_state(), np.random.get_state()[1].copy(), x.clone()  # noqa: NPY002
    probe(model, x, training=training)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(p.grad, grads[name]) for name, p in model.named_parameters() if p.grad is not None)
    assert torch.equal(torch.get_rng_state(), random)
    assert np.array_equal(np.random.get_state()[1], numbers)  # noqa: NPY002
    assert torch.equal(x, before)
    assert not any(module._forward_hooks for module in model.modules())


def test_random_numbers_of_numpy_are_the_same_at_every_call():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert causality(lambda x: x.cumsum(1) * float(np.random.random()), floats(), random=True)  # noqa: NPY002
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_probe_that_breaks_leaves_no_trace_either():
    model = Parts().train()

    def breaks(ids):
        model(ids)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        causality(breaks, tokens())
    assert model.training
    assert not model.embed._forward_hooks


def test_modules_that_a_function_mentions_are_in_eval_mode():
    layer = nn.Dropout(0.5).train()
    modes = []

    class Holder:
        def __init__(self):
            self.layer = layer

        def __call__(self, x):
            return call(x)

    def call(x, module=layer):
        modes.append(module.training)
        return module(x)

    def before_it_is_set(x):
        return (layer, call(x))[1] if x.ndim else later

    causality(before_it_is_set, floats())
    later = None

    class Nested(nn.Sequential):
        def forward(self, x):
            return call(x)

    for model in (call, lambda x: (layer, call(x))[1], partial(call, module=layer), Holder(), Nested(layer).forward):
        causality(model, floats())
    assert not any(modes)
    assert layer.training


def test_a_module_may_write_into_its_input():
    def rude(x):
        x += 1
        return x.cumsum(1)

    assert causality(rude, floats())
    embed = nn.Embedding(11, D)
    assert causality(lambda ids: embed(ids).add_(1).cumsum(1), tokens())


def test_what_cannot_be_seen_is_said():
    one = floats(2, 1)
    assert str(causality(nn.Linear(D, D), one)) == "Nothing to see: a sequence of one position has no later input."
    assert str(permutation(nn.Linear(D, D), one)) == "Nothing to see: one position has one order."
    assert str(padding(lambda x, real: x, one, [1, 1])) == "Nothing to see: no sequence is shorter than 1."
    alone = batch_independence(nn.Linear(D, D), floats(1))
    assert str(alone) == "Nothing to see: a batch of one has no other sequence."
    assert causality(SelfAttention(), floats(1, 2))
    assert not causality(SelfAttention("diagonal off by one"), floats(1, 2))
    assert str(causality(lambda x: x * 0, floats())).endswith(
        "(6 positions). Nor when any other does: this model reads nothing. "[:-1]
    )
    with torch.no_grad():
        assert causality(SelfAttention(), floats())
    rounded = causality(lambda x: x.cumsum(1).detach(), floats())
    assert str(rounded).endswith("The gradient was not looked at: the output has none.")
    table = torch.randn(11, 3)
    looked_up = causality(lambda ids: table[ids].cumsum(1), tokens())
    assert looked_up
    assert str(looked_up).endswith("The gradient was not looked at: no nn.Embedding reads the tokens.")
    assert not causality(lambda ids: table[ids].flip(1).cumsum(1).flip(1), tokens())


def test_a_leak_that_only_the_gradient_at_the_embedding_shows():
    embed = nn.Embedding(11, D)
    report = causality(lambda ids: embed(ids).cumsum(1) + 1e-9 * embed(ids).sum(1, keepdim=True), tokens())
    assert not report
    assert str(report).endswith("Only the gradient shows it.")


def test_positions_are_not_taken_for_tokens():
    embed, places = nn.Embedding(11, D), nn.Embedding(N, D)

    def model(ids):
        return places(torch.arange(N)) + embed(ids).cumsum(1)

    assert str(causality(model, tokens())).endswith("(6 positions).")


def test_answers_that_allow_no_probe():
    state = iter(range(1000))
    assert str(causality(lambda x: x + next(state), floats())).startswith("The same input gave two answers")
    nothing = attnlib.causal(N, like=floats()).tril(-1)
    blind = causality(lambda x: (x @ x.mT).masked_fill(~nothing, -torch.inf).softmax(-1) @ x, floats())
    assert str(blind) == "The output holds NaN, first at [0, 0, 0], so that nothing can be told."
    assert not blind

    def trapped(x):
        scores = (x @ x.mT + torch.zeros(N, N).masked_fill(~nothing, -torch.inf)).softmax(-1)
        return torch.where(scores.isnan(), 0.0, scores) @ x

    assert str(causality(trapped, floats())).startswith("The gradient of output 0 is NaN or infinite")
    assert causality(trapped, floats(), gradient=False)
    endless = causality(lambda x: x / 0, floats())
    assert str(endless) == "The gradient of output 0 is NaN or infinite, and so is the output."
    dropped = permutation(nn.Dropout(), floats(), training=True)
    assert str(dropped).startswith("The model draws random numbers")
    assert padding(lambda x, real: F.dropout(x, 0.5), floats(), [6, 3, 4], random=True)


@pytest.mark.parametrize("probe", [causality, partial(padding, lengths=[6, 3, 4]), batch_independence, gradients])
def test_dropout_that_is_never_switched_off_is_found(probe):
    layer = nn.Linear(D, D)

    def never_off(x, real=None):
        return F.dropout(layer(x), 0.3)

    report = probe(never_off, x=floats())
    assert not report
    assert str(report).startswith("The model draws random numbers in eval mode, as F.dropout(x, p) does without")
    assert probe(never_off, x=floats(), training=True)
    assert probe(never_off, x=floats(), random=True)
    assert probe(lambda x, real=None: F.dropout(layer(x), 0.3, layer.training), x=floats())


def test_random_numbers_in_the_padding_do_not_count():
    def noisy(x, real):
        return torch.where(real[..., None], x, torch.randn_like(x))

    assert padding(noisy, floats(), [6, 3, 4])


def test_infinite_outputs_are_compared_as_they_are():
    assert causality(lambda x: torch.cat([x.cumsum(1), torch.full_like(x, -torch.inf)], -1), floats())
    assert not causality(lambda x: torch.where(x[:, -1:] > 0, torch.inf, x), floats())


def test_change_is_relative_to_the_output_and_to_the_median():
    before = torch.tensor([[[1e6], [1.0], [1e-6]]])
    after = before + torch.tensor([[[1.0], [1e-3], [1e-6]]])
    assert change(before, after)[0].tolist() == pytest.approx([1e-6, 1e-3, 1e-6], rel=0.1)
    assert change(torch.zeros(1, 1, 1), torch.ones(1, 1, 1)).item() == torch.inf


def test_the_picture():
    report = causality(SelfAttention("diagonal off by one"), floats())
    assert repr(report.picture()) == (
        f"{str(report)[:-1]}. One plot. Across: input position. Up: output position. Grid of numbers: 6×6."
    )
    assert repr(report.picture("A leak")).startswith("A leak. One plot.")
    with warnings.catch_warnings(action="error"):
        padding(SelfAttention(), floats(), [6, 3, 4]).picture().png()
    with pytest.raises(ValueError, match="permutation has no matrix to draw; it says: Neither"):
        permutation(SelfAttention(), floats()).picture()
    assert repr(gradients(SelfAttention(), floats()).picture()).endswith("Lines: largest entry of its gradient.")


def test_every_kind_of_output():
    x = floats()
    output = type("Output", (), {})()
    output.last_hidden_state = x
    assert first_tensor(output) is x
    assert first_tensor(attnlib.Attended(x, None)) is x
    assert first_tensor([x, x]) is x
    assert torch.equal(first_tensor(x.numpy()), x)


LINEAR = nn.Linear(D, D)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: causality("model", floats()), TypeError, "model must be a function or a module; got str"),
        (lambda: causality(LINEAR, [1.0]), TypeError, "x must be a NumPy array or a torch tensor; got list"),
        (lambda: causality(LINEAR, floats().bool()), TypeError, "x must hold floating-point numbers or tokens.*bool"),
        (lambda: causality(LINEAR, floats(n=0)), ValueError, r"no empty axis; got .*3, 0, 8"),
        (lambda: causality(LINEAR, floats(), draws=0), ValueError, "draws must be at least 1; got 0"),
        (lambda: causality(LINEAR, floats(), seed=1.5), TypeError, "seed must be an integer; got float"),
        (lambda: overfits(LINEAR, floats(), 0, F.mse_loss, seed="0"), TypeError, "seed must be an integer; got str"),
        (lambda: causality(LINEAR, floats(), tolerance="1"), TypeError, "tolerance must be a number; got str"),
        (lambda: causality(LINEAR, floats(), tolerance=-1), ValueError, "tolerance must not be negative"),
        (
            lambda: causality(lambda x: x.mean(1), floats()),
            ValueError,
            r"must return \(batch, n, ...\) = \(3, 6, ...\)",
        ),
        (lambda: causality(lambda x: {"out": x}, floats()), TypeError, "model must return a tensor.*got dict"),
        (lambda: permutation(lambda x: x.sum(), floats()), ValueError, r"must return \(batch, ...\).*got \(\)"),
        (lambda: causality(Parts(), tokens() * 0), ValueError, "x must hold two different tokens, or n_tokens"),
        (lambda: causality(Parts(), tokens(), n_tokens=5), ValueError, "n_tokens must be at least 2 and above.*got 5"),
        (lambda: padding(LINEAR, floats(), [1, 2]), ValueError, r"lengths must be 3 numbers up to 6.*got \[1, 2\]"),
        (lambda: padding(LINEAR, floats(), [1, 2, 7]), ValueError, r"lengths must be 3 numbers up to 6"),
        (lambda: padding(LINEAR, floats(), [1, 2, 1.5]), TypeError, r"lengths\[2\] must be an integer"),
        (
            lambda: gradients(lambda x: x, floats()),
            TypeError,
            "model must be a module, or a function that mentions one",
        ),
        (lambda: gradients(nn.ReLU(), floats()), ValueError, "model must have a parameter with requires_grad"),
        (lambda: gradients(LINEAR, floats(), expect_zero=["bais"]), ValueError, "got 'bais', which fits none of"),
        (lambda: overfits(lambda x: x, floats(), 0, F.mse_loss), TypeError, "model must be a module"),
        (lambda: overfits(LINEAR, floats(), 0, lambda out, y: out), ValueError, "loss must return one number"),
        (lambda: overfits(LINEAR, floats(), 0, lambda out, y: -out.square().sum()), ValueError, "starts below zero"),
        (lambda: overfits(LINEAR, floats().numpy(), 0, F.mse_loss), TypeError, "x must be a torch tensor"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
