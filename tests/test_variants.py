"""Hard, two-level and pointing attention: against brute force, and at their limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlib import attention, dot, masked_softmax, scaled_dot, tasks
from attnlib.training import fit
from attnlib.variants import PointerNetwork, hard_attention, score_function_loss, two_level

SCORES = torch.tensor([[0.5, 0.2, 0.0, -0.3, -0.6]], dtype=torch.float64)
VALUES = torch.tensor([[-1.0], [0.8], [0.3], [-0.4], [1.2]], dtype=torch.float64)


def reward_of(out):
    return -((out[..., 0] - 1) ** 2)


def exact_gradient():
    s = SCORES.clone().requires_grad_()
    expected = masked_softmax(s)[0] @ reward_of(VALUES)
    return torch.autograd.grad(expected, s)[0][0]


def estimates(how, n=40_000, baseline=0.0, **options):
    """One estimate a row of the gradient of the expected reward by the scores."""
    generator = torch.Generator().manual_seed(0)
    s = SCORES.expand(n, 1, 5).clone().requires_grad_()
    eye = torch.eye(5, dtype=torch.float64)
    chosen = hard_attention(s, eye, VALUES, score=dot, how=how, generator=generator, **options)
    reward = reward_of(chosen.out)
    gain = reward.sum() if how == "straight_through" else -n * score_function_loss(chosen.log_prob, reward, baseline)
    return torch.autograd.grad(gain, s)[0][:, 0]


def off_by(draws):
    """The mean's distance from the exact gradient in standard errors, the largest over coordinates."""
    return ((draws.mean(0) - exact_gradient()).abs() / (draws.std(0) / len(draws) ** 0.5)).max().item()


@pytest.mark.parametrize("baseline", [0.0, -1.7, 5.0])
def test_the_score_function_is_unbiased_with_any_baseline(baseline):
    assert off_by(estimates("sample", baseline=baseline)) < 4


def test_a_baseline_near_the_mean_reward_takes_away_variance():
    spread = {b: estimates("sample", baseline=b).var(0).sum().item() for b in (0.0, -1.7, 5.0)}
    assert spread[-1.7] < 0.6 * spread[0.0] < 0.2 * spread[5.0]


def test_straight_through_is_biased_less_so_at_a_lower_temperature_and_then_noisier():
    warm, cool = (estimates("straight_through", temperature=tau) for tau in (1.0, 0.3))
    assert off_by(warm) > 20
    bias = [(draws.mean(0) - exact_gradient()).norm().item() for draws in (warm, cool)]
    assert bias[1] < 0.5 * bias[0]
    assert cool.var(0).sum() > 2 * warm.var(0).sum()
    assert warm.var(0).sum() < estimates("sample").var(0).sum()


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_draws_have_the_soft_weights_as_frequencies(library):
    n, s = 40_000, SCORES
    generator = torch.Generator().manual_seed(1)
    if library == "numpy":
        s, generator = s.numpy(), np.random.default_rng(1)
    q = (s.repeat(n, 1) if library == "torch" else s.repeat(n, axis=0))[:, None]
    mask = np.array([True, True, False, True, True])
    eye, v = np.eye(5), VALUES.numpy()
    if library == "torch":
        eye, v, mask = (torch.tensor(x) for x in (eye, v, mask))
    out, weights, log_prob = hard_attention(q, eye, v, score=dot, mask=mask[None], generator=generator)
    want = masked_softmax(s, mask[None])
    np.testing.assert_allclose(np.asarray(weights).mean((0, 1)), np.asarray(want)[0], atol=0.012)
    assert set(np.unique(np.asarray(weights))) == {0.0, 1.0}
    np.testing.assert_array_equal(weights.sum(-1), 1)
    np.testing.assert_allclose(out, weights @ v)
    np.testing.assert_allclose(log_prob, np.log(np.asarray((weights * want).sum(-1))), rtol=1e-12)


