"""A GPU gives what the processor gives. Skipped where there is none."""

import pytest
import torch

from attnlib import Transformer, TransformerConfig, attention, decoding, masks, models

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use")

N = 40
CLOSE = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def arrays():
    """A query, keys and values, and a mask that leaves the fourth query no key and the others half of them."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, N, 16, generator=generator) for _ in range(3))
    mask = torch.rand(N, N, generator=generator) < 0.5
    mask[3] = False
    return q, k, v, mask


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize(
    "options",
    [
        lambda mask, like: {},
        lambda mask, like: {"causal": True},
        lambda mask, like: {"mask": mask.to(like.device)},
        lambda mask, like: {"mask": mask[:, :1].to(like.device)},
        lambda mask, like: {"bias": torch.where(mask, 0.0, -torch.inf).to(like)},
        lambda mask, like: {"bias": torch.tensor(2.0).to(like)},
        lambda mask, like: {"mask": masks.Band(back=3)},
        lambda mask, like: {"mask": masks.padding([N, 7], like=like)[:, None]},
    ],
    ids=["all", "causal", "mask", "mask of queries", "bias", "one number", "band", "padding"],
)
def test_attention_equals_that_of_the_processor(options, dtype, weights):
    q, k, v, mask = arrays()
    wanted = attention(q.double(), k.double(), v.double(), **options(mask, q.double())).out
    q, k, v = (x.to("cuda", dtype).requires_grad_() for x in (q, k, v))
    out = attention(q, k, v, weights=weights, **options(mask, q)).out
    assert (out.device, out.dtype) == (q.device, dtype)
    torch.testing.assert_close(out.double().cpu(), wanted, atol=CLOSE[dtype], rtol=0)
    assert (out[wanted.to("cuda") == 0] == 0).all()  # where no key is left
    out.sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("place", range(3))
def test_a_nan_is_refused(place, weights):
    qkv = [x.to("cuda", torch.float16) for x in arrays()[:3]]
    qkv[place][0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match=f"{'qkv'[place]} holds NaN"):
        attention(*qkv, weights=weights)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary", "alibi", "relative", "none"])
def test_models_write_what_they_write_on_the_processor(position):
    torch.manual_seed(0)
    texts = torch.randint(3, 40, (3, 9))
    sizes = dict(d_model=32, n_heads=4, position=position)
    translator = Transformer(TransformerConfig(n_source=40, n_target=40, **sizes)).eval()
    gpt = models.GPT(models.GPTConfig(n_tokens=40, n_max=64, n_layers=2, **sizes)).eval()
    for model in (translator, gpt):
        for write in (decoding.greedy, decoding.beam):
            wanted = write(model.cpu(), texts, 12)
            found = write(model.cuda(), texts.cuda(), 12)
            tokens, right = (x if isinstance(x, torch.Tensor) else x.tokens for x in (found, wanted))
            assert tokens.is_cuda
            assert torch.equal(tokens.cpu(), right)
