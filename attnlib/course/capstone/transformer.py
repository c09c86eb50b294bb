"""An encoder–decoder Transformer in one file, which needs torch and nothing else.

The functions from `scores` to `beam_step` are the parts. The rest is written for one sentence, as rows; a batch is
many sentences side by side, `torch.vmap`.

    python my_transformer.py sieben und achtzig
"""

import contextlib
import itertools
import math
import sys

import torch
import torch._numpy
from torch import nn

PAD, START, END = 0, 1, 2  # what stands where nothing is, goes in first and comes out last


# --- for parts that were written for NumPy: torch has a NumPy of its own, through which gradients flow ---


class NumPy:
    """`torch._numpy`, with what it lacks and parts often use."""

    anchor = 0.0  # a zero of the batch at hand: an array that is made to be filled must have room for all of it

    def __getattr__(self, name):
        function = getattr(torch._numpy, name)
        if name in ("zeros", "ones", "empty", "full"):
            return lambda *args, **options: self._with_room(function(*args, **options))
        if name in ("add", "subtract", "multiply", "divide", "true_divide", "maximum", "exp", "log", "sqrt"):
            return lambda *given, **options: _entry_by_entry(function, *given, **options)
        if name in ("sum", "mean", "max", "amax"):
            return lambda values, *args, **options: _over(name, values, *args, **options)
        if name in ("tril_indices", "triu_indices"):
            return lambda *args, **options: tuple(function(*args, **options))
        return function

    def _with_room(self, made):
        return torch._numpy.ndarray(made.tensor + self.anchor) if made.tensor.is_floating_point() else made

    def array(self, values, *args, **options):
        return torch._numpy.array(_stacked(values), *args, **options)

    asarray = array

    def copyto(self, to, values, where=True):
        to[...] = torch._numpy.where(where, values, to)

    def ndindex(self, *shape):
        return itertools.product(*map(range, shape[0] if isinstance(shape[0], tuple) else shape))

    def ndenumerate(self, values):
        return ((place, values[place]) for place in self.ndindex(values.shape))

    def unravel_index(self, indices, shape):
        return tuple(map(torch._numpy.ndarray, torch.unravel_index(as_tensor(indices), shape)))

    def errstate(self, **options):
        return contextlib.nullcontext()


numpy = NumPy()


def _stacked(values):
    """Lists of numbers as one array, so that it knows where the numbers came from."""
    if isinstance(values, list | tuple) and values:
        values = [_stacked(value) for value in values]
        if isinstance(values[0], torch._numpy.ndarray):
            return torch._numpy.stack(values)
    return values


def _entry_by_entry(function, *given, out=None, where=True, **options):
    """A function of entries, of those where ``where`` is True; the others stay what they are in ``out``."""
    if where is not True:
        given = [torch._numpy.where(where, x, 1) for x in given]
    result = function(*given, **options)
    if out is None:
        return result
    out[...] = result if where is True else torch._numpy.where(where, result, out)
    return out


def _over(name, values, *args, where=True, initial=None, **options):
    """A sum, a mean or the largest, of those entries where ``where`` is True."""
    values, function = _stacked(values), getattr(torch._numpy, name)
    if where is True and initial is None:
        return function(values, *args, **options)
    if name == "mean":
        count = torch._numpy.where(where, torch._numpy.ones_like(values), 0.0)
        total = torch._numpy.where(where, values, 0.0)
        return torch._numpy.sum(total, *args, **options) / torch._numpy.sum(count, *args, **options)
    initial = 0.0 if initial is None else initial
    if name == "sum":
        return function(torch._numpy.where(where, values, 0.0), *args, **options) + initial
    return torch._numpy.maximum(function(torch._numpy.where(where, values, initial), *args, **options), initial)


def on_tensors(part):
    """A part that was written for NumPy's arrays, for tensors."""

    def call(*given):
        numbers = [x for x in given if isinstance(x, torch.Tensor) and x.is_floating_point()]
        numpy.anchor = torch.zeros_like(numbers[0].flatten()[0]) if numbers else 0.0
        return as_tensor(part(*map(as_array, given)))

    return call


