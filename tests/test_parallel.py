"""One model over two and four processes is the model in one process, and sends what the formulas say."""

from __future__ import annotations

import os
import signal
import sys
from copy import deepcopy
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn

from attnlib import attention, causal, parallel
from attnlib.models import GPT, GPTConfig
from attnlib.nn import DecoderLayer, EncoderLayer, MultiHeadAttention
from attnlib.parallel import steps

SIZES = dict(n_tokens=50, n_max=64, d_model=32, n_heads=4, n_layers=2)
WAYS = [steps.texts, steps.weights, steps.heads, steps.positions]


def model_and_tokens(seed=0, **options):
    torch.manual_seed(seed)
    return GPT(GPTConfig(**SIZES | options)), torch.randint(50, (8, 65))


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("position", ["learned", "rotary"])
def test_a_step_in_several_processes_is_a_step_in_one_and_sends_what_the_formulas_say(way, n, position):
    model, tokens = model_and_tokens(position=position)
    alone = steps.alone(deepcopy(model), tokens)
    found = parallel.run(way, n, model, tokens)
    assert sum(step.loss for step in found) / n == pytest.approx(alone.loss, abs=2e-6)
    for step in found:
        for name, gradient in alone.gradients.items():
            torch.testing.assert_close(step.gradients[name], gradient, atol=1e-7, rtol=1e-4, msg=name)
        if sys.platform == "linux":  # whose kernel counts bytes
            assert 1 <= step.sent / formula(way, n, model, tokens) <= 1.03 + 1000 / step.sent


def formula(way, n, model, tokens):
    """How many bytes each of ``n`` processes sends."""
    weights = 4 * sum(p.numel() for p in model.parameters())
    in_layers = 4 * sum(p.numel() for p in model.layers.parameters())
    rows = 4 * tokens.shape[0] * (tokens.shape[1] - 1) * SIZES["d_model"]  # bytes of what goes from layer to layer
    layers, share = SIZES["n_layers"], (n - 1) / n
    return {
        steps.texts: 2 * share * weights,
        # Gathered once, and layers again for the way back; gloo scatters a sum by giving it to all.
        steps.weights: (3 * weights + in_layers) * share,
        steps.heads: 4 * layers * 2 * share * rows,
        steps.positions: 2 * layers * 2 * share * rows + 2 * share * weights,
    }[way]


def test_parameters_and_heads_are_held_in_parts():
    model, tokens = model_and_tokens()
    whole = sum(p.numel() for p in model.parameters())
    assert sum(step.held for step in parallel.run(steps.weights, 4, model, tokens)) == whole
    cut = sum(p.numel() for name, p in model.named_parameters() if "layers" in name and p.ndim == 2)
    held = {step.held for step in parallel.run(steps.heads, 4, model, tokens)}
    assert len(held) == 1
    assert whole - cut < held.pop() < whole - 0.7 * cut  # the first biases are shared, too


def ring(arrays, options, dtype=torch.float64):
    rank, n = dist.get_rank(), dist.get_world_size()
    q, k, v = (x.chunk(n, dim=-2)[rank].clone().requires_grad_() for x in arrays)
    out = parallel.ring_attention(q, k, v, **options)
    out.square().sum().backward()
    return [x.detach() for x in (out, q.grad, k.grad, v.grad)]


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_the_ring_is_attention(n, masked):
    rng = torch.Generator().manual_seed(n)
    arrays = [torch.randn(2, 3, 12, d, generator=rng, dtype=torch.float64) for d in (4, 4, 5)]
    arrays[0][0, 0, 3] *= 300  # scores that would overflow an exponential
    found = parallel.run(ring, n, arrays, {"causal": masked})
    whole = [x.clone().requires_grad_() for x in arrays]
    out = attention(*whole, causal=masked).out
    out.square().sum().backward()
    for part, expected in zip(zip(*found, strict=True), [out, *(x.grad for x in whole)], strict=True):
        torch.testing.assert_close(torch.cat(part, dim=-2), expected.detach(), atol=1e-10, rtol=1e-10)


def gated_and_grouped(layer, x):
    out = parallel.shard_heads(layer)(x, causal=True).out
    out.square().sum().backward()
    return out.detach(), parallel.gather_heads(layer), parallel.gather_heads(layer, of="gradients")


