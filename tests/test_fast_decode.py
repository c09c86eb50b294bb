"""Steps of one position, planned when a text begins, against the layers that they stand for."""

import pickle
from copy import deepcopy

import pytest
import torch
from torch import nn

from attnlib.decoding import beam
from attnlib.nn import Decoder, MultiHeadAttention, Transformer, TransformerConfig
from attnlib.nn.fast_decode import plan_decoding
from attnlib.scores import dot

SOURCE = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])


class Calls:
    """Counts how often a module is called, without a hook, which would be noticed."""

    def __init__(self, monkeypatch):
        self.count, forward = 0, Decoder.forward

        def counted(*args, **options):
            self.count += 1
            return forward(*args, **options)

        monkeypatch.setattr(Decoder, "forward", counted)


@pytest.fixture
def calls(monkeypatch):
    return Calls(monkeypatch)


def _model(**options):
    torch.manual_seed(0)
    sizes = {"n_source": 20, "n_target": 25, "d_model": 16, "n_heads": 4}
    model = Transformer(TransformerConfig(**sizes | options)).double().eval()
    for p in model.parameters():
        if p.ndim == 1:
            nn.init.normal_(p)  # biases and gains that matter
    return model


def _begun(model, source=SOURCE):
    state = model.prefill(source, n_max=9)
    model.step(torch.tensor([[1, 7], [1, 8]])[: len(source)], state)
    return state


def _step(model, state, token=3):
    return model.step(torch.full((len(state.caches[0][0].k), 1), token), state)


def _by_layers(model, state, token=3):
    state = deepcopy(state)
    assert state.plan is None
    return _step(model, state, token)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "rms", "activation": "swiglu", "n_kv_heads": 2, "bias": False},
        {"activation": "gelu", "n_kv_heads": 1, "position": "rotary"},
        {"activation": "silu", "position": "alibi", "final_norm": False, "n_decoder_layers": 3},
        {"position": "relative", "n_kv_heads": 2, "final_norm": True, "norm": "rms"},
        {"position": "learned", "norm_embeddings": True, "tie": "none", "d_ff": 7},
    ],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_a_step_is_what_the_layers_do(calls, options, norm_first, rows):
    model = _model(norm_first=norm_first, **options)
    state = _begun(model, SOURCE[:rows])
    want, called = _by_layers(model, state), calls.count
    torch.testing.assert_close(_step(model, state), want, atol=1e-12, rtol=0)
    assert calls.count == called, "the layers were run"
    assert state.length == 3


def test_several_positions_go_through_the_layers(calls):
    model = _model()
    _begun(model)
    assert calls.count == 1


def _hook(model):
    model.decoder.layers[1].feed_forward.linear1.register_forward_hook(lambda module, args, out: out * 0)


def _early_hook(model):
    model.decoder.layers[0].cross_attention.register_forward_pre_hook(lambda module, args: (args[0] * 0, *args[1:]))


def _without(model):
    model.decoder.layers[0].self_attention = model.decoder.layers[0].self_attention.without(1)


def _new_weight(model):
    model.decoder.layers[0].cross_attention.out_proj.weight = nn.Parameter(torch.zeros(16, 16, dtype=torch.float64))


def _new_norm(model):
    model.decoder.norm = nn.Identity().eval()


def _own_forward(model):
    feed = model.decoder.layers[0].feed_forward
    feed.forward = lambda x: 0 * x


def _cut_off(model):
    model.decoder.layers[0].cross_attention_residual.after = lambda x, y: x


def _other_activation(model):
    model.decoder.layers[0].feed_forward.activation = torch.sigmoid


def _other_class(model):
    model.decoder.layers[0].self_attention.__class__ = Louder


def _other_eps(model):
    model.decoder.layers[0].feed_forward_residual.norm.eps = 0.5


def _other_data(model):
    project = model.decoder.layers[0].cross_attention.in_proj
    project.weight.data = project.weight.data * -1


