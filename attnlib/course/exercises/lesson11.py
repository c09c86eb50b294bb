"""Exercises of lesson 11: encoder and decoder."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import dot


def _read(mask, shift):
    n = len(mask)
    rows = mask | np.eye(n, dtype=bool)
    read = np.zeros((n, n), dtype=bool)
    read[:, : n - shift] = rows[:, shift:]
    return read


def _moved(rows, shift):
    """What is known of ``rows``, token by token: token j stands in row j + shift."""
    return np.pad(rows, ((0, 0), (0, shift)))[:, shift:]


def _with_own(mask):
    return mask | np.eye(len(mask), dtype=bool)


def _some_mask(rng, n, shift):
    mask = rng.random((n, n)) < 0.4
    mask[:2, :2] = [[False, True], [False, True]]  # a closed diagonal, an open one
    return mask, shift


def _cross(y, memory, W_Q, W_K, W_V):
    return attention(y @ W_Q, memory @ W_K, memory @ W_V).out


def _chosen(log_p, target):
    return np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]


def _loss(log_p, target, pad):
    real = target != pad
    chosen = np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]
    return -(chosen * real).sum() / real.sum()


def _decoder_layer(y, memory, attend, cross, network, norms):
    causal = np.tri(len(y), dtype=bool)
    everything = np.ones((len(y), len(memory)), dtype=bool)
    y = norms[0](y + attend(y, y, causal))
    y = norms[1](y + cross(y, memory, everything))
    return norms[2](y + network(y))


def _assembled(y, memory, attend, cross, network, norms, own=None, other=None, memory_of_y=False):
    own = np.tri(len(y), dtype=bool) if own is None else own
    y = norms[0](y + attend(y, y, own))
    memory = y if memory_of_y else memory
    y = norms[1](y + cross(y, memory, np.ones((len(y), len(memory)), dtype=bool) if other is None else other))
    return norms[2](y + network(y))


def _without_residuals(y, memory, attend, cross, network, norms):
    y = norms[0](attend(y, y, np.tri(len(y), dtype=bool)))
    return norms[2](network(norms[1](cross(y, memory, np.ones((len(y), len(memory)), dtype=bool)))))


def _pre_norm(y, memory, attend, cross, network, norms):
    y = y + attend(norms[0](y), norms[0](y), np.tri(len(y), dtype=bool))
    y = y + cross(norms[1](y), memory, np.ones((len(y), len(memory)), dtype=bool))
    return y + network(norms[2](y))


def _first_y_added(y, memory, attend, cross, network, norms):
    h = norms[0](y + attend(y, y, np.tri(len(y), dtype=bool)))
    h = norms[1](y + cross(h, memory, np.ones((len(y), len(memory)), dtype=bool)))
    return norms[2](y + network(h))


def _cross_first(y, memory, attend, cross, network, norms):
    y = norms[0](y + cross(y, memory, np.ones((len(y), len(memory)), dtype=bool)))
    y = norms[1](y + attend(y, y, np.tri(len(y), dtype=bool)))
    return norms[2](y + network(y))


def _layer_of_torch(n, n_memory, seed):
    """A decoder layer of torch's and what goes into it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, batch_first=True, dtype=torch.float64)
        for parameter in layer.parameters():  # scales, shifts and biases too, so that no two parts are alike
            torch.nn.init.normal_(parameter, std=0.5)
        return layer, torch.randn(n, 8, dtype=torch.float64), torch.randn(n_memory, 8, dtype=torch.float64)


