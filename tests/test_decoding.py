"""Decoding, against itself without a cache, against exhaustive search, and against Hugging Face's."""

from __future__ import annotations

import os
from itertools import product
from math import exp

import pytest
import torch
from test_transformer import _bart, _from_bart
from torch import nn

from attnlib.decoding import beam, greedy, probabilities, sample, stream
from attnlib.decoding.sampling import likeliest
from attnlib.nn import Seq2Seq, Transformer, TransformerConfig

POSITIONS = ["none", "sinusoidal", "learned", "relative", "alibi", "rotary"]
END = 2


def _model(seed=0, peaked=5.0, **options):
    torch.manual_seed(seed)
    sizes = {"n_source": 12, "n_target": 9, "d_model": 16}
    model = Transformer(TransformerConfig(**(sizes | {"tie": "none"} | options))).double()
    with torch.no_grad():
        model.lm_head.weight.mul_(peaked)
    return model


def _recurrent(seed=0, n_target=9, **options):
    torch.manual_seed(seed)
    model = Seq2Seq(12, n_target, d_model=8, **options).double()
    with torch.no_grad():
        model.out.weight.mul_(8)
    return model


MODELS = {
    "transformer": _model,
    "transformer, post-norm, grouped": lambda: _model(norm_first=False, n_kv_heads=2, position="rotary"),
    "gru": _recurrent,
    "lstm, bahdanau": lambda: _recurrent(cell="lstm", attend="bahdanau"),
    "rnn, luong": lambda: _recurrent(cell="rnn", attend="luong", bidirectional=True),
}


def _sources(batch=6):
    source = torch.randint(4, 12, (batch, 5), generator=torch.Generator().manual_seed(3))
    source[0, 3:] = 0
    source[1, 1:] = 0
    return source


class Forgetful:
    """The same model without a cache: everything is read anew at every step."""

    def __init__(self, model):
        self.model = model.eval()

    def prefill(self, source, n_max):
        return Read(source, source[:, :0])

    def step(self, tokens, state):
        state.target = torch.cat([state.target, tokens], dim=1)
        lengths = () if isinstance(self.model, Transformer) else ((state.source != 0).sum(1),)
        return self.model(state.source, *lengths, state.target).logits[:, -tokens.shape[1] :]


class Read:
    def __init__(self, source, target):
        self.source, self.target = source, target

    def select(self, rows):
        return Read(self.source[rows], self.target[rows])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("end", [2, 5, 7])
def test_greedy_is_the_likeliest_token_again_and_again(position, norm_first, end):
    model, source = _model(position=position, norm_first=norm_first, end=end), _sources()
    model.eval()
    want = torch.full((len(source), 1), model.config.start)
    for _ in range(7):
        token = model(source, want).logits[:, -1:].argmax(-1)
        done = (want[:, 1:] == end).any(1, keepdim=True)
        want = torch.cat([want, token.where(~done, model.config.pad)], dim=1)
    got, want = greedy(model, source, 7), want[:, 1:]
    assert torch.equal(got, want[:, : got.shape[1]])
    assert (want[:, got.shape[1] :] == model.config.pad).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("prompt", [0, 2])
