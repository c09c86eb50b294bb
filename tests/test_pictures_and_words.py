"""CLIP, Flamingo and DALL·E: against Hugging Face's, and for what they promise."""

from __future__ import annotations

import pytest
import torch
from transformers import CLIPConfig as TheirConfig
from transformers import CLIPModel

from attnlib import plotting
from attnlib.course import drawings
from attnlib.data.captions import COLOURS, END, HELD_OUT, PAIRS, SEEN, WORDS, captioned, captions, text
from attnlib.data.tones import MOVES, RATE, spectrogram, tones
from attnlib.models import CLIP, GPT, CLIPConfig, GPTConfig, contrastive_loss
from attnlib.models.dalle import DALLE, PatchCodes
from attnlib.models.flamingo import Flamingo, GatedCrossAttention
from attnlib.models.published_clip import clip
from attnlib.training import fit

SMALL = dict(n_tokens=12, n_max=4, end=END, side=16, patch=4, d_model=16, n_heads=2, n_layers=1)
SMALL |= dict(d_text=12, n_text_heads=3, n_text_layers=1, d_shared=10)


def their_clip(dtype=torch.float32, **options):
    torch.manual_seed(0)
    layers = {"num_hidden_layers": 3, "num_attention_heads": 3, "hidden_size": 24, "intermediate_size": 30}
    words = {"vocab_size": 50, "max_position_embeddings": 12, "bos_token_id": 0, "eos_token_id": 49}
    pictures = {"image_size": 12, "patch_size": 4, "num_attention_heads": 4, "hidden_size": 32}
    config = TheirConfig(text_config=layers | words | options, vision_config=layers | pictures, projection_dim=20)
    theirs = CLIPModel(config)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return theirs.to(dtype).eval()


def shown_and_tokens(dtype=torch.float32):
    tokens = torch.randint(2, 49, (5, 9))
    tokens[range(5), [8, 4, 6, 3, 8]] = 49
    return torch.rand(5, 3, 12, 12, dtype=dtype), tokens


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("options", [{}, {"eos_token_id": 2}, {"hidden_act": "gelu"}])
def test_clip_equals_hugging_face(dtype, atol, options):
    theirs = their_clip(dtype, **options)
    ours, (pictures, tokens) = CLIP.from_huggingface(theirs), shown_and_tokens(dtype)
    scores, wanted = ours(pictures, tokens), theirs(input_ids=tokens, pixel_values=pictures, return_loss=True)
    torch.testing.assert_close(scores, wanted.logits_per_image, atol=atol, rtol=0)
    loss = contrastive_loss(scores)
    torch.testing.assert_close(loss, wanted.loss, atol=atol, rtol=0)
    loss.backward()
    wanted.loss.backward()
    blueprint = clip(theirs.config.to_dict(), ())
    gradients, _ = blueprint.named({name: p.grad for name, p in theirs.named_parameters()})
    for name, parameter in ours.named_parameters():
        wanted_gradient = blueprint.parts[name].joined(gradients)
        torch.testing.assert_close(parameter.grad, wanted_gradient, atol=atol, rtol=0, msg=name)


def test_clip_is_read_from_a_folder(tmp_path):
    theirs = their_clip()
    theirs.save_pretrained(tmp_path)
    model = CLIP.from_pretrained(tmp_path)
    pictures, tokens = shown_and_tokens()
    wanted = theirs(input_ids=tokens, pixel_values=pictures).logits_per_image
    torch.testing.assert_close(model(pictures, tokens), wanted, atol=1e-5, rtol=0)


def test_clip_compares_every_picture_with_every_caption():
    model = CLIP(CLIPConfig(**SMALL)).double()
    batch = captioned(seed=0)
    pictures = batch.pictures.double()
    scores = model(pictures, batch.captions)
    one = model(pictures[3:4], batch.captions[5:6])
    torch.testing.assert_close(scores[3:4, 5:6], one)
    assert scores.abs().max() <= model.log_scale.exp() + 1e-9