def _parts(n, n_memory, seed):
    """The inputs of 11.4, with the parts of a decoder layer of torch's as functions of arrays."""
    import torch

    layer, y, memory = _layer_of_torch(n, n_memory, seed)

    def of_arrays(module):
        return lambda x: module(torch.from_numpy(np.asarray(x, dtype=float))).detach().numpy()

    def attending(module):
        def attend(queries, keys, mask):
            rows = [torch.from_numpy(np.asarray(x, dtype=float)) for x in (queries, keys)]
            may = np.broadcast_to(True if mask is None else np.asarray(mask, dtype=bool), (len(queries), len(keys)))
            closed = torch.from_numpy(~may)  # torch's True means closed
            return module(rows[0], rows[1], rows[1], attn_mask=closed, need_weights=False)[0].detach().numpy()

        return attend

    network = of_arrays(torch.nn.Sequential(layer.linear1, torch.nn.ReLU(), layer.linear2))
    norms = [of_arrays(norm) for norm in (layer.norm1, layer.norm2, layer.norm3)]
    attend, cross = attending(layer.self_attn), attending(layer.multihead_attn)
    return y.numpy(), memory.numpy(), attend, cross, network, norms


def _share(p, n):
    return p ** (n + 1)


def _batch(rng, pad):
    target = rng.choice([word for word in range(6) if word != pad], size=(3, 5))
    target[1, 3:], target[2, 1:] = pad, pad
    scores = rng.normal(size=(3, 5, 6))
    return np.log(masked_softmax(scores)), target, pad


def _translation(rng):
    return rng.normal(size=(4, 5)), rng.normal(size=(6, 5)), *(rng.normal(size=(5, d)) for d in (3, 3, 2))