def test_the_cache_changes_nothing(name, prompt):
    model, source = MODELS[name](), _sources()
    told = torch.tensor([[4, 7]] * len(source))[:, :prompt] if prompt else None
    for decode in (
        lambda m: greedy(m, source, 8, prompt=told),
        lambda m: sample(m, source, 8, seed=1, temperature=1.5, prompt=told),
        lambda m: beam(m, source, 8, width=4, n_best=3, length_penalty=0.7, prompt=told).tokens,
        lambda m: torch.stack(list(stream(m, source, 8, prompt=told)), dim=1),
    ):
        assert torch.equal(decode(model), decode(Forgetful(model)))
    found, slow = (beam(m, source, 8, n_best=4, prompt=told) for m in (model, Forgetful(model)))
    torch.testing.assert_close(found.scores, slow.scores)


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_is_its_sentences_one_by_one(name):
    model, source = MODELS[name](), _sources()
    whole = beam(model, source, 8, width=3, n_best=2, length_penalty=1.0)
    for i, row in enumerate(source):
        alone = beam(model, row[None, : int((row != 0).sum())], 8, width=3, n_best=2, length_penalty=1.0)
        n = alone.tokens.shape[2]
        assert torch.equal(whole.tokens[i, :, :n], alone.tokens[0])
        assert (whole.tokens[i, :, n:] == 0).all()
        torch.testing.assert_close(whole.scores[i], alone.scores[0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("penalty", [0.0, 0.6, 3.0])
def test_a_beam_of_one_is_greedy(name, penalty):
    model, source = MODELS[name](), _sources()
    found, want = beam(model, source, 9, width=1, length_penalty=penalty), greedy(model, source, 9)
    assert torch.equal(found.tokens[:, 0], want)


def _log_p(model, source, tokens):
    log_p = model(source, torch.tensor([[1, *tokens[:-1]]])).logits[0].log_softmax(-1)
    return log_p[torch.arange(len(tokens)), torch.tensor(tokens)].sum().item()


def _exhaustive(model, source, n_max, penalty, size):
    """Every sequence there is: those that end, and those of ``n_max`` tokens."""
    texts = [(*body, END) for n in range(n_max) for body in product([w for w in range(size) if w != END], repeat=n)]
    texts += product([w for w in range(size) if w != END], repeat=n_max)
    scores = {text: _log_p(model, source, text) / ((5 + len(text)) / 6) ** penalty for text in texts}
    return sorted(scores.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_full_beam_is_exhaustive_search(seed, penalty):
    model, source = _model(seed, n_target=6, peaked=2.0).eval(), torch.tensor([[4, 9, 5]])
    for n_max, n_best in ((1, 6), (2, 1), (3, 1)):  # at three tokens it is no theorem, but width 6 finds it here
        want = _exhaustive(model, source, n_max, penalty, 6)[:n_best]
        found = beam(model, source, n_max, width=6, n_best=n_best, length_penalty=penalty)
        texts = [tuple(row[: len(text)]) for row, (text, _) in zip(found.tokens[0].tolist(), want, strict=True)]
        assert texts == [text for text, _ in want]
        torch.testing.assert_close(found.scores[0].tolist(), [score for _, score in want])


def _by_the_book(model, source, n_max, width, penalty, n_best):
    """The search as it is described, in lists, and without giving anything up early."""
    live, over = [((), 0.0)], []
    for n in range(1, n_max + 1):
        asked = [model(source, torch.tensor([[1, *text]])).logits[0, -1].log_softmax(-1).tolist() for text, _ in live]
        new = [((*text, w), s + p) for (text, s), row in zip(live, asked, strict=True) for w, p in enumerate(row)]
        new = sorted(new, key=lambda item: -item[1])[: width - len(over)]
        ended = [item for item in new if item[0][-1] == END or n == n_max]
        over += [(text, s / ((5 + n) / 6) ** penalty) for text, s in ended]
        live = [item for item in new if item not in ended]
    return sorted(over, key=lambda item: -item[1])[:n_best]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_stopping_early_changes_nothing(seed, penalty):
    model = _model(seed, peaked=2.0).eval()
    with torch.no_grad():
        model.lm_head.weight[END] *= 2  # so that something ends
    for row in _sources(4)[2:]:
        want = _by_the_book(model, row[None], 7, 4, penalty, 2)
        found = beam(model, row[None], 7, width=4, n_best=2, length_penalty=penalty)
        torch.testing.assert_close(found.scores[0].tolist(), [score for _, score in want])
        assert [tuple(x[: len(t)]) for x, (t, _) in zip(found.tokens[0].tolist(), want, strict=True)] == [
            text for text, _ in want
        ]


class Table:
    """A model that anyone can read: the next token depends on how many there are, and each row is seen only once."""

    def __init__(self, *rows):
        self.rows, self.asked = torch.tensor(rows).log(), []

    def prefill(self, source, n_max):
        return Place(len(source))

    def step(self, tokens, state):
        self.asked.append(tokens.flatten().tolist())
        state.place += tokens.shape[1]
        return self.rows[state.place - 1].expand(len(tokens), 1, -1)


class Place:
    def __init__(self, batch, place=0):
        self.batch, self.place = batch, place

    def select(self, rows):
        return Place(len(rows), self.place)


def test_what_has_ended_is_not_written_on_and_the_search_stops():
    model = Table([0.0, 0.0, 0.6, 0.3, 0.1], [0.0, 0.0, 0.9, 0.1, 0.0], [0.2] * 5)
    found = beam(model, torch.tensor([[4]]), 3, width=3)
    assert found.tokens.tolist() == [[[2]]]
    assert exp(found.scores.item()) == pytest.approx(0.6)
    assert model.asked == [[1]]  # 0.3 and 0.1 cannot become more than 0.6: nobody is asked again
    beam(model, torch.tensor([[4]]), 3, width=3, n_best=2)
    assert model.asked[1:] == [[1], [3, 4]]  # the second best can still be beaten; then 0.27 is over, and 0.03 lost


def test_a_beam_that_is_behind_may_catch_up_by_growing():
    table = [0.0, 0.0, 0.5, 0.45, 0.05], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]
    for penalty, want in {0.0: [2], 2.0: [3, 3, 2]}.items():
        assert beam(Table(*table), torch.tensor([[4]]), 3, width=2, length_penalty=penalty).tokens.tolist() == [[want]]


def test_where_less_is_possible_than_asked_for():
    found = beam(Table([0.0, 0.0, 1.0, 0.0]), torch.tensor([[4]]), 3, width=3, n_best=2)
    assert found.scores.tolist() == [[0.0, -torch.inf]]
    assert found.tokens.tolist() == [[[2], [0]]]


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("often", [0.0, 1.0])
def test_beams_are_hugging_faces(width, often):
    bart = _bart()
    with torch.no_grad():
        bart.final_logits_bias[0, 2] = often
    ours, source = _from_bart(bart), torch.randint(3, 30, (20, 7))
    source[1, 5:] = 1
    ours.lm_head = nn.Linear(16, 30)
    with torch.no_grad():
        ours.lm_head.weight.copy_(bart.model.shared.weight)
        ours.lm_head.bias.copy_(bart.final_logits_bias[0])
    options = {"do_sample": False, "max_new_tokens": 12, "min_length": 0, "no_repeat_ngram_size": 0}
    options |= {"num_beams": width, "length_penalty": 0.0, "early_stopping": "never"}
    options |= {"return_dict_in_generate": True, "output_scores": True}
    want = bart.generate(input_ids=source, attention_mask=(source != 1).long(), **options)
    found = beam(ours, source, 12, width=width)
    torch.testing.assert_close(found.scores[:, 0], want.sequences_scores, atol=1e-5, rtol=0)
    assert torch.equal(found.tokens[:, 0], want.sequences[:, 1:])


@pytest.mark.parametrize("options", [{"top_k": 3}, {"top_p": 0.6}, {"top_k": 5, "top_p": 0.8}, {"top_k": 1}])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_distribution_is_hugging_faces(options, temperature):
    os.environ["HF_HUB_OFFLINE"] = "1"
    transformers = pytest.importorskip("transformers", reason="pip install transformers")
    logits = 2 * torch.randn(50, 11, generator=torch.Generator().manual_seed(0))
    want = transformers.TemperatureLogitsWarper(temperature)(None, logits)
    if "top_k" in options:
        want = transformers.TopKLogitsWarper(options["top_k"])(None, want)
    if "top_p" in options:
        want = transformers.TopPLogitsWarper(options["top_p"])(None, want)
    torch.testing.assert_close(probabilities(logits, temperature=temperature, **options), want.softmax(-1))


def test_extreme_distributions():
    logits = torch.tensor([3.0, 3.0, 1.0, -torch.inf])
    assert probabilities(logits, top_k=1).tolist() == [1, 0, 0, 0]
    assert probabilities(logits, top_p=1e-9).tolist() == [1, 0, 0, 0]
    assert probabilities(logits, temperature=1e-9).tolist() == [0.5, 0.5, 0, 0]
    torch.testing.assert_close(probabilities(logits, top_p=1.0, top_k=99), logits.softmax(-1))


def test_samples_are_as_frequent_as_they_are_likely():
    p = [0.1, 0.0, 0.2, 0.3, 0.4]
    drawn = sample(Table(p), torch.full((20_000, 1), 4), 1, seed=0)
    torch.testing.assert_close(drawn.flatten().bincount() / 20_000, torch.tensor(p), atol=0.012, rtol=0)


def test_a_seed_is_all_that_a_sample_depends_on():
    model, source, before = _model(), _sources(), torch.get_rng_state()
    first = sample(model, source, 8, seed=3)
    torch.randn(2)
    torch.set_rng_state(before)
    assert torch.equal(sample(model, source, 8, seed=3), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(sample(model, source, 8, seed=4)[:, : first.shape[1]], first)
    assert torch.equal(torch.stack(list(stream(model, source, 8, seed=3)), dim=1), first)
    assert torch.equal(sample(model, source, 8, seed=0, top_k=1), greedy(model, source, 8))


def test_it_leaves_the_model_in_its_mode():
    model, source = _model(dropout=0.5), _sources()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]
    assert torch.equal(greedy(model, source, 4), greedy(model, source, 4))
    beam(model, source, 4)
    with pytest.raises(ValueError, match="prompt"):
        greedy(model, source, 4, prompt=torch.full((6, 4), 5))
    assert [module.training for module in model.modules()] == modes


@pytest.mark.parametrize("when", [1, 3])
def test_an_interrupted_model_can_be_used(when, monkeypatch):
    model, source = _model(dropout=0.5), _sources()
    want, calls, forward = greedy(model, source, 8), [], model.decoder.layers[1].forward

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        return forward(*args, **options)

    for decode in (greedy, beam, lambda *args: sample(*args, seed=0), lambda *args: list(stream(*args))):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(model.decoder.layers[1], "forward", interrupted)
            with pytest.raises(KeyboardInterrupt):
                decode(model, source, 8)
        assert model.training
        assert torch.is_grad_enabled()
    assert torch.equal(greedy(model, source, 8), want)
    model(source, source.clamp(max=8)).logits.sum().backward()


def test_a_stream_that_nobody_ends_leaves_the_model_as_it_was():
    model, source = _model(dropout=0.5), _sources()
    tokens = stream(model, source, 8)
    assert model.training
    first = next(tokens)
    assert model.training
    assert torch.is_grad_enabled()
    model(source, source.clamp(max=8)).logits.sum().backward()  # in between, while the stream is kept
    assert torch.equal(torch.stack([first, *tokens], dim=1), greedy(model, source, 8))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m, s: greedy(m, s, 0), ValueError, "n_max must be at least 1; got 0"),
        (lambda m, s: greedy(m, s + 12, 3), ValueError, "source must hold tokens from 0 to 11; got"),
        (lambda m, s: greedy(m, s.float(), 3), TypeError, "source must hold integers"),
        (lambda m, s: greedy(nn.Linear(2, 2), s, 3), TypeError, "model must have prefill.*got Linear"),
        (lambda m, s: stream(nn.Linear(2, 2), s, 3), TypeError, "model must have prefill.*got Linear"),
        (
            lambda m, s: greedy(m, s, 3, prompt=s[:, :3] * 0 + 4),
            ValueError,
            "prompt must be shorter than n_max = 3",
        ),
        (lambda m, s: greedy(m, s, 9, prompt=s[:2, :2]), ValueError, "prompt must have a row for each of 6.*got 2"),
        (lambda m, s: greedy(m, s, 9, prompt=s * 0 + 9), ValueError, "prompt must hold tokens from 0 to 8; got 9"),
        (lambda m, s: greedy(m, s, 9, prompt=s * 0 + 2), ValueError, "prompt must be of words only; got 2.*end"),
        (
            lambda m, s: greedy(m, s, 9, prompt=s * 0 + 1),
            ValueError,
            "prompt must be of words only; got 1, which is start",
        ),
        (lambda m, s: greedy(m, s.to(torch.uint32), 9), TypeError, "source must hold integers, int64 or int32; got"),
        (lambda m, s: greedy(m, s, True), TypeError, "n_max must be an integer; got bool"),
        (lambda m, s: beam(m, s, 9, width=True), TypeError, "width must be an integer; got bool"),
        (
            lambda m, s: m.step(s[:, :1] * 0 + 4, None),
            TypeError,
            "state must be what `prefill` returned; got NoneType",
        ),
        (lambda m, s: m.prefill(s, 4).select(s[:, 0] > 5), TypeError, "rows must be a tensor of row numbers.*bool"),
        (lambda m, s: greedy(m, s, 9, prompt=[4]), TypeError, "prompt must be a torch tensor of tokens; got list"),
        (lambda m, s: sample(m, s, 9, seed=0, temperature=0), ValueError, "temperature must be positive.*got 0"),
        (lambda m, s: sample(m, s, 9, seed=0, temperature="a"), TypeError, "temperature must be a number; got str"),
        (lambda m, s: sample(m, s, 9, seed=0, top_p=0.0), ValueError, "top_p must be above 0 and at most 1; got 0"),
        (lambda m, s: sample(m, s, 9, seed=0, top_p=1.1), ValueError, "top_p must be above 0 and at most 1; got 1.1"),
        (lambda m, s: sample(m, s, 9, seed=0, top_k=0), ValueError, "top_k must be at least 1; got 0"),
        (lambda m, s: sample(m, s, 9, seed=0, top_k=1.5), TypeError, "top_k must be an integer; got float"),
        (lambda m, s: sample(m, s, 9, seed=-1), ValueError, "seed must not be negative; got -1"),
        (lambda m, s: sample(m, s, 9, seed="a"), TypeError, "seed must be an integer"),
        (lambda m, s: sample(m, s, 9, seed=None), TypeError, "seed must be an integer; got NoneType"),
        (lambda m, s: stream(m, s, 9, top_k=3), ValueError, "seed must be given with temperature"),
        (lambda m, s: beam(m, s, 9, width=0), ValueError, "width must be at least 1; got 0"),
        (lambda m, s: beam(m, s, 9, width=10), ValueError, "width must be at most the 9 tokens.*got 10"),
        (lambda m, s: beam(m, s, 9, width=2, n_best=3), ValueError, "n_best must be at most width = 2; got 3"),
        (lambda m, s: beam(m, s, 9, length_penalty=-1), ValueError, "length_penalty must be from 0 to 10.*-1"),
        (lambda m, s: beam(m, s, 9, length_penalty="a"), TypeError, "length_penalty must be a number; got str"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call(_model(), _sources())


def test_padding_stands_at_the_end():
    with pytest.raises(ValueError, match="source must have its padding, 0, at the end"):
        greedy(_recurrent(), torch.tensor([[4, 0, 5]]), 3)


def test_top_p_of_one_keeps_every_token_and_small_ones_add_up():
    logits = 3 * torch.randn(50_000, generator=torch.Generator().manual_seed(0))
    assert (probabilities(logits, top_p=1.0) > 0).all()
    kept = (probabilities(torch.zeros(5000, dtype=torch.bfloat16), top_p=0.5) > 0).sum()
    assert abs(kept - 2500) <= 1


def test_logits_for_no_token_are_named():
    with pytest.raises(ValueError, match=r"logits must be for at least one token; got shape \(2, 0\)"):
        likeliest(torch.zeros(2, 0))


@pytest.mark.parametrize("write", [greedy, beam])
def test_a_model_that_says_nan_is_named(write):
    model = _model()
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="finite maximum in each row; got nan"):
        write(model, torch.randint(4, 12, (2, 5)), 4)


class Says:
    """A model that always says the same."""

    def __init__(self, *logits, dtype=torch.float32):
        self.logits = torch.tensor(logits, dtype=dtype)

    def prefill(self, source, n_max):
        return Read(source, source)

    def step(self, tokens, state):
        return self.logits.expand(len(tokens), 1, -1)


@pytest.mark.parametrize("says", [(0.0, torch.inf, 1.0, 2.0), (-torch.inf,) * 4])
@pytest.mark.parametrize("write", [greedy, beam, lambda *args: sample(*args, seed=0)])
def test_logits_without_a_distribution_are_named(write, says):
    with pytest.raises(ValueError, match=r"logits must have a finite maximum in each row; got -?inf"):
        write(Says(*says), torch.tensor([[4]]), 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_of_equals_a_beam_of_one_takes_what_greedy_takes(dtype):
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        model = Says(*torch.randint(0, 3, (40,), generator=generator).tolist(), dtype=dtype)
        assert torch.equal(
            beam(model, torch.tensor([[4]]), 2, width=1).tokens[:, 0], greedy(model, torch.tensor([[4]]), 2)
        )


def test_what_a_model_says_after_the_end_is_nobodys_business():
    class Ends(Says):
        def step(self, tokens, state):
            logits = torch.zeros(len(tokens), 1, 6)
            logits[:1] = torch.tensor([0.0, 0, 9, 0, 0, 0]) if tokens[0] == 1 else -torch.inf  # an end, then nothing
            return logits

    written = greedy(Ends(), torch.tensor([[4], [5]]), 3)
    assert written[0].tolist() == [2, 0, 0]


def test_probabilities_of_odd_logits():
    half = probabilities(torch.zeros(100_000, dtype=torch.float16))
    assert half.dtype == torch.float32
    torch.testing.assert_close(half.sum(), torch.tensor(1.0))
    for temperature in (1e-46, 1e39):
        p = probabilities(torch.tensor([0.0, 1.0, -torch.inf]), temperature=temperature)
        torch.testing.assert_close(p, torch.tensor([0.0, 1.0, 0.0] if temperature < 1 else [0.5, 0.5, 0.0]))
    torch.testing.assert_close(probabilities(torch.zeros(4), top_k=10**30), torch.full((4,), 0.25))
    with pytest.raises(TypeError, match="logits must be a torch tensor; got ndarray"):
        probabilities(torch.zeros(4).numpy())
    for empty in (torch.zeros(3, 0), torch.tensor(1.0)):
        with pytest.raises(ValueError, match=r"logits must have shape \(\.\.\., vocabulary\)"):
            probabilities(empty)


def test_too_many_positions_are_named_before_anything_is_written():
    with pytest.raises(ValueError, match="n_max must not exceed the 6 positions that were learned; got 7"):
        greedy(_model(position="learned", n_max=6), _sources(), 7)


def test_a_recurrent_model_is_told_what_is_wrong():
    model, source = _recurrent(), _sources()
    with pytest.raises(ValueError, match="source must have a token in each row; got only padding"):
        greedy(model, source * 0, 3)
    state = model.prefill(source, 5)
    with pytest.raises(ValueError, match="tokens must have a row for each of 6 sources; got 2"):
        model.step(source[:2, :1].clamp(max=8), state)
    with pytest.raises(TypeError, match="state must be what `prefill` returned; got int"):
        model.step(source[:, :1].clamp(max=8), 3)


def test_what_a_hook_keeps_can_be_trained_with():
    model, kept = _model(), []
    model.decoder.layers[0].register_forward_hook(lambda module, args, out: kept.append(out.out))
    greedy(model, _sources(), 5)
    nn.Linear(16, 2).double()(kept[0]).sum().backward()
    assert not any(x.is_inference() for x in kept)


@pytest.mark.parametrize("position", ["sinusoidal", "relative", "alibi", "rotary"])
def test_autocast(position):
    model, source = _model(position=position).float().eval(), _sources()
    prompt = source[:, :1] * 0 + 4
    with torch.autocast("cpu", dtype=torch.bfloat16):
        written = greedy(model, source, 6, prompt=prompt)
        logits = model(source, prompt).logits
    assert written.shape[0] == 6
    torch.testing.assert_close(logits.float(), model(source, prompt).logits, atol=1, rtol=0.1)