def test_what_clip_refuses():
    for options, said in [
        ({"patch": 5}, "patch must divide side = 16; got 5"),
        ({"n_text_heads": 5}, "n_text_heads must divide d_text = 12; got 5"),
        ({"end": 12}, "end must be a token below n_tokens = 12; got 12"),
        ({"scale": 0.0}, "scale must be positive"),
    ]:
        with pytest.raises(ValueError, match=said):
            CLIPConfig(**SMALL | options)
    model = CLIP(CLIPConfig(**SMALL))
    with pytest.raises(ValueError, match=r"pictures must be \(batch, \*\(3, 16, 16\)\); got \(2, 16, 16, 3\)"):
        model.pictures(torch.zeros(2, 16, 16, 3))
    with pytest.raises(TypeError, match="pictures must hold floating-point numbers"):
        model.pictures(torch.zeros(2, 3, 16, 16, dtype=torch.int64))
    with pytest.raises(ValueError, match="tokens must hold tokens from 0 to 11; got 12"):
        model.text(torch.tensor([[12]]))
    with pytest.raises(ValueError, match=r"scores must be \(n, n\), a caption for each picture; got \(2, 3\)"):
        contrastive_loss(torch.zeros(2, 3))
    theirs = their_clip(layer_norm_eps=1e-3)
    with pytest.raises(ValueError, match="layer_norm_eps must be one for text and pictures"):
        CLIP.from_huggingface(theirs)


def test_captions_say_what_is_drawn():
    assert not set(SEEN) & set(HELD_OUT)
    assert {colour for colour, _ in HELD_OUT} == set(COLOURS)
    assert {text(row) for row in captions(SEEN)}.isdisjoint(text(row) for row in captions(HELD_OUT))
    words = {word for row in captions(SEEN) for word in text(row).split()}
    assert words == set(WORDS) - {WORDS[END]}
    batch = captioned(PAIRS, each=2, noise=0.0, seed=3)
    assert torch.equal(batch.captions, captions(PAIRS[i] for i in batch.pair))
    for picture, pair in zip(batch.pictures, batch.pair, strict=True):
        colour = torch.tensor(COLOURS[PAIRS[pair][0]])
        assert (picture - colour[:, None, None]).abs().sum(0).min() < 1e-6


def test_captioned_pictures_come_from_the_seed_alone():
    again = [captioned(seed=(1, 2)) for _ in range(2)]
    assert torch.equal(again[0].pictures, again[1].pictures)
    assert not torch.equal(again[0].pictures, captioned(seed=(1, 3)).pictures)
    with pytest.raises(ValueError, match=r"pairs must hold \(colour, shape\)"):
        captioned([("red", "circle")], seed=0)
    with pytest.raises(ValueError, match="pairs must hold at least one"):
        captioned([], seed=0)
    with pytest.raises(ValueError, match="side must be at least 12"):
        captioned(side=11, seed=0)
    with pytest.raises(ValueError, match="noise must be finite and not negative"):
        captioned(noise=-1, seed=0)


def language():
    torch.manual_seed(0)
    return GPT(GPTConfig(n_tokens=12, n_max=8, d_model=16, n_heads=2, n_layers=2)).eval()


@pytest.mark.parametrize("position", ["learned", "rotary", "alibi"])
def test_a_new_flamingo_is_the_language_model_to_the_bit(position):
    torch.manual_seed(0)
    model = GPT(GPTConfig(n_tokens=12, n_max=8, d_model=16, n_heads=2, n_layers=2, position=position)).eval()
    tokens = torch.randint(12, (3, 5))
    told = Flamingo(model, d_rows=6)(tokens, torch.randn(3, 4, 6), weights=True)
    assert torch.equal(told.logits, model(tokens).logits)
    assert [tuple(alpha.shape) for alpha in told.weights] == [(3, 2, 5, 4)] * 2