def as_array(x):
    """A tensor as an array of torch's NumPy, a function of tensors as one of arrays."""
    if isinstance(x, torch.Tensor):
        return torch._numpy.ndarray(x)
    if isinstance(x, list):
        return [as_array(one) for one in x]
    return (lambda *given: as_array(x(*map(as_tensor, given)))) if callable(x) else x


def as_tensor(x):
    """An array of torch's NumPy, or lists of them, as a tensor."""
    x = _stacked(x)
    x = x.tensor if isinstance(x, torch._numpy.ndarray) else torch.as_tensor(x)
    return x.to(torch.get_default_dtype()) if x.is_floating_point() else x


# --- the parts ---


def scores(Q, K):
    """How well each query fits each key, ``(n_q, n_k)``."""
    return Q @ K.T / math.sqrt(Q.shape[1])


def masked_softmax(scores, mask):
    """Weights: each row is shared out over the keys where the mask is True."""
    scores = scores.masked_fill(~mask, -torch.inf)
    largest = scores.max(dim=-1, keepdim=True).values
    e = torch.exp(scores - largest.clamp(min=torch.finfo(scores.dtype).min))
    total = e.sum(dim=-1, keepdim=True)
    return e / torch.where(total > 0, total, 1)


def split_heads(x, n_heads):
    """Each row cut into pieces: ``(n_heads, n, d_head)``."""
    return x.reshape(len(x), n_heads, -1).transpose(0, 1)


def join_heads(heads, W_O):
    """Each head times its own part of ``W_O``, added up: ``(n, d_model)``."""
    return sum(head @ part for head, part in zip(heads, W_O.chunk(len(heads)), strict=True))


def position_codes(places, d):
    """A row of sines and cosines for each place, ``(n, d)``."""
    speeds = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angles = torch.as_tensor(places)[:, None] * speeds
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


def causal(n_q, n_k):
    """Who may attend to whom while a sentence is written, ``(n_q, n_k)``."""
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


def encoder_layer(x, attend, network, norm):
    """A layer that reads."""
    x = x + attend(norm(x))
    return x + network(norm(x))


def decoder_layer(y, memory, attend, cross, network, norms):
    """A layer that writes."""
    n = len(y)
    y = norms[0](y + attend(y, y, causal(n, n)))
    y = norms[1](y + cross(y, memory, torch.ones(n, len(memory), dtype=torch.bool)))
    return norms[2](y + network(y))


def mean_loss(log_p, target, pad):
    """What one token cost, on average."""
    chosen = log_p.gather(-1, target[..., None])[..., 0]
    real = target != pad
    return -(chosen * real).sum() / real.sum()