def test_straight_through_is_one_hot_forward_and_soft_backward():
    q = SCORES.clone().requires_grad_()
    eye, noise = torch.eye(5, dtype=torch.float64), torch.Generator().manual_seed(3)
    hard = hard_attention(q, eye, VALUES, score=dot, how="straight_through", temperature=0.7, generator=noise)
    again = torch.Generator().manual_seed(3)
    gumbel = -(-(1 - torch.rand(1, 5, dtype=torch.float64, generator=again)).log()).log()
    soft = torch.softmax((q + gumbel) / 0.7, dim=-1)
    assert sorted(hard.weights.detach()[0].tolist()) == [0, 0, 0, 0, 1]
    assert hard.weights.argmax() == soft.argmax()
    up = torch.randn(1, 5, dtype=torch.float64)
    mine, want = (torch.autograd.grad((w * up).sum(), q)[0] for w in (hard.weights, soft))
    torch.testing.assert_close(mine, want)


def test_argmax_is_the_limit_of_soft_attention_and_of_sampling_as_the_scores_grow():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(2, 6, 4)), rng.normal(size=(2, 7, 4)), rng.normal(size=(2, 7, 3))

    def sharp(a, b):
        return 1e6 * scaled_dot(a, b)

    hard = hard_attention(q, k, v, how="argmax")
    np.testing.assert_allclose(hard.out, attention(q, k, v, score=sharp).out, atol=1e-12)
    drawn = hard_attention(q, k, v, score=sharp, generator=rng)
    np.testing.assert_array_equal(drawn.weights, hard.weights)
    np.testing.assert_allclose(drawn.log_prob, 0, atol=1e-12)


def test_the_first_of_equals_is_chosen_by_argmax_and_each_equally_often_by_sampling():
    q, k, v = np.zeros((9000, 1)), np.zeros((3, 1)), np.eye(3)
    assert hard_attention(q, k, v, how="argmax").out[:, 0].all()
    endless = hard_attention(
        q, k, v, score=lambda q, k: np.full((9000, 3), np.inf), generator=np.random.default_rng(0)
    )
    np.testing.assert_allclose(endless.out.mean(0), 1 / 3, atol=0.02)


@pytest.mark.parametrize("how", ["sample", "argmax", "straight_through"])
def test_a_row_with_nothing_to_attend_to_gives_zeros_and_no_gradient(how):
    q = torch.randn(2, 4, requires_grad=True)
    mask = torch.tensor([[False] * 3, [True] * 3])
    out, weights, log_prob = hard_attention(q, torch.randn(3, 4), torch.randn(3, 2), mask=mask, how=how)
    assert not out[0].any()
    assert not weights[0].any()
    assert log_prob[0] == 0
    assert weights[1].sum() == 1
    (log_prob.sum() + out.sum()).backward()
    assert not q.grad[0].any()
    assert q.grad.isfinite().all()
    empty = hard_attention(q, torch.zeros(0, 4), torch.zeros(0, 2), how=how)
    assert empty.out.shape == (2, 2)
    assert not empty.out.any()


def documents(seed=0, n_q=3, lead=(2,)):
    rng = np.random.default_rng(seed)
    word_mask = rng.random((*lead, 4, 5)) < 0.6
    word_mask[..., 1, :] = False  # a sentence without words
    word_mask[..., 0, 0] = True
    q, q_s = rng.normal(size=(2, *lead, n_q, 6))
    return (
        q,
        q_s,
        rng.normal(size=(*lead, 4, 5, 6)),
        rng.normal(size=(*lead, 4, 6)),
        rng.normal(size=(*lead, 4, 5, 7)),
        word_mask,
    )


@pytest.mark.parametrize("derived", [True, False])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_two_level_is_two_loops(derived, library):
    q, q_s, k, k_s, v, mask = documents()
    given = {} if derived else {"sentence_keys": library(k_s), "sentence_q": library(q_s)}
    got = two_level(library(q), library(k), library(v), word_mask=library(mask), **given)
    for b in range(2):
        for i in range(3):
            inner = [masked_softmax(scaled_dot(q[b, i : i + 1], k[b, s]), mask[b, s][None])[0] for s in range(4)]
            keys = np.stack([w @ k[b, s] for s, w in enumerate(inner)]) if derived else k_s[b]
            asked = (q if derived else q_s)[b, i : i + 1]
            outer = masked_softmax(scaled_dot(asked, keys), mask[b].any(-1)[None])[0]
            joint = outer[:, None] * np.stack(inner)
            np.testing.assert_allclose(got.words[b, i], inner)
            np.testing.assert_allclose(got.sentences[b, i], outer)
            np.testing.assert_allclose(got.joint[b, i], joint)
            np.testing.assert_allclose(got.out[b, i], (joint[..., None] * v[b]).sum((0, 1)))
    np.testing.assert_allclose(got.joint.sum((-2, -1)), 1)
    assert not np.asarray(got.joint)[..., ~mask[0]][0].any()