def test_training_a_flamingo_leaves_the_language_model_as_it_was():
    model = Flamingo(language(), d_rows=6)
    before = {name: p.clone() for name, p in model.named_parameters()}
    tokens, rows = torch.randint(12, (4, 5)), torch.randn(4, 3, 6)

    def loss(model, batch):
        logits = model(tokens[:, :-1], rows).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    fit(model, lambda step: None, loss, steps=5, progress=False)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("language."), name
    assert not torch.equal(model(tokens, rows).logits, model.language(tokens).logits)
    assert not model.train().language.training


def test_a_flamingo_writes_what_is_likeliest_and_sees_no_later_word():
    model, rows = Flamingo(language(), d_rows=6, gate=1.0), torch.randn(3, 4, 6)
    written = model.write(rows, torch.tensor([1]), n_max=5)
    tokens = torch.cat([torch.ones(3, 1, dtype=torch.int64), written], dim=1)
    assert torch.equal(model(tokens[:, :-1], rows).logits.argmax(-1), written)


def test_what_flamingo_refuses():
    with pytest.raises(TypeError, match="language must be a GPT; got Linear"):
        Flamingo(torch.nn.Linear(1, 1), d_rows=3)
    model = Flamingo(language(), d_rows=6)
    with pytest.raises(ValueError, match=r"rows must have shape \(batch, m, d_rows\) = \(2, m, 6\); got \(3, 4, 6\)"):
        model(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(3, 4, 6))
    with pytest.raises(TypeError, match="gate must be a number"):
        GatedCrossAttention(8, 2, 16, gate="open")


def test_codes_are_the_nearest_centres_and_decoding_lays_them_back():
    pictures = captioned(PAIRS, seed=0).pictures
    codes = PatchCodes.fit(pictures, 20, 4, seed=0)
    encoded = codes.encode(pictures)
    assert encoded.shape == (24, 16)
    drawn = codes.decode(encoded)
    assert drawn.shape == pictures.shape
    assert torch.equal(codes.encode(drawn), encoded)
    patch = pictures[5, :, 4:8, 8:12]
    distances = (codes.centres - patch).square().sum((1, 2, 3))
    assert encoded[5, 1 * 4 + 2] == distances.argmin()
    few = PatchCodes.fit(pictures, 2, 4, seed=0)
    assert (drawn - pictures).square().mean() < (few.decode(few.encode(pictures)) - pictures).square().mean()


def test_codes_of_k_means_are_a_fixed_point():
    sklearn = pytest.importorskip("sklearn.cluster")
    pictures = captioned(PAIRS, seed=1).pictures.double()
    ours = PatchCodes.fit(pictures, 8, 4, steps=300, seed=0)
    start = ours.centres.flatten(1).numpy()
    patches = torch.nn.functional.unfold(pictures, 4, stride=4).mT.flatten(0, 1).numpy()
    theirs = sklearn.KMeans(8, init=start, n_init=1, max_iter=1).fit(patches)
    assert abs(theirs.cluster_centers_ - start).max() < 1e-10


def test_a_dalle_draws_codes_and_its_loss_is_that_of_the_codes():
    torch.manual_seed(0)
    model = DALLE(12, 7, 4, 9, d_model=8, n_heads=2, n_layers=1).eval()
    words, codes = captions(PAIRS[:3]), torch.randint(7, (3, 9))
    tokens = torch.cat([words, codes + 12], dim=1)
    log_p = model.gpt(tokens).logits[:, 3:-1, 12:].log_softmax(-1)
    torch.testing.assert_close(model(words, codes), -log_p.gather(-1, codes[..., None]).mean())
    drawn = model.draw(words, seed=1)
    assert torch.equal(drawn, model.draw(words, seed=1))
    assert drawn.min() >= 0
    assert drawn.max() < 7
    likeliest = model.draw(words, seed=1, temperature=1e-6)
    tokens = torch.cat([words, likeliest + 12], dim=1)
    assert torch.equal(model.gpt(tokens).logits[:, 3:-1, 12:].argmax(-1), likeliest)