def beam_step(scores, log_p):
    """The best ways to go on, ``(width, 2)``: which beam, and which word."""
    best = (scores[:, None] + log_p).flatten().topk(len(scores)).indices
    return torch.stack([best // log_p.shape[1], best % log_p.shape[1]], dim=1)


# --- the model ---


class Attention(nn.Module):
    """Heads side by side: queries from the rows of ``x``, keys and values from those of ``source``."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            weight = nn.init.xavier_uniform_(torch.empty(d_model, d_model))
            self.register_parameter(name, nn.Parameter(weight))

    def forward(self, x, source, mask):
        q = split_heads(x @ self.W_Q, self.n_heads)  # (n_heads, n, d_head)
        k = split_heads(source @ self.W_K, self.n_heads)
        v = split_heads(source @ self.W_V, self.n_heads)
        heads = [masked_softmax(scores(q[h], k[h]), mask) @ v[h] for h in range(self.n_heads)]
        return join_heads(torch.stack(heads), self.W_O)


class EncoderLayer(nn.Module):
    """`encoder_layer`, with weights."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = Attention(d_model, n_heads)
        self.network = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, real):
        mask = real.expand(len(x), len(x))
        return encoder_layer(x, lambda h: self.attention(h, h, mask), self.network, self.norm)


class DecoderLayer(nn.Module):
    """`decoder_layer`, with weights."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = Attention(d_model, n_heads)
        self.cross = Attention(d_model, n_heads)
        self.network = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, y, memory, real):
        def cross(y, memory, mask):
            return self.cross(y, memory, mask & real)

        return decoder_layer(y, memory, self.attention, cross, self.network, list(self.norms))


class Transformer(nn.Module):
    """Tokens of a sentence and of its translation so far in, log-probabilities of each next token out."""

    at_once = True  # False where a part asks `if` about its numbers: then sentences go through it one by one

    def __init__(self, n_source, n_target, d_model=32, n_heads=2, d_ff=64, n_layers=1):
        super().__init__()
        self.d_model = d_model
        self.source_rows = nn.Embedding(n_source, d_model)
        self.target_rows = nn.Embedding(n_target, d_model)
        self.encoder = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)  # of what the encoder wrote, whose layers normalise what they read
        self.out = nn.Linear(d_model, n_target, bias=False)

    def encode(self, source):
        """The rows of one sentence, ``(n,)`` tokens, and which of them are real."""
        real = source != PAD
        x = self.source_rows(source) + position_codes(torch.arange(len(source)), self.d_model)
        for layer in self.encoder:
            x = layer(x, real)
        return self.norm(x), real

    def decode(self, target, memory, real):
        """Log-probabilities of what follows each token of ``target``, ``(n,)``."""
        y = self.target_rows(target) + position_codes(torch.arange(len(target)), self.d_model)
        for layer in self.decoder:
            y = layer(y, memory, real)
        return self.out(y).log_softmax(dim=-1)

    def one(self, source, target):
        """One sentence and the start of its translation."""
        return self.decode(target, *self.encode(source))

    def forward(self, source, target):
        """Many sentences, ``(batch, n)``, padded with `PAD`."""
        if self.at_once:
            return torch.vmap(self.one)(source, target)
        return torch.stack([self.one(*pair) for pair in zip(source, target, strict=True)])

    def loss(self, source, target):
        """What a token of ``target`` cost, which goes in shifted right."""
        first = torch.full_like(target[:, :1], START)
        return mean_loss(self(source, torch.cat([first, target[:, :-1]], dim=1)), target, PAD)

    @torch.no_grad()
    def write(self, source, width=2, n_max=24):
        """The translation that a search with ``width`` beams finds, as tokens."""
        memory, real = self.encode(source)
        beams = [[START]] * width
        log_p = torch.tensor([0.0] + [-torch.inf] * (width - 1))  # at first they are all the same, and one is enough
        for _ in range(n_max):
            after = torch.stack([self._after(beam, memory, real) for beam in beams])
            best = torch.as_tensor(beam_step(log_p, after)).long()
            if best.shape != (width, 2) or (best < 0).any() or (best >= torch.tensor(after.shape)).any():
                shape = tuple(after.shape)
                raise ValueError(
                    f"beam_step must return {width} pairs (beam, token) below {shape}; got {best.tolist()}"
                )
            log_p = log_p[best[:, 0]] + after[best[:, 0], best[:, 1]]
            beams = [[*beams[beam], word] for beam, word in best.tolist()]
            if all(beam[-1] == END for beam in beams):
                break
        return [token for token in beams[0][1:] if token != END]

    def _after(self, beam, memory, real):
        if beam[-1] != END:
            return self.decode(torch.tensor(beam), memory, real)[-1]
        ended = torch.full((self.out.out_features,), -torch.inf)  # nothing comes after the end but the end
        ended[END] = 0.0
        return ended


# --- what it is started with ---


def load(path):
    """A model that was saved, and the words that its tokens stand for."""
    kept = torch.load(path, weights_only=True)
    model = Transformer(len(kept["source"]), len(kept["target"]), **kept["sizes"])
    model.load_state_dict(kept["weights"])
    return model.eval(), kept["source"], kept["target"]


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)  # as when it was trained: a part may count on it, with -1e300, say
    model, source, target = load(__file__.removesuffix(".py") + ".pt")
    unknown = [word for word in sys.argv[1:] if word not in source]
    if unknown or not sys.argv[1:]:
        sys.exit(f"It was not trained on {unknown[0]!r}." if unknown else f"It reads: {' '.join(source[3:])}")
    tokens = model.write(torch.tensor([source.index(word) for word in sys.argv[1:]]))
    print(" ".join(target[token] for token in tokens))