def test_groups_of_heads_and_gates_are_shared_too():
    torch.manual_seed(1)
    layer, x = EncoderLayer(16, 4, 24, n_kv_heads=2, activation="swiglu"), torch.randn(2, 5, 16)
    (out, weights, gradients), _ = parallel.run(gated_and_grouped, 2, layer, x)
    expected = layer(x, causal=True).out
    expected.square().sum().backward()
    torch.testing.assert_close(out, expected.detach(), atol=1e-5, rtol=1e-5)
    for name, parameter in layer.named_parameters():
        assert torch.equal(weights[name], parameter)
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-4, rtol=1e-4, msg=name)


def crossed(layer, x, memory):
    return parallel.shard_heads(layer)(x, memory).out.detach()


def test_attention_to_a_memory_is_shared_too():
    torch.manual_seed(2)
    layer, x, memory = DecoderLayer(16, 4, 24).eval(), torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    for out in parallel.run(crossed, 4, layer, x, memory):
        torch.testing.assert_close(out, layer(x, memory).out.detach(), atol=1e-5, rtol=1e-5)


def what_fails(call):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return None


def with_dropout():
    return what_fails(lambda: parallel.shard_heads(EncoderLayer(8, 2, 8, dropout=0.1)))


def with_three_heads():
    return what_fails(lambda: parallel.shard_heads(MultiHeadAttention(9, 3)))


def with_a_bias():
    layer = parallel.shard_heads(MultiHeadAttention(8, 2))
    return what_fails(lambda: layer(torch.ones(1, 3, 8), bias=torch.zeros(2, 3, 3)))


def with_a_mask_round():
    layer = parallel.shard_positions(MultiHeadAttention(8, 2))
    return what_fails(lambda: layer(torch.ones(1, 3, 8), mask=causal(3)))


def with_other_keys_round():
    layer = parallel.shard_positions(MultiHeadAttention(8, 2))
    return what_fails(lambda: layer(torch.ones(1, 3, 8), torch.ones(1, 3, 8)))


def with_other_lengths():
    x = torch.ones(2 + dist.get_rank(), 4)
    return what_fails(lambda: parallel.ring_attention(x, x, x))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (with_dropout, "dropout must be 0 where processes share heads; got 0.1"),
        (with_three_heads, "n_heads must be a multiple of the 2 processes; got 3"),
        (with_a_bias, "bias must be None where processes share heads"),
        (with_a_mask_round, "mask must be left out where positions are shared"),
        (with_other_keys_round, "x_k and cache must be left out"),
        (with_other_lengths, "every process must have as many positions; got 2 to 3"),
    ],
)
def test_what_cannot_be_shared_is_named(function, words):
    for said in parallel.run(function, 2):
        assert words in said


def test_alone_there_is_no_group():
    x = torch.ones(2, 4)
    for call in (partial(parallel.ring_attention, x, x, x), partial(parallel.shard_heads, nn.Linear(2, 2))):
        with pytest.raises(RuntimeError, match="needs a process group"):
            call()


def one_fails(failing):
    if dist.get_rank() == failing:
        raise ValueError("no such thing")
    dist.barrier()


def one_is_killed(failing):
    if dist.get_rank() == failing:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def one_waits(failing):
    if dist.get_rank() != failing:
        dist.barrier()
    else:
        signal.pause()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (one_fails, "process 2 of 4 failed: ValueError: no such thing"),
        (one_is_killed, r"process 2 of 4 was killed \(SIGKILL\)"),
        (one_waits, "the 4 processes were not done after 5 seconds, and were ended"),
    ],
)
def test_when_one_of_four_ends_all_end(function, words):
    with pytest.raises(RuntimeError, match=words):
        parallel.run(function, 4, 2, seconds=5 if function is one_waits else 60)


def test_a_function_that_cannot_be_imported_is_named():
    with pytest.raises(TypeError, match="function must be one that other processes can import"):
        parallel.run(lambda: 1, 2)
    with pytest.raises(ValueError, match="n_processes"):
        parallel.run(one_fails, 0)


def test_one_of_four_is_killed_and_the_run_goes_on_to_the_same_weights(tmp_path):
    model, tokens = model_and_tokens()
    whole = parallel.run(steps.train, 4, model, tokens, tmp_path / "whole", 12)
    with pytest.raises(RuntimeError, match=r"process 2 of 4 was killed \(SIGKILL\)"):
        parallel.run(steps.train, 4, model, tokens, tmp_path / "cut", 12, 9)
    again = parallel.run(steps.train, 4, model, tokens, tmp_path / "cut", 12)
    for name, weight in whole[0].items():
        assert all(torch.equal(weight, weights[name]) for weights in again), name