def test_what_codes_refuse():
    with pytest.raises(ValueError, match="n_codes must be at most the number of patches, 16; got 17"):
        PatchCodes.fit(torch.zeros(1, 3, 16, 16), 17, 4, seed=0)
    codes = PatchCodes(torch.zeros(2, 3, 4, 4))
    with pytest.raises(ValueError, match="side a multiple of 4"):
        codes.encode(torch.zeros(1, 3, 15, 16))
    with pytest.raises(ValueError, match="codes must be a square number for each picture; got 5"):
        codes.decode(torch.zeros(1, 5, dtype=torch.int64))
    with pytest.raises(ValueError, match="centres must be"):
        PatchCodes(torch.zeros(2, 3, 4, 5))


def test_the_loudest_pitch_of_a_tone_does_what_its_word_says():
    sounds = tones(200, noise=0.0, seed=0)
    rows = 31 - spectrogram(sounds.waves)[:, 0].argmax(1)  # (n, time), from the bottom
    first, last = rows[:, :3].double().mean(1), rows[:, -3:].double().mean(1)
    for name, sign in zip(MOVES, (1, -1, 0, 1, -1), strict=True):
        moved = (last - first)[sounds.move == MOVES.index(name)]
        assert (moved.abs() < 1).all() if sign == 0 else (sign * moved > 2).all(), name
    steps = rows.diff(dim=1).abs().amax(1)
    assert steps[sounds.move == MOVES.index("jumps up")].min() >= 2
    assert steps[sounds.move == MOVES.index("rises")].max() <= 2


def test_a_sound_played_backwards_is_its_spectrogram_turned_round():
    waves = tones(5, seed=1).waves
    trimmed = waves[:, : 57 * 31 + 256]  # what the windows cover
    back = torch.cat([trimmed.flip(1), torch.zeros(5, waves.shape[1] - trimmed.shape[1])], dim=1)
    apart = (spectrogram(back) - spectrogram(waves).flip(-1)).abs()
    assert apart.mean() < 0.05  # Hann's window of torch is not quite its own mirror image
    assert RATE == 4096


def test_what_tones_refuse():
    with pytest.raises(ValueError, match=r"waves must have shape \(n, 2048\); got \(2, 100\)"):
        spectrogram(torch.zeros(2, 100))
    with pytest.raises(ValueError, match="noise must be finite and not negative; got -1"):
        tones(2, noise=-1, seed=0)
    with pytest.raises(ValueError, match="n must be at least 1"):
        tones(0, seed=0)


def test_drawings_say_the_sizes_of_the_pass():
    model, batch = CLIP(CLIPConfig(**SMALL)), captioned(seed=0)
    alt = drawings.clip_diagram(model, batch.pictures, batch.captions, title="t").alt
    for words in ("4×4 pixels to (16, 4, 4)", "17 rows of 16", "1 × EncoderLayer, causal", "scores (18, 18)"):
        assert words in alt
    flamingo = Flamingo(language(), d_rows=16, every=2)
    tokens, rows = torch.zeros(3, 5, dtype=torch.int64), torch.zeros(3, 4, 16)
    alt = drawings.flamingo_diagram(flamingo, tokens, rows, title="t").alt
    assert "layer 0 to gated cross-attention, (3, 5, 16)" in alt
    assert "gated cross-attention to layer 1, (3, 5, 16)" in alt
    with pytest.raises(ValueError, match="codes must be more than shown = 4"):
        drawings.dalle_diagram(["a"], [1, 2], title="t")
    with pytest.raises(ValueError, match=r"red must be pictures \(n, 3, height, width\); got \(2, 4, 4\)"):
        plotting.colour_images({"red": torch.zeros(2, 4, 4)}, title="t")


def test_flamingo_stands_before_the_last_of_every_few_layers():
    model = Flamingo(language(), d_rows=6, every=2)
    assert list(model.layers) == ["1"]
    assert list(Flamingo(language(), d_rows=6).layers) == ["0", "1"]
    with pytest.raises(ValueError, match="every must be at most the number of layers, 2; got 3"):
        Flamingo(language(), d_rows=6, every=3)
