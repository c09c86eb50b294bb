"""The shipped model of chemical reactions: equal to Hugging Face's on real reactions, and what its heads do."""

import json
import re

import numpy as np
import pytest
import torch
from transformers import AlbertForMaskedLM

from attnlib.data.molecules import TOKEN
from attnlib.data.reactions import reactions
from attnlib.interventions import cut
from attnlib.models import folder_of, pretrained
from attnlib.models.unsharing import unshared
from attnlib.probes.alignment import points_right
from attnlib.probes.gaps import fill_gaps

FOLDER = folder_of("rxnmapper")


@pytest.fixture(scope="module")
def rxnmapper():
    return pretrained("rxnmapper")


@pytest.fixture(scope="module")
def theirs():
    return AlbertForMaskedLM.from_pretrained(FOLDER, attn_implementation="eager").eval()


# In float32 twelve layers round to 2e-5 of a weight and 4e-6 of the largest logit; in float64 nothing is left of it.
@pytest.mark.parametrize(("dtype", "atol", "n"), [(torch.float32, 4e-5, 90), (torch.float64, 1e-10, 15)])
def test_it_equals_hugging_face_on_real_reactions(rxnmapper, theirs, dtype, atol, n):
    ours, tokenizer = rxnmapper
    texts = [one.smiles for one in reactions()]
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    found = tokenizer.encode_batch(texts)
    tokenizer.no_padding()
    tokens, real = (torch.tensor([getattr(one, name) for one in found]) for name in ("ids", "attention_mask"))
    assert tokens.shape[0] == 90
    ours, theirs = ours.to(dtype), theirs.to(dtype)
    try:
        for rows in torch.arange(n).split(15):
            with torch.no_grad():
                wanted = theirs(tokens[rows], attention_mask=real[rows], output_attentions=True)
                read = ours.encode(tokens[rows], mask=real[rows] == 1, weights=True)
                logits = ours.mlm_logits(read.out)
            here = real[rows] == 1
            scale = wanted.logits.abs().max()
            assert (logits - wanted.logits)[here].abs().max() <= min(atol, 1e-5) * scale
            assert len(read.weights) == len(wanted.attentions) == 12
            for mine, other in zip(read.weights, wanted.attentions, strict=True):
                difference = (mine - other).transpose(1, 2)[here]
                assert difference.abs().max() <= atol
    finally:
        ours.to(torch.float32)
        theirs.to(torch.float32)


def test_the_tokenizer_is_theirs(rxnmapper):
    words = FOLDER.joinpath("vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    numbers = {word: i for i, word in enumerate(words)}
    assert len(words) == rxnmapper.model.config.n_tokens == rxnmapper.tokenizer.get_vocab_size() == 591
    # What the regular expression does not find is dropped, and what the vocabulary does not have is [UNK].
    texts = [one.smiles for order in ("canonical", "random") for one in reactions(order=order)]
    texts += ["[Xx]C%12CC%12>>C[C@@H](Br)[Si]", "C C~[Na+].qC>O>[nH]", "", "CX>>ClBr[2H]", "C[UNK]C[MASK]"]
    for text in texts:
        split = ["[CLS]", *re.findall(TOKEN, text), "[SEP]"]
        encoded = rxnmapper.tokenizer.encode(text)
        assert encoded.ids == [numbers.get(token, numbers["[UNK]"]) for token in split], text
    assert rxnmapper.tokenizer.encode("[Xx]").ids == [12, 11, 13]


def test_the_pattern_is_that_of_their_package():
    theirs = r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
    assert theirs == TOKEN


def test_what_is_shipped_is_small_and_licensed():
    assert FOLDER.joinpath("model.safetensors").stat().st_size < 3.6e6
    assert FOLDER.joinpath("LICENSE").read_text(encoding="utf-8").startswith("Copyright 2020 RXN4Chemistry team.")
    card = FOLDER.joinpath("README.md").read_text(encoding="utf-8")
    for said in ("eabe4166", "USPTO", "convert_rxnmapper.py", "MIT", "not good for"):
        assert said in card
    settings = json.loads(FOLDER.joinpath("config.json").read_text(encoding="utf-8"))
    assert settings["model_type"] == "albert"


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match="name must be one of 'rxnmapper', 'technical-english'; got 'bert'"):
        pretrained("bert")


def weights_of(model, tokenizer, reaction):
    encoded = tokenizer.encode(reaction.smiles)
    assert tuple(encoded.tokens) == reaction.tokens
    with torch.no_grad():
        return torch.stack(model.encode(torch.tensor([encoded.ids]), weights=True).weights)[:, 0]


def test_one_head_points_where_the_atoms_came_from(rxnmapper):
    hits = [points_right(weights_of(*rxnmapper, one), one.alignment()) for one in reactions()]
    share = np.concatenate(hits, axis=-1).mean(axis=-1)
    assert share.shape == (12, 8)
    assert share[10, 5] == pytest.approx(0.896, abs=0.003)
    assert (share.argmax(axis=1) == 5).all()
    assert (np.delete(share, 5, axis=1) < 0.5).all()


def test_cutting_that_head_costs_what_cutting_all_does(rxnmapper):
    model, tokenizer = rxnmapper
    chosen, gap = reactions("typical")[:12], tokenizer.token_to_id("[MASK]")

    def loss(heads):
        lost = []
        for one in chosen:
            arrow, n = one.tokens.index(">>"), len(one.tokens)
            places = [[*range(arrow + 1, n - 1)]], [[*range(1, arrow)]]
            tokens = torch.tensor(tokenizer.encode(one.smiles).ids)
            with cut(model.layers[0].self_attention, *places, heads=heads):  # one layer, so in every layer
                lost.append(fill_gaps(model, tokens, [one.product_atoms], gap).loss)
        return np.concatenate(lost).mean()

    intact, without, all_cut = loss([]), loss([5]), loss(None)
    assert without > intact + 0.7
    assert without > 0.9 * all_cut
    for head in (0, 1, 2, 3, 4, 6, 7):
        assert loss([head]) < intact + 0.1


def test_layers_of_their_own_can_be_cut_alone(rxnmapper):
    model, tokenizer = rxnmapper
    single, tokens = unshared(model), torch.tensor([tokenizer.encode(reactions()[0].smiles).ids])
    torch.testing.assert_close(single(tokens), model(tokens), atol=1e-5, rtol=0)
    assert len(single.layers) == 12
    assert not single.training
    with cut(single.layers[10].self_attention, None, [[1, 2, 3]]):
        read = single.encode(tokens, weights=True)
    closed = [bool((weights[0, :, :, 1:4] == 0).all()) for weights in read.weights]
    assert closed == [i == 10 for i in range(12)]
    with pytest.raises(ValueError, match="model must have one layer for all depths"):
        unshared(single)
    with pytest.raises(TypeError, match="model must be a BERT; got Linear"):
        unshared(torch.nn.Linear(1, 1))