def test_flat_attention_is_two_level_when_a_sentence_scores_the_log_of_its_words_sum():
    q, _, k, _, v, _ = documents(n_q=1, lead=())
    flat = attention(q, k.reshape(20, 6), v.reshape(20, 7))
    sums = np.log(np.exp(scaled_dot(q, k.reshape(20, 6))).reshape(4, 5).sum(1))

    def score(a, b):  # words as ever, sentences by what their keys hold in the first place
        return scaled_dot(a, b) if b.shape[-2] == 5 else b[..., 0][..., None, :]

    keys = np.concatenate([sums[:, None], np.zeros((4, 5))], axis=1)
    got = two_level(q, k, v, sentence_keys=keys, score=score)
    np.testing.assert_allclose(got.joint.reshape(1, 20), flat.weights)
    np.testing.assert_allclose(got.out, flat.out)


def test_masked_sentences_and_empty_documents_have_no_weight():
    q, _, k, _, v, _ = documents()
    real = np.array([[True, False, True, False], [False] * 4])
    got = two_level(q, k, v, sentence_mask=real)
    np.testing.assert_allclose(got.sentences.sum(-1), [[1] * 3, [0] * 3])
    assert not got.sentences[0][:, ~real[0]].any()
    assert not got.out[1].any()
    np.testing.assert_allclose(got.out[0], two_level(q[0], k[0, ::2], v[0, ::2]).out)


@pytest.mark.parametrize("encoder", ["set", "recurrent"])
@pytest.mark.parametrize("repeats", [True, False])
def test_teacher_forcing_with_its_own_choices_is_what_decoding_computed(encoder, repeats):
    torch.manual_seed(0)
    model = PointerNetwork(2, 8, encoder=encoder).double()
    x = torch.rand(3, 6, 2, dtype=torch.float64)
    free = model.decode(x, 4, repeats=repeats)
    forced = model(x, free.order, repeats=repeats)
    torch.testing.assert_close(forced.exp(), free.weights)
    torch.testing.assert_close(free.weights.sum(-1), torch.ones(3, 4, dtype=torch.float64))
    assert (free.weights.argmax(-1) == free.order).all()
    if not repeats:
        assert all(len(set(row)) == 4 for row in free.order.tolist())
        seen = torch.nn.functional.one_hot(free.order, 6).cumsum(1)[:, :-1] > 0
        assert not free.weights[:, 1:][seen].any()


def test_the_gradient_of_the_log_probabilities_is_that_of_a_log_softmax():
    torch.manual_seed(0)
    model, x = PointerNetwork(1, 8).double(), torch.rand(2, 5, 1, dtype=torch.float64)
    order = torch.stack([torch.randperm(5) for _ in range(2)])
    logs = model(x, order)
    again = torch.log_softmax(logs, -1)  # changes no number, and forgets what was added to a whole row
    torch.testing.assert_close(logs, again)
    picked = (each.gather(-1, order[..., None]).sum() for each in (logs, again))
    mine, want = (torch.autograd.grad(total, list(model.parameters()), retain_graph=True) for total in picked)
    for a, b in zip(mine, want, strict=True):
        torch.testing.assert_close(a, b)


def test_a_set_encoder_does_not_care_for_the_order_of_its_inputs_and_a_recurrent_one_does():
    torch.manual_seed(0)
    x, places = torch.rand(1, 6, 1, dtype=torch.float64), torch.randperm(6)
    order = torch.arange(6)[None]
    for encoder, same in {"set": True, "recurrent": False}.items():
        model = PointerNetwork(1, 8, encoder=encoder).double()
        moved = model(x[:, places], places.argsort()[None])
        assert torch.allclose(moved, model(x, order)[..., places]) is same