EXERCISES = [
    Exercise(
        id="11.1",
        title="Who has read what?",
        reference=_read,
        cases=lambda rng: [_some_mask(rng, 5, 1), _some_mask(rng, 7, 2), _some_mask(rng, 6, 1)],
        hints=(
            "First the rows: from which rows does anything reach row i, if row i also keeps what it holds?",
            "Then the tokens: which token of the target stands in row j, when it went in shift places to the right?",
            "rows = mask | np.eye(n, dtype=bool); token j stands in row j + shift, so "
            "read[:, : n - shift] = rows[:, shift:].",
        ),
        misconceptions=[
            Misconception(
                "the mask alone",
                lambda mask, shift: _moved(mask, shift),
                "You took the mask alone. A row also reads its own token, whether or not it may attend to itself: "
                "by the residual connection and in the query.",
            ),
            Misconception(
                "not shifted",
                lambda mask, shift: _with_own(mask),
                "These are rows. Token j of the target does not stand in row j, but shift places further on.",
            ),
            Misconception(
                "always by one",
                lambda mask, shift: _read(mask, 1),
                "You shifted by one place. The number of places is given: shift.",
            ),
            Misconception(
                "to the left",
                lambda mask, shift: np.pad(_with_own(mask), ((0, 0), (shift, 0)))[:, : len(mask)],
                "You moved the columns to the right, as if the target had gone in shifted to the left. Token j stands "
                "in row j + shift, not in row j - shift.",
            ),
            Misconception(
                "rolled",
                lambda mask, shift: np.roll(_with_own(mask), -shift, axis=1),
                "You rolled the columns, and the first came round to the end. The start symbols stand in the first "
                "rows; the last tokens of the target do not go in at all, so nobody reads them.",
            ),
            Misconception(
                "queries shifted",
                lambda mask, shift: np.pad(_with_own(mask), ((0, shift), (0, 0)))[shift:],
                "You moved the rows that read. Row i stays row i, and writes token i; what moves is where a token "
                "stands, and that is a column.",
            ),
            Misconception(
                "diagonal after the shift",
                lambda mask, shift: _with_own(_moved(mask, shift)),
                "You opened the diagonal after shifting, so every row reads the token that it must write. What stands "
                "in row i is token i - shift: take the diagonal of the rows, then shift.",
            ),
            Misconception(
                "transposed",
                lambda mask, shift: _read(mask, shift).T,
                "Rows of the answer stand for the rows that write, columns for tokens. Yours are the other way round.",
            ),
        ],
    ),
    Exercise(
        id="11.2",
        title="Cross-attention",
        reference=_cross,
        cases=lambda rng: [_translation(rng) for _ in range(3)],
        hints=(
            "Who asks? Who answers?",
            "Queries from y, keys and values from memory.",
            "attention(y @ W_Q, memory @ W_K, memory @ W_V).out.",
        ),
        misconceptions=[
            Misconception(
                "self",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_Q, y @ W_K, y @ W_V).out,
                "Everything comes from y, which is self-attention. Keys and values come from the memory.",
            ),
            Misconception(
                "the other way",
                lambda y, memory, W_Q, W_K, W_V: attention(memory @ W_Q, y @ W_K, y @ W_V).out,
                "The memory asks and the decoder answers. It is the decoder's rows that ask.",
            ),
            Misconception(
                "queries and keys exchanged",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_K, memory @ W_Q, memory @ W_V).out,
                "W_Q and W_K are exchanged, or y and the memory are. Queries are y @ W_Q, keys memory @ W_K.",
            ),
            Misconception(
                "causal",
                lambda y, memory, W_Q, W_K, W_V: (
                    attention(y @ W_Q, memory @ W_K, memory @ W_V, mask=np.tri(len(y), len(memory), dtype=bool)).out
                ),
                "You hid later rows of the memory. The source is read as a whole before the first word is written.",
            ),
            Misconception(
                "root of the rows' size",
                lambda y, memory, W_Q, W_K, W_V: (
                    attention(y @ W_Q * np.sqrt(W_Q.shape[1] / W_Q.shape[0]), memory @ W_K, memory @ W_V).out
                ),
                "You divided the scores by the root of the size of a row of y or of the memory. Take the size of a "
                "query, the columns of W_Q.",
            ),
            Misconception(
                "bare memory",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_Q, memory @ W_K, memory).out,
                "You averaged the memory's rows. The values are memory @ W_V.",
            ),
            Misconception(
                "not scaled",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_Q, memory @ W_K, memory @ W_V, score=dot).out,
                "The scores are not divided by the root of the size of a query.",
            ),
        ],
    ),
    Exercise(
        id="11.3",
        title="The loss of a padded batch",
        reference=_loss,
        cases=lambda rng: [_batch(rng, pad) for pad in (0, 0, 3)],
        hints=(
            "Pick the log-probability of the right token at each position: np.take_along_axis.",
            "Leave the positions where target equals pad out of both the sum and the count.",
            "-(chosen * real).sum() / real.sum(), with real = target != pad.",
        ),
        misconceptions=[
            Misconception(
                "padding counted",
                lambda log_p, target, pad: -_chosen(log_p, target).mean(),
                "The padding counts. The model would be trained to say padding, most often after short sentences.",
            ),
            Misconception(
                "divided by all",
                lambda log_p, target, pad: -(_chosen(log_p, target) * (target != pad)).mean(),
                "Padding is left out of the sum, but not out of the count: divide by the number of real tokens.",
            ),
            Misconception(
                "sum",
                lambda log_p, target, pad: -(_chosen(log_p, target) * (target != pad)).sum(),
                "This is the sum. Divide by the number of real tokens.",
            ),
            Misconception(
                "by sentence",
                lambda log_p, target, pad: np.mean(
                    [
                        -(_chosen(log_p, target) * (target != pad))[b].sum() / (target[b] != pad).sum()
                        for b in range(len(target))
                    ]
                ),
                "You took the mean of each sentence and then of the sentences, so a token of a short one counts more. "
                "The mean is over all real tokens.",
            ),
            Misconception(
                "sign",
                lambda log_p, target, pad: -_loss(log_p, target, pad),
                "The sign is wrong: log-probabilities are negative, and a loss is positive.",
            ),
            Misconception(
                "probabilities",
                lambda log_p, target, pad: (
                    -(np.exp(_chosen(log_p, target)) * (target != pad)).sum() / (target != pad).sum()
                ),
                "You averaged probabilities. Cross-entropy averages their logarithms.",
            ),
        ],
    ),
    Exercise(
        id="11.4",
        title="A decoder layer",
        reference=_decoder_layer,
        cases=lambda rng: [_parts(n, n_memory, seed) for n, n_memory, seed in ((4, 6, 0), (5, 3, 1))],
        hints=(
            "Three sublayers, each of the form x = norm(x + sublayer(x)).",
            "Self-attention: y asks y, under a causal mask. Cross-attention: y asks the memory, all of it.",
            "y = norms[0](y + attend(y, y, causal)); y = norms[1](y + cross(y, memory, everything)); the network.",
        ),
        misconceptions=[
            Misconception(
                "not causal",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, network, norms, own=np.ones((len(y), len(y)), dtype=bool)
                ),
                "Your self-attention reads later words. It needs a causal mask.",
            ),
            Misconception(
                "diagonal closed",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, network, norms, own=np.tri(len(y), k=-1, dtype=bool)
                ),
                "You closed the diagonal. The inputs are shifted already, so a row may read itself.",
            ),
            Misconception(
                "transposed mask",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, network, norms, own=np.tri(len(y), dtype=bool).T
                ),
                "Your triangle is transposed: it shows what comes later and hides what came before. Row i may read "
                "columns 0 to i.",
            ),
            Misconception(
                "causal memory",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, network, norms, other=np.tri(len(y), len(memory), dtype=bool)
                ),
                "You masked the memory causally. The source is read as a whole before the first word is written.",
            ),
            Misconception(
                "memory asks",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, y, attend, cross, network, norms, memory_of_y=True
                ),
                "Your cross-attention reads y. Queries come from y, keys and values from the memory.",
            ),
            Misconception(
                "no residuals",
                _without_residuals,
                "The residual connections are missing: norm(x + sublayer(x)), three times.",
            ),
            Misconception(
                "pre-norm",
                _pre_norm,
                "You normalised before each sublayer. That is pre-norm; the paper normalises after adding.",
            ),
            Misconception(
                "cross first",
                _cross_first,
                "Your cross-attention comes before self-attention. Put self-attention first.",
            ),
            Misconception(
                "inverted",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, network, norms, own=~np.tri(len(y), dtype=bool)
                ),
                "Your triangle is True, or not 0, where attending is forbidden: torch's modules have True there, or "
                "minus infinity. Here True means may attend.",
            ),
            Misconception(
                "the first y asks",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, lambda h, m, mask: cross(y, m, mask), network, norms
                ),
                "Your cross-attention asks with the y that came in. It is the output of the first sublayer, "
                "normalised, that asks.",
            ),
            Misconception(
                "the first y added",
                _first_y_added,
                "You add the y that came in three times. Each sublayer is added to what went into that sublayer.",
            ),
            Misconception(
                "no last norm",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, network, [norms[0], norms[1], lambda h: h]
                ),
                "The last normalisation is missing: the network's output is added, and the sum normalised.",
            ),
            Misconception(
                "the same attention twice",
                lambda y, memory, attend, cross, network, norms: _assembled(y, memory, attend, attend, network, norms),
                "You used attend for the memory too. Cross-attention has projections of its own, in cross.",
            ),
            Misconception(
                "no network",
                lambda y, memory, attend, cross, network, norms: _assembled(
                    y, memory, attend, cross, lambda x: 0 * x, norms
                ),
                "The feed-forward network is missing.",
            ),
        ],
    ),
    Exercise(
        id="11.5",
        title="From letters to words",
        reference=_share,
        cases=lambda rng: [(0.99, 8), (0.9, 3), (0.95, 20)],
        hints=(
            "All letters must be right, and so must the end.",
            "Independent chances multiply.",
            "p ** (n + 1).",
        ),
        misconceptions=[
            Misconception(
                "without the end",
                lambda p, n: p**n,
                "The end is a token too, and must be said in the right place: that makes n + 1 tokens.",
            ),
            Misconception(
                "the same",
                lambda p, n: p,
                "That is the share of right letters. A word needs all of its letters to be right.",
            ),
            Misconception(
                "mistakes add",
                lambda p, n: 1 - (n + 1) * (1 - p),
                "You added the chances of mistakes. That is close while their sum is small, but the share can be "
                "below 0.",
            ),
            Misconception(
                "at least one",
                lambda p, n: 1 - (1 - p) ** (n + 1),
                "That is the chance that at least one token is right.",
            ),
        ],
    ),
]
