"""Drawings: they say what a forward pass did, refuse what they cannot follow, and can be read aloud."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

from attnlib import attention, padding, plotting, positions, scaled_dot, split_heads
from attnlib.course import drawings
from attnlib.nn import DecoderLayer, EncoderLayer, Transformer, TransformerConfig
from attnlib.plotting.canvas import text_size
from attnlib.plotting.flow import calls_of, flow_of, outermost
from attnlib.plotting.picture import INK

X, MEMORY = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
SOURCE, TARGET = torch.randint(4, 14, (2, 7)), torch.randint(4, 14, (2, 5))


def transformer(**options):
    return Transformer(TransformerConfig(n_source=14, n_target=14, d_model=32, d_ff=48, **options))


def said_of(picture, kind="Arrows"):
    """What the alt text says of one kind of thing, as a list."""
    return re.search(rf"(?:^|\. ){kind}: (.*?)\.(?: |$)", picture.alt).group(1).split("; ")


def drawing(layer, *inputs, **options):
    return plotting.layer_diagram(layer, *inputs, title="A layer", **options)


def model_drawing(model, source=SOURCE):
    return plotting.transformer_diagram(model, source, TARGET, title="A model")


def attention_drawing(q, k, v, scores, weights, out, **options):
    return drawings.attention_diagram(q, k, v, scores, weights, out, title="One attention", **options)


def test_a_pre_norm_layer_is_drawn_with_its_sums_past_the_normalisation():
    assert said_of(drawing(EncoderLayer(16, 4, 64), X)) == [
        "x to LayerNorm, (2, 5, 16)",
        "LayerNorm as queries, keys and values to self-attention, (2, 5, 16)",
        "self-attention to sum, (2, 5, 16)",
        "x also straight to sum, (2, 5, 16)",
        "sum to second LayerNorm, (2, 5, 16)",
        "second LayerNorm to feed-forward, (2, 5, 16)",
        "feed-forward to second sum, (2, 5, 16)",
        "sum also straight to second sum, (2, 5, 16)",
        "second sum to out, (2, 5, 16)",
    ]


def test_a_post_norm_layer_is_drawn_with_its_normalisation_after_the_sum():
    arrows = said_of(drawing(EncoderLayer(16, 4, 64, norm_first=False), X))
    assert arrows[:4] == [
        "x as queries, keys and values to self-attention, (2, 5, 16)",
        "self-attention to sum, (2, 5, 16)",
        "x also straight to sum, (2, 5, 16)",
        "sum to LayerNorm, (2, 5, 16)",
    ]
    assert arrows[-1] == "second LayerNorm to out, (2, 5, 16)"


def test_a_layer_that_lies_about_itself_is_drawn_as_it_is():
    layer = EncoderLayer(16, 4, 64)
    layer.self_attention_residual.norm_first = layer.feed_forward_residual.norm_first = False
    layer.feed_forward.linear1, layer.feed_forward.linear2 = nn.Linear(16, 24), nn.Linear(24, 16)
    layer.feed_forward_residual.norm = nn.RMSNorm(16)
    picture = drawing(layer, X)
    assert said_of(picture)[-1] == "RMSNorm to out, (2, 5, 16)"
    assert "feed-forward, 16 → 24 → 16" in said_of(picture, "Boxes")


def test_sizes_heads_and_masks_are_those_of_the_pass():
    picture = drawing(EncoderLayer(24, 3, 10, norm="rms"), torch.randn(4, 6, 24), mask=torch.ones(4, 1, 6).bool())
    assert said_of(picture, "Boxes") == [
        "RMSNorm",
        "self-attention, 3 heads of 8, mask (4, 1, 6)",
        "second RMSNorm",
        "feed-forward, 24 → 10 → 24",
    ]
    assert all(arrow.endswith(", (4, 6, 24)") for arrow in said_of(picture))


@pytest.mark.parametrize("norm_first", [True, False])
def test_every_shape_on_an_arrow_is_one_that_a_hook_saw(norm_first):
    layer, seen = DecoderLayer(16, 2, 40, norm_first=norm_first), set()
    for part in layer.modules():
        part.register_forward_hook(lambda _, given, out: seen.update(str(tuple(x.shape)) for x in given))
    picture = drawing(layer, X, MEMORY, causal=True)
    drawn = set(re.findall(r"\(\d[\d, ]*\)", " ".join(said_of(picture) + said_of(picture, "Across"))))
    assert drawn == {"(2, 5, 16)", "(2, 7, 16)"}
    assert drawn <= seen
    assert said_of(picture, "Across") == ["memory as keys and values to cross-attention, (2, 7, 16)"]
    assert "self-attention, 2 heads of 8, causal" in said_of(picture, "Boxes")


def test_what_does_not_come_from_a_part_or_a_sum_is_refused():
    layer = EncoderLayer(16, 4, 64)
    layer.feed_forward_residual.after = lambda x, y: x + 2 * y
    with pytest.raises(ValueError, match="the output must be what an earlier part gave, or the sum of two"):
        drawing(layer, X)


def test_a_layer_without_a_residual_is_drawn_without_one():
    layer = EncoderLayer(16, 4, 64)
    layer.feed_forward_residual.after = lambda x, y: y
    arrows = said_of(drawing(layer, X))
    assert arrows[-1] == "feed-forward to out, (2, 5, 16)"
    assert not any("second sum" in arrow for arrow in arrows)


def test_the_model_is_drawn_with_its_stacks_counted_and_the_memory_going_across():
    picture = model_drawing(transformer(n_encoder_layers=3, n_decoder_layers=1))
    assert said_of(picture, "Frames") == [
        "3 × EncoderLayer, from the first LayerNorm to second sum",
        "1 × DecoderLayer, from the first LayerNorm to third sum",
    ]
    assert said_of(picture, "Across") == [
        "encoder's third LayerNorm as keys and values to cross-attention, (2, 7, 32)"
    ]
    assert said_of(picture, "Encoder, arrows")[0] == "source to embedding of 14 tokens, (2, 7)"
    assert said_of(picture, "Decoder, arrows")[-2:] == [
        "fourth LayerNorm to Linear 32 → 14, (2, 5, 32)",
        "Linear 32 → 14 to logits, (2, 5, 14)",
    ]


def test_positions_ties_and_masks_are_drawn_only_where_they_are():
    plain = model_drawing(transformer(position="none", tie="none")).alt
    assert "positions" not in plain
    assert "table" not in plain
    assert "mask" not in plain
    assert "+ learned positions" in model_drawing(transformer(position="learned")).alt
    assert "bias (4, 7, 7)" in model_drawing(transformer(position="alibi")).alt
    assert "rotated" in model_drawing(transformer(position="rotary")).alt
    assert "Linear 32 → 14, the embedding's table" in model_drawing(transformer()).alt
    padded = SOURCE.clone()
    padded[0, 5:] = 0
    assert model_drawing(transformer(), padded).alt.count("mask (2, 1, 7)") == 2


def test_layers_that_differ_are_not_counted_as_one():
    model = transformer(n_encoder_layers=3)
    model.encoder.layers[2] = EncoderLayer(32, 2, 48)
    frames = said_of(model_drawing(model), "Frames")
    assert [frame.split(",")[0] for frame in frames] == ["2 × EncoderLayer", "1 × EncoderLayer", "2 × DecoderLayer"]


def test_a_post_norm_model_has_no_final_normalisation():
    arrows = said_of(model_drawing(transformer(norm_first=False)), "Decoder, arrows")
    assert arrows[-2] == "third LayerNorm to Linear 32 → 14, (2, 5, 32)"


def test_watching_a_module_leaves_it_as_it_was():
    layer = EncoderLayer(16, 4, 64, dropout=0.5).train()
    layer.feed_forward.eval()
    before = torch.get_rng_state()
    calls = calls_of(layer, X)
    assert torch.equal(before, torch.get_rng_state())
    assert layer.training
    assert not layer.feed_forward.training
    assert not any(part._forward_hooks for part in layer.modules())
    assert not calls[-1].outputs[0].requires_grad
    flow = flow_of({"x": X}, outermost(calls), calls[-1].outputs[0])
    assert [name for name, call in flow.nodes.items() if call is None] == ["sum 1", "sum 2"]


def test_an_attention_is_drawn_only_if_its_numbers_are_one():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    scores, (out, weights) = scaled_dot(q, k), attention(q, k, v)
    picture = attention_drawing(q, k, v, scores, weights, out)
    assert said_of(picture)[:3] == ["queries to score, (3, 4)", "keys to score, (5, 4)", "score to scores, (3, 5)"]
    assert said_of(picture)[-2:] == ["values to weighted mean, (5, 2)", "weighted mean to out, (3, 2)"]
    with pytest.raises(ValueError, match="weights must be the softmax of the scores"):
        attention_drawing(q, k, v, 2 * scores, weights, out)
    with pytest.raises(ValueError, match="out must be the weights times the values"):
        attention_drawing(q, k, v, scores, weights, out + 0.1)


def test_a_product_is_computed_and_its_shapes_must_fit():
    page, a, b = plotting.Diagram(), np.arange(6.0).reshape(3, 2), np.ones((2, 4))
    *_, box = page.product(("Q", a, plotting.QUERY), ("Kᵀ", b, plotting.KEY), "scores", (0, 0), digits=0)
    fig = page.picture("A product").figure
    words = [text.get_text() for text in fig.axes[0].texts]
    assert box.name == "scores"
    assert words.count("9") == 4  # the last row: 4 + 5
    with pytest.raises(ValueError, match="Q must have as many columns as K has rows"):
        page.product(("Q", a, plotting.QUERY), ("K", b.T, plotting.KEY), "scores", (0, 0))
    with pytest.raises(ValueError, match="keys must be a matrix"):
        page.grid("keys", np.ones(3), (0, 0))


def every_drawing():
    page, kit = plotting.Diagram(), np.random.default_rng(0)
    page.grid("weights", kit.dirichlet(np.ones(10), size=9), (0, 0), colour="weights")
    page.mask("causal", np.tri(4), (4, 0), rows=["a", "b", "c", "d"], columns="abcd")
    page.tree(("S", [("NP", ["the", "cat"]), "sat"]), (7, 1), colours={"NP": plotting.OUTPUT})
    torch.manual_seed(0)
    return {
        "kit": page.picture("A kit"),
        "layer": drawing(DecoderLayer(16, 4, 64), X, MEMORY),
        "model": model_drawing(transformer()),
    }


def test_drawings_are_the_same_bytes_every_time_and_leave_the_readers_matplotlib_alone():
    import matplotlib as mpl

    before, first = dict(mpl.rcParams), every_drawing()
    with mpl.rc_context({"font.family": "serif", "text.color": "red", "axes.facecolor": "black"}):
        second = every_drawing()
        assert all(first[name].png() == second[name].png() for name in first)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("name", ["kit", "layer", "model"])
def test_words_stay_on_the_page_are_large_enough_and_do_not_run_into_each_other(name):
    figure = every_drawing()[name].figure
    figure.canvas.draw()
    texts = figure.axes[0].texts
    places = [text.get_window_extent() for text in texts]
    assert min(text.get_fontsize() for text in texts) >= 11
    assert figure.get_figwidth() <= 10
    assert all(figure.bbox.x0 <= p.x0 and p.x1 <= figure.bbox.x1 and p.y0 >= 0 for p in places)
    assert max(p.y1 for p in places) < figure._suptitle.get_window_extent().y0
    places = [place.shrunk(0.9, 0.7) for place in places]
    assert not [(a, b) for i, a in enumerate(places) for b in places[:i] if a.overlaps(b)]


def test_text_is_measured_as_it_is_drawn():
    page = plotting.Diagram()
    page.text("weighted mean", (0, 0))
    figure = page.picture("Measured").figure
    figure.canvas.draw()
    extent = figure.axes[0].texts[0].get_window_extent()
    assert extent.width / figure.dpi == pytest.approx(text_size("weighted mean")[0], rel=0.05)


def test_a_shift_that_is_none_is_refused():
    with pytest.raises(ValueError, match="goes_in must be a start symbol and written without its last"):
        drawings.shift_diagram(["start", "b"], ["c", "b"], position=1, title="")
    with pytest.raises(ValueError, match="position must be from 1 to 2; got 3"):
        drawings.shift_diagram(["start", "c"], ["c", "end"], position=3, title="")


def test_the_ways_of_a_path_diagram_are_what_they_cost():
    costs = {"noun": {"animals": [0.5, 1.0], "places": [0, 0]}, "verb": {"animals": [0, 0.01], "places": [0, 0]}}
    alt = drawings.paths_diagram(costs, "the\npronoun", title="Two ways").alt
    assert "noun to the pronoun, animals 50, 100 % · places 0, 0 %" in alt
    for wrong in ({}, {"noun": {"animals": [1.2]}}):
        with pytest.raises(ValueError, match="costs must hold shares from 0 to 1"):
            drawings.paths_diagram(wrong, "the pronoun", title="")


def test_curves_stand_above_the_weights_that_made_them():
    x, even, own = np.arange(4.0), np.full((4, 4), 0.25), np.eye(4)
    fits = {"wide": (x, even @ x, even), "narrow": (x, own @ x, own)}
    words = {"title": "Two", "labels": ("x", "y"), "map_labels": ("key", "query"), "ticks": ["0", "3"]}
    figure = plotting.curves_and_weights(x, x, fits, **words).figure
    (wide_curve, narrow_curve), (wide_map, narrow_map) = figure.axes[:2], figure.axes[2:]
    np.testing.assert_array_equal(wide_curve.lines[0].get_ydata(), np.full(4, 1.5))
    np.testing.assert_array_equal(narrow_curve.lines[0].get_ydata(), x)
    np.testing.assert_array_equal(narrow_map.images[0].get_array(), own)
    assert wide_map.get_title(loc="left") == "largest weight 0.25"
    assert wide_map.images[0].norm.vmax == 0.25  # a scale of its own
    one_scale = plotting.curves_and_weights(x, x, fits, **words, top=1).figure
    assert [ax.images[0].norm.vmax for ax in one_scale.axes[2:]] == [1, 1]
    assert [t.get_text() for t in wide_map.get_xticklabels()] == ["0", "3"]


def test_maps_to_the_scale_of_their_data_say_where_the_weight_is():
    x, grid, weights = np.array([0.0, 1.0, 4.0]), np.array([0.0, 2.0]), np.array([[0.9, 0.1, 0.0], [0.1, 0.2, 0.7]])
    words = {"title": "Two", "labels": ("x", "y"), "map_labels": ("key", "query"), "places": [0, 2]}
    picture = plotting.curves_and_weights(x, x, {"own": (grid, weights @ x, weights)}, **words)
    below = picture.figure.axes[1]
    np.testing.assert_array_equal(below.collections[0].get_array(), weights)
    assert below.get_xlim() == (-0.5, 5.5)  # borders halfway between the data
    assert below.get_xticks().tolist() == [0, 2]
    assert "own: rows at 0, 2 have their largest weight at 0, 4." in picture.alt


def test_a_level_on_the_axis_is_named_above_its_line():
    curves = {"right": ([0, 1], [0.0, 1.0])}
    figure = plotting.lines(curves, levels={"low": 0.05, "high": 0.5}, title="Two", labels=("x", "y")).figure
    assert [(text.get_text(), text.xyann[1] > 0) for text in figure.axes[0].texts] == [("low", True), ("high", False)]


def test_strongest_keys_stand_beside_their_query_largest_weight_first():
    weights = np.array([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4]])
    picture = plotting.strongest_keys(
        np.zeros((2, 4, 4)), np.ones((3, 4, 4)), weights, words="abc", count=2, title="Two of three"
    )
    under = [ax.get_xlabel() for ax in picture.figure.axes]
    assert under == ["asks", "b: 0.60", "c: 0.30", "asks", "a: 0.50", "c: 0.40"]
    assert "b 0.60, c 0.30; a 0.50, c 0.40" in repr(picture)


def test_worked_attention_prints_what_a_reader_with_paper_gets():
    q, k, v = np.array([[2, 2, 0, 0]]), np.array([[1, 1, 0, 0], [0, 1, 0, 0]]), np.array([[8], [2]])
    picture = drawings.worked_attention(q, k, v, title="On paper")
    written = [text.get_text() for ax in picture.figure.axes for text in ax.texts]
    assert {"0.73", "0.27", "6.4"} <= set(written)  # .73 × 8 + .27 × 2 = 6.38
    assert "Products: Q × Kᵀ ÷ √4 = scores; weights × V = out." in picture.alt


def test_worked_attention_refuses_numbers_that_do_not_come_out():
    q, k, v = np.array([[2, 2, 0, 0]]), np.array([[1, 1, 0, 0], [0, 1, 0, 0]]), np.array([[8], [2]])
    with pytest.raises(ValueError, match="scores must be whole numbers"):
        drawings.worked_attention(np.array([[1, 2, 0, 0]]), k, v, title="Halves")
    with pytest.raises(ValueError, match="rounded to two decimals, give other outputs"):
        drawings.worked_attention(q, k, 1000 * v, title="Too large")


def test_a_cache_without_room_is_refused():
    assert "k6, new" in drawings.cache_diagram(5, title="Six").alt
    for n_kept in (0, 10):
        with pytest.raises(ValueError, match="n_kept must be from 1 to 9"):
            drawings.cache_diagram(n_kept, title="")


def test_masks_are_drawn_as_they_broadcast_to_the_heads_of_each_sentence():
    real = padding([3, 1])
    picture = drawings.mask_diagram({"right": real[:, None], "wrong": real}, shape=(2, 2, 3, 3), title="Two masks")
    right, wrong = said_of(picture, "Masks")[:4], said_of(picture, "Masks")[4:]
    all_three, one = "111, 111, 111", "100, 100, 100"
    assert [words.split(": ")[1] for words in right] == [all_three, all_three, one, one]
    assert [words.split(": ")[1] for words in wrong] == [all_three, one, all_three, one]
    assert right[0].startswith("right (2, 1, 1, 3)")


def test_a_mask_that_does_not_broadcast_is_not_drawn():
    with pytest.raises(ValueError, match=r"real must broadcast to \(2, 3, 4, 4\); got \(2, 1, 4\)"):
        drawings.mask_diagram({"real": padding([4, 2])}, shape=(2, 3, 4, 4), title="Too few heads")


def sentence_drawing(x, words):
    return drawings.self_attention_diagram(x, *[np.eye(2)] * 3, words=words, title="A sentence")


def test_a_sentence_that_attends_to_itself_is_drawn_with_what_is_computed_from_its_rows():
    x = np.array([[0.0, 2.0], [1.0, 0.0], [3.0, 1.0]])
    picture = sentence_drawing(x, ["an", "old", "bank"])
    assert said_of(picture, "Matrices")[-2:] == ["A (3, 3)", "Y (3, 2)"]
    assert {"X to Q, W_Q (2, 2)", "S to A, softmax", "V to A V"} <= set(said_of(picture))
    drawn = [text.get_text() for text in picture.figure.axes[0].texts]
    assert {f"{number:.2f}" for number in attention(x, x, x).out.ravel()} <= set(drawn)


def test_every_row_of_a_sentence_needs_a_word():
    with pytest.raises(ValueError, match="words must have one for each of the 3 rows of X; got 2"):
        sentence_drawing(np.ones((3, 2)), ["two", "words"])


def test_moves_are_told_from_where_to_where():
    paths = {"bank": (np.array([1.0, 1.0]), np.array([2.0, 0.5]))}
    picture = drawings.moves(paths, {"the": [0, 0], "old": [0, 0]}, title="It moves", labels=("water", "money"))
    assert "bank from (1.0, 1.0) to (2.0, 0.5)" in picture.alt
    assert "the, old" in [text.get_text() for text in picture.figure.axes[0].texts]


def test_heads_are_drawn_as_pieces_of_every_row():
    rows = np.arange(24).reshape(4, 6)
    picture = drawings.heads_diagram(rows, 3, title="Three heads")
    heads = [words for words in said_of(picture, "Matrices") if words.startswith("head")]
    for h, words in enumerate(heads):
        numbers = ", ".join(" ".join(map(str, row)) for row in split_heads(rows, 3)[h].tolist())
        assert words == f"head {h} (4, 2): {numbers}"
    assert len(heads) == 3


def test_heads_that_do_not_divide_a_row_are_not_drawn():
    with pytest.raises(ValueError, match="n_heads must divide 6, the size of a row; got 4"):
        drawings.heads_diagram(np.zeros((2, 6), int), 4, title="Four heads")


def test_clocks_say_the_score_of_the_turned_query_and_key():
    q, k = np.array([[0.9, 0.3], [0.2, 0.8]]), np.array([[0.5, -0.7], [0.9, 0.4]])
    rates = 10000.0 ** (-np.arange(0, 4, 2) / 4)
    picture = drawings.clocks(q, k, rates, places=[(2, 5), (9, 12)], title="Two clocks")
    turned_q, turned_k = (positions.rotary(np.tile(x.reshape(1, 4), (13, 1)), layout="pairs") for x in (q, k))
    for at_q, at_k in ((2, 5), (9, 12)):
        assert f"query at {at_q}, key at {at_k}: score {turned_q[at_q] @ turned_k[at_k]:.2f}" in picture.alt


def test_a_level_is_drawn_in_every_plot_under_its_name():
    curves = {name: {"run": ([0, 1], [0.5, 1])} for name in ("one task", "another")}
    picture = plotting.lines(curves, title="Above guessing", labels=("step", "share"), levels={"guessing": 0.125})
    for ax in picture.figure.axes:
        assert [text.get_text() for text in ax.texts] == ["guessing"]
        assert ax.lines[-1].get_ydata()[0] == 0.125


def translator_drawing(weights, step=2, n_states=3):
    states = np.zeros((n_states, 8))
    return drawings.translator_diagram("abc", "cba", states, weights, step=step, title="Two joins")


def test_a_translator_is_drawn_with_the_weights_of_the_step_that_the_state_before_asked_for():
    weights = np.array([[0.1, 0.2, 0.7], [0.25, 0.6, 0.15], [1.0, 0.0, 0.0]])
    said = said_of(translator_drawing(weights))
    assert {"h1 to c2, 0.25", "h2 to c2, 0.60", "h3 to c2, 0.15", "s1 to c2, query", "c2 to s2"} <= set(said)
    assert {"c to s0", "c to s1", "c to s2", "c to s3"} <= set(said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": np.ones((3, 3))}, "weights must sum to one in each row"),
        ({"weights": np.eye(2)}, r"must have 3 states and \(3, 3\) weights; got 3 and \(2, 2\)"),
        ({"weights": np.eye(3), "n_states": 2}, "got 2 and"),
        ({"weights": np.eye(3), "step": 0}, "step must be from 1 to 3; got 0"),
        ({"weights": np.eye(3), "step": 4}, "step must be from 1 to 3; got 4"),
    ],
)
def test_a_translator_that_cannot_be_is_not_drawn(options, words):
    with pytest.raises(ValueError, match=words):
        translator_drawing(**options)


def test_the_shortest_way_is_drawn_in_bold_and_counted():
    chain = [((0, j), (1, j)) for j in range(4)] + [((1, j), (1, j + 1)) for j in range(3)]
    picture = drawings.joins_diagram({"chain": chain, "one": [((0, 0), (1, 3))]}, title="Ways")
    assert "chain, 7 links, the shortest way has 4; one, 1 link, the shortest way has 1" in picture.alt
    assert sum(line.get_linewidth() > 2 for line in picture.figure.axes[0].lines) == 4 + 1


@pytest.mark.parametrize("links", [[], [((0, 1), (1, 1))]])
def test_a_way_that_leads_nowhere_is_not_drawn(links):
    with pytest.raises(ValueError, match="blocked must lead from the first input"):
        drawings.joins_diagram({"blocked": links}, title="No way")


def test_a_map_frames_cells_and_calls_no_axis_a_query_where_nothing_asks():
    same = [(i, i) for i in range(3)]
    ones = torch.ones(3, 3, requires_grad=True)  # as a model in training has them
    picture = plotting.weight_map(ones, title="Same", labels=("a", "b"), rows_ask=None, framed=same)
    [ax, *_] = picture.figure.axes
    assert [patch.get_xy() for patch in ax.patches] == [(i - 0.5, i - 0.5) for i in range(3)]
    assert ax.xaxis.label.get_color() == ax.yaxis.label.get_color() == INK