PLANNED = [_without, _new_weight, _new_norm, _other_activation, _other_eps, _other_data]  # a plan can be made of these
CHANGES = [*PLANNED, _hook, _early_hook, _own_forward, _cut_off, _other_class]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_before_a_text_holds_for_it(calls, change):
    model = _model()
    untouched = _step(model, _begun(model))
    change(model)
    state = _begun(model)
    want, called = _by_layers(model, state), calls.count
    torch.testing.assert_close(got := _step(model, state), want, atol=1e-12, rtol=0)
    assert (got - untouched).abs().max() > 1e-6
    assert calls.count == called + (change not in PLANNED)


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_within_a_text_is_for_the_next(calls, change):
    model = _model()
    untouched, state = _step(model, _begun(model)), _begun(model)
    change(model)
    called = calls.count
    got = _step(model, state)
    assert calls.count == called
    torch.testing.assert_close(got, untouched, atol=1e-12, rtol=0)
    assert (_step(model, _begun(model)) - untouched).abs().max() > 1e-6


def test_training_drops():
    model = _model(dropout=0.5)
    model.decoder.layers[0].feed_forward.train()
    state = _begun(model)
    one, two = (_step(model, deepcopy(state)) for _ in range(2))
    assert not torch.equal(one, two)


def test_another_score_is_for_the_layers():
    model = _model()
    assert plan_decoding(model.decoder) is not None
    model.decoder.layers[0].cross_attention.score = dot
    assert plan_decoding(model.decoder) is None


def test_weights_that_learned_are_used():
    model = _model()
    state = _begun(model)
    with torch.no_grad():
        model.decoder.layers[0].cross_attention.in_proj.weight.mul_(-1)
    torch.testing.assert_close(_step(model, state), _by_layers(model, _rewound(state)), atol=1e-12, rtol=0)


def _rewound(state):
    state.rewind(state.length - 1)
    return state


class Louder(MultiHeadAttention):
    def forward(self, *args, **options):
        said = super().forward(*args, **options)
        return said._replace(out=3 * said.out)


def test_what_no_kernel_can_do_goes_through_the_layers():
    model = _model(n_heads=16)  # one number each: a score is infinite, but never the sum of two infinities
    state = _begun(model)
    with torch.no_grad():
        model.decoder.layers[0].self_attention.in_proj.weight[:32].mul_(1e160)  # scores overflow
    got = _step(model, state)
    assert state.length == 3
    assert got.isfinite().all()


def test_a_step_that_failed_was_not_made():
    model = _model()
    state = _begun(model)
    with torch.no_grad():
        model.decoder.layers[1].self_attention.in_proj.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="q holds NaN"):
        _step(model, state)
    assert [own.length for own, _ in state.caches] == [2, 2]
    model.decoder.layers[1].register_forward_pre_hook(_interrupt)
    state.plan = None
    with pytest.raises(KeyboardInterrupt):
        _step(model, state)
    assert [own.length for own, _ in state.caches] == [2, 2]


def _interrupt(*_):
    raise KeyboardInterrupt


def test_a_full_cache_is_named():
    model = _model()
    state = model.prefill(SOURCE, n_max=1)
    _step(model, state)
    with pytest.raises(ValueError, match="it holds 1 of 1 positions; got 1 more"):
        _step(model, state)
    with pytest.raises(ValueError, match=r"cache was made for .* = \(2, 4, 4\); got \(3, 4, 4\)"):
        model.step(torch.ones(3, 1, dtype=torch.long), model.prefill(SOURCE, n_max=2))


def test_a_state_can_be_kept():
    model = _model()
    state = _begun(model)
    kept = pickle.loads(pickle.dumps(state))
    torch.testing.assert_close(_step(model, kept), _step(model, state), atol=1e-12, rtol=0)


def test_beams_use_it(calls):
    model = _model()
    found = beam(model, SOURCE, 6, width=3)
    assert calls.count == 0
    assert found.tokens.shape[0] == 2
