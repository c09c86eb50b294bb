"""Attention under `torch.func` and forward-mode derivatives, by every road, and modules under autocast."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import hessian, jacfwd, jacrev, jvp, vmap

from attnlib import attention, masks, scores
from attnlib.models import BERT, GPT, BERTConfig, GPTConfig
from attnlib.nn import DecoderLayer, EncoderLayer, MultiHeadAttention, Transformer, TransformerConfig

torch.manual_seed(0)
DRAW = partial(torch.randn, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Q, K, V = DRAW(2, 6, 4), DRAW(2, 6, 4), DRAW(2, 6, 4)  # one size: else torch takes no fused kernel
TANGENT, W = DRAW(6, 4), DRAW(4, 4)
SOME = torch.ones(6, 6, dtype=torch.bool).tril(2)
SOME[2] = False  # a query with nothing left

SCORES = {
    "scaled_dot": scores.scaled_dot,
    "gaussian": scores.gaussian,
    "bilinear": partial(scores.bilinear, w=W),
    "additive": partial(scores.additive, w_q=W, w_k=W, w=W[0]),
}
ROADS = {
    "weights": {},
    "no weights": {"weights": False},
    "block": {"weights": False, "block": 4},
}
HIDING = {
    "nothing": {},
    "causal": {"causal": True},
    "mask": {"mask": SOME},
    "bias": {"bias": DRAW(6, 6)},
    "band": {"mask": masks.Band(back=2, dilation=2, global_positions=[1])},
}
CASES = {
    f"{score}, {road}, {hiding}": {"score": SCORES[score]} | ROADS[road] | HIDING[hiding]
    for score, road, hiding in product(SCORES, ROADS, HIDING)
    if (road, hiding) != ("block", "band")
}


@pytest.fixture(params=CASES)
def attend(request):
    return lambda q, k, v: attention(q, k, v, **CASES[request.param]).out


def test_vmap_gives_what_a_loop_gives(attend):
    loop = torch.stack([attend(*rows) for rows in zip(Q, K, V, strict=True)])
    torch.testing.assert_close(vmap(attend)(Q, K, V), loop)
    shared = torch.stack([attend(q, K[0], V[0]) for q in Q])
    torch.testing.assert_close(vmap(attend, in_dims=(0, None, None))(Q, K[0], V[0]), shared)


def test_forward_mode_agrees_with_backward_mode(attend):
    def of_q(q):
        return attend(q, K[0], V[0])

    jacobian = jacrev(of_q)(Q[0])  # (n_q, d_v, n_q, d)
    want = (jacobian * TANGENT).sum((-2, -1))
    torch.testing.assert_close(jvp(of_q, (Q[0],), (TANGENT,))[1], want)
    torch.testing.assert_close(jacfwd(of_q)(Q[0]), jacobian)
    with forward_ad.dual_level():
        out = of_q(forward_ad.make_dual(Q[0], TANGENT))
        torch.testing.assert_close(forward_ad.unpack_dual(out).tangent, want)


def test_second_derivatives_in_a_batch(attend):
    def loss(q):
        return attend(q, K[0], V[0]).square().sum()

    slope = 1e-6 * TANGENT
    grad = torch.func.grad(loss)
    want = (grad(Q[0] + slope) - grad(Q[0] - slope)) / 2e-6
    got = (vmap(hessian(loss))(Q)[0] * TANGENT).sum((-2, -1))
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("error:There is a performance drop")
def test_gradients_under_vmap_are_those_of_a_loop(attend):
    def slopes(q, k, v):
        return torch.func.grad(lambda *x: (attend(*x) * TANGENT).sum(), argnums=(0, 1, 2))(q, k, v)

    loop = [torch.stack(x) for x in zip(*[slopes(*rows) for rows in zip(Q, K, V, strict=True)], strict=True)]
    torch.testing.assert_close(list(vmap(slopes)(Q, K, V)), loop)
    twice = vmap(vmap(slopes, in_dims=(0, None, 0)), in_dims=(0, 0, None))(Q[None].expand(2, -1, -1, -1), K, V)
    for i, j in product(range(2), repeat=2):
        torch.testing.assert_close([x[i, j] for x in twice], list(slopes(Q[j], K[i], V[j])))


@pytest.mark.filterwarnings("error:There is a performance drop")
def test_under_vmap_each_model_has_its_own_mask_and_heads_share_keys():
    q, k, v = DRAW(3, 2, 4, 2, 6, 8), DRAW(2, 4, 1, 6, 8, 3), DRAW(2, 4, 1, 6, 8)  # vmap's axis: first, last, none
    mask = torch.rand(3, 2, 1, 1, 6, 6, generator=torch.Generator().manual_seed(0)) < 0.6

    def slopes(q, k, v, mask):
        run = partial(attention, mask=mask, weights=False)
        return torch.func.grad(lambda *x: run(*x).out.square().sum(), argnums=(0, 1, 2))(q, k, v)

    got = vmap(slopes, in_dims=(0, -1, None, 0))(q, k, v, mask)
    for i in range(3):
        torch.testing.assert_close([x[i] for x in got], list(slopes(q[i], k[..., i], v, mask[i])))


def test_second_derivatives_in_backward_mode(attend):
    def loss(q):
        return attend(q, K[0], V[0]).square().sum()

    torch.testing.assert_close(jacrev(torch.func.grad(loss))(Q[0]), hessian(loss)(Q[0]))


def test_outside_of_them_numbers_are_looked_at_again():
    vmap(lambda q, k, v: attention(q, k, v).out)(Q, K, V)
    with pytest.raises(ValueError, match="q holds NaN in 24 of 48 entries"):
        attention(torch.cat([Q[:1] * torch.nan, Q[1:]]), K, V)


def test_a_dropped_weight_under_vmap_is_refused_by_torch_unless_its_randomness_is_said():
    def trained(q, k, v):
        return attention(q, k, v, dropout=0.5).out

    with pytest.raises(RuntimeError, match="randomness"):
        vmap(trained)(Q, K, V)
    assert vmap(trained, randomness="different")(Q, K, V).shape == (2, 6, 4)


def _modules():
    tokens, rows = torch.randint(4, 20, (2, 7)), torch.randn(2, 5, 16)
    small = {"n_tokens": 20, "n_max": 16, "d_model": 16, "n_heads": 4, "n_layers": 2}
    padded = tokens.clone()
    padded[1, 5:] = 0
    yield "heads", MultiHeadAttention(16, 4), (rows,), {"mask": torch.rand(2, 5, 5) < 0.8}
    yield "encoder layer", EncoderLayer(16, 4, 32), (rows,), {"causal": True, "bias": torch.randn(4, 5, 5)}
    yield "decoder layer", DecoderLayer(16, 4, 32), (rows, torch.randn(2, 7, 16)), {"causal": True}
    for position in ("sinusoidal", "relative", "alibi", "rotary", "learned"):
        config = TransformerConfig(n_source=20, n_target=20, d_model=16, n_heads=4, position=position)
        yield f"Transformer, {position}", Transformer(config), (padded, tokens), {}
    yield "GPT", GPT(GPTConfig(**small)), (tokens,), {}
    yield "BERT", BERT(BERTConfig(**small)), (tokens,), {"mask": padded != 0}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("module", "inputs", "options"), [pytest.param(*rest, id=name) for name, *rest in _modules()])
def test_autocast_runs_in_bfloat16_and_learns(module, inputs, options, weights):
    options = options if isinstance(module, BERT) else options | {"weights": weights}
    want = module(*inputs, **options)
    with torch.autocast("cpu", torch.bfloat16):
        got = module(*inputs, **options)
    want, got = (x if isinstance(x, torch.Tensor) else x[0] for x in (want, got))
    torch.testing.assert_close(got.float(), want, rtol=0.05, atol=0.05)
    assert not torch.equal(got.float(), want)
    got.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("scaled_dot")])
def test_attention_itself_under_autocast(name):
    options = {key: x.float() if key == "bias" else x for key, x in CASES[name].items()}
    q, k, v = (x.float() for x in (Q, K, V))
    with torch.autocast("cpu", torch.bfloat16):
        got = attention(q, k, v, **options).out
    torch.testing.assert_close(got.float(), attention(q, k, v, **options).out, rtol=0.05, atol=0.05)
    mixed = q.requires_grad_(), k.bfloat16(), v  # as behind a layer of one's own, which autocast left alone
    with torch.autocast("cpu", torch.bfloat16):
        again = attention(*mixed, **options).out
    torch.testing.assert_close(again.float(), got.float(), rtol=0.05, atol=0.05)
    again.float().sum().backward()
    assert q.grad.dtype == torch.float32


def test_autocast_leaves_double_precision_alone():
    q, k, v = (x.float() for x in (Q, K, V))
    with torch.autocast("cpu"), pytest.raises(TypeError, match=r"one dtype; got .*float32 and .*float64"):
        attention(q, k.double(), v)
    with pytest.raises(TypeError, match=r"one dtype; got .*float32 and .*bfloat16"):
        attention(q, k.bfloat16(), v)
