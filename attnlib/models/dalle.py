r"""DALL·E: a picture becomes a row of codes, and a language model writes them after the caption.

.. math:: \text{code}(x) = \arg\min_k \lVert x - m_k \rVert, \qquad
          p(\text{caption}, \text{codes}) = \prod_t p(z_t \mid z_{<t})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlib._base.checks import check_at_least_one, check_floats
from attnlib._base.seeds import Seed, generator
from attnlib.decoding.sampling import draw
from attnlib.models.configs import GPTConfig
from attnlib.models.gpt import GPT
from attnlib.nn.tokens import check_tokens

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["DALLE", "PatchCodes"]


class PatchCodes:
    r"""Names for patches: each is called by the number of the nearest of some patches that k-means has chosen.

    .. math:: \text{code}(x) = \arg\min_k \lVert x - m_k \rVert, \quad m_k = \text{mean of the } x \text{ with code } k

    ``centres`` ``(n_codes, channels, patch, patch)`` are the :math:`m_k`. The published model learns codes with a
    network, a discrete variational autoencoder; here there is none.

    Raises ``TypeError`` for anything but floats, ``ValueError`` for another shape.

    Source: Lloyd (1982) for k-means; Ramesh et al. (2021), *DALL·E*, section 2.1, for pictures as codes.

    >>> codes = PatchCodes(torch.stack([torch.zeros(1, 2, 2), torch.ones(1, 2, 2)]))
    >>> codes.encode(torch.eye(4).repeat_interleave(2, 0).repeat_interleave(2, 1)[None, None, :4, :4])
    tensor([[1, 0, 0, 1]])
    """

    def __init__(self, centres: Float[Tensor, "n_codes channels patch patch"]) -> None:
        check_floats(centres=centres)
        if centres.ndim != 4 or centres.shape[2] != centres.shape[3]:
            raise ValueError(f"centres must be (n_codes, channels, patch, patch); got {tuple(centres.shape)}")
        self.centres = centres
        self.patch = centres.shape[-1]

    @classmethod
    def fit(
        cls, pictures: Float[Tensor, "n channels side side"], n_codes: int, patch: int, *, steps: int = 20, seed: Seed
    ) -> Self:
        """Codes for pictures like these: ``steps`` rounds of k-means from ``n_codes`` patches drawn by ``seed``.

        A centre to which no patch is nearest stays where it is.

        Raises ``ValueError`` too when there are fewer patches than codes.
        """
        check_floats(pictures=pictures)
        check_at_least_one("patch", patch)
        patches = _patches(pictures, patch).flatten(0, 1)
        if len(patches) < check_at_least_one("n_codes", n_codes):
            raise ValueError(f"n_codes must be at most the number of patches, {len(patches)}; got {n_codes}")
        centres = patches[torch.from_numpy(generator(seed).choice(len(patches), n_codes, replace=False))]
        for _ in range(check_at_least_one("steps", steps)):
            nearest = torch.cdist(patches, centres).argmin(-1)
            sums = torch.zeros_like(centres).index_add_(0, nearest, patches)
            often = nearest.bincount(minlength=n_codes)[:, None]
            centres = torch.where(often > 0, sums / often.clamp(min=1), centres)
        return cls(centres.unflatten(1, (pictures.shape[1], patch, patch)))

    def encode(self, pictures: Float[Tensor, "n channels side side"]) -> Int[Tensor, "n n_patches"]:
        """The code of every patch, line by line."""
        check_floats(pictures=pictures, centres=self.centres)
        return torch.cdist(_patches(pictures, self.patch), self.centres.flatten(1)).argmin(-1)

    def decode(self, codes: Int[Tensor, "n n_patches"]) -> Float[Tensor, "n channels side side"]:
        """The picture that is made of the codes' centres.

        Raises ``ValueError`` too unless there are as many in each line as there are lines.
        """
        check_tokens("codes", codes, len(self.centres))
        lines = round(codes.shape[1] ** 0.5)
        if lines**2 != codes.shape[1]:
            raise ValueError(f"codes must be a square number for each picture; got {codes.shape[1]}")
        flat = self.centres[codes].flatten(2).mT  # (n, channels * patch * patch, n_patches)
        return F.fold(flat, lines * self.patch, self.patch, stride=self.patch)


def _patches(pictures: Tensor, patch: int) -> Tensor:
    if pictures.ndim != 4 or pictures.shape[2] % patch or pictures.shape[3] % patch:
        raise ValueError(
            f"pictures must be (n, channels, side, side), side a multiple of {patch}; got {tuple(pictures.shape)}"
        )
    return F.unfold(pictures, patch, stride=patch).mT  # (n, n_patches, channels * patch * patch)


class DALLE(nn.Module):
    r"""A `GPT` over captions followed by codes, in one vocabulary: words first, then codes.

    .. math:: p(z_t \mid z_{<t}) = \text{GPT}(z)_t, \qquad z = [\text{caption}, n_\text{words} + \text{codes}]

    ``n_patches`` is how many codes a picture has; ``sizes`` are further choices of `GPTConfig`.

    Raises as `GPTConfig`.

    Source: Ramesh et al. (2021), *Zero-Shot Text-to-Image Generation*, section 2.2.

    >>> model = DALLE(n_words=9, n_codes=5, n_caption=4, n_patches=16, d_model=8, n_heads=2, n_layers=1)
    >>> model.draw(torch.zeros(3, 4, dtype=torch.int64), seed=0).shape
    torch.Size([3, 16])
    """

    def __init__(self, n_words: int, n_codes: int, n_caption: int, n_patches: int, **sizes: int) -> None:
        super().__init__()
        self.n_words = check_at_least_one("n_words", n_words)
        self.n_codes = check_at_least_one("n_codes", n_codes)
        self.n_caption = n_caption
        self.n_patches = check_at_least_one("n_patches", n_patches)
        self.gpt = GPT(GPTConfig(n_tokens=n_words + n_codes, n_max=n_caption + n_patches, end=None, **sizes))

    def forward(self, captions: Int[Tensor, "n n_caption"], codes: Int[Tensor, "n n_patches"]) -> Float[Tensor, ""]:
        """The loss: the mean surprise of a code, in nats, given the caption and the codes before it.

        Raises ``TypeError`` or ``ValueError`` when captions or codes are not integers of their vocabulary and length.
        """
        check_tokens("captions", captions, self.n_words)
        check_tokens("codes", codes, self.n_codes)
        tokens = torch.cat([captions, codes + self.n_words], dim=1)
        logits = self.gpt(tokens[:, :-1]).logits[:, captions.shape[1] - 1 :, self.n_words :]
        return F.cross_entropy(logits.flatten(0, 1), codes.flatten())

    @torch.no_grad()
    def draw(
        self, captions: Int[Tensor, "n n_caption"], *, seed: Seed, temperature: float = 1.0
    ) -> Int[Tensor, "n n_patches"]:
        """Codes for each caption, drawn one after the other from what the model expects."""
        check_tokens("captions", captions, self.n_words)
        choose = draw(seed, temperature, None, None)
        state = self.gpt.prefill(captions, self.n_patches)
        codes, token = [], captions[:, -1:]
        for _ in range(self.n_patches):
            token = choose(self.gpt.step(token, state)[:, -1, self.n_words :])[:, None] + self.n_words
            codes.append(token - self.n_words)
        return torch.cat(codes, dim=1)