def test_it_learns_to_sort():
    torch.manual_seed(0)
    model = PointerNetwork(1, 32)

    def loss(model, batch):
        return -model(batch.numbers, batch.order, repeats=False).gather(-1, batch.order[..., None]).mean()

    fit(model, lambda step: tasks.sorting(64, 3 + step % 6, seed=(0, step)), loss, steps=150, lr=0.01)
    test = tasks.sorting(200, 12, seed=1)
    right = (model.decode(test.numbers, repeats=False).order == test.order).all(1)
    assert right.float().mean() > 0.8


Q, K, V = np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 2))
T = torch.ones(2)
DOCUMENT = np.ones((3, 4, 3))
MODEL, X = PointerNetwork(1, 4), torch.rand(2, 3, 1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: hard_attention(Q, K, V, how="soft"), ValueError, "how must be one of 'sample', 'argmax'.*'soft'"),
        (lambda: hard_attention(Q, K, V, temperature=0.5), ValueError, "temperature has an effect with how='straight"),
        (lambda: hard_attention(Q, K, V, temperature=0), ValueError, "temperature must be positive"),
        (lambda: hard_attention(Q, K, V, how="straight_through"), TypeError, "needs torch tensors"),
        (lambda: hard_attention(Q, K, V, generator=torch.Generator()), TypeError, "generator must be a numpy.random"),
        (lambda: hard_attention(Q, K, V, generator=7), TypeError, "generator must be a numpy.random.Generator.*int"),
        (lambda: hard_attention(Q, K, V[:3]), ValueError, "k and v must have one row for each position"),
        (lambda: score_function_loss(T, T[:1]), ValueError, r"one shape.*log_prob \(2,\) and reward \(1,\)"),
        (lambda: score_function_loss(T, T, torch.ones(2, 1)), ValueError, "baseline must broadcast to reward"),
        (lambda: score_function_loss(Q, Q), TypeError, "log_prob must be a torch tensor"),
        (lambda: two_level(Q, K, V), ValueError, "word_keys must have shape"),
        (lambda: two_level(Q, DOCUMENT, DOCUMENT[:2]), ValueError, "one row for each word"),
        (lambda: two_level(Q, DOCUMENT, DOCUMENT, sentence_keys=K), ValueError, "sentence_keys must have .*= 3"),
        (lambda: two_level(Q, DOCUMENT, DOCUMENT, sentence_q=Q[:1]), ValueError, "sentence_q must have the shape"),
        (lambda: two_level(Q, DOCUMENT, DOCUMENT, word_mask=np.ones((3, 4))), TypeError, "word_mask must be boolean"),
        (lambda: two_level(Q, DOCUMENT, DOCUMENT, word_mask=np.ones((3, 5)) > 0), ValueError, "word_mask must broad"),
        (lambda: two_level(Q, DOCUMENT, DOCUMENT, sentence_mask=np.ones(4) > 0), ValueError, "sentence_mask must br"),
        (lambda: PointerNetwork(0, 4), ValueError, "d_in must be at least 1"),
        (lambda: PointerNetwork(1, 4, encoder="bag"), ValueError, "encoder must be one of 'set', 'recurrent'"),
        (lambda: MODEL.decode(torch.rand(2, 3)), ValueError, r"x must have shape.*got \(2, 3\)"),
        (lambda: MODEL.decode(X, 4, repeats=False), ValueError, "n_out must not exceed n = 3"),
        (lambda: MODEL(X, torch.tensor([[0, 3], [1, 2]])), ValueError, "positions from 0 to n - 1 = 2; got 0 to 3"),
        (lambda: MODEL(X, torch.zeros(2, 2)), TypeError, "order must be a tensor of int64"),
        (lambda: MODEL(X, torch.zeros(1, 2).long()), ValueError, r"order must have shape \(batch = 2"),
        (lambda: MODEL(X, torch.zeros(2, 2).long(), repeats=False), ValueError, "no position twice"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
