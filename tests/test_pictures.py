"""ViT and DETR against Hugging Face's, and the matching against trying all."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import nn
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig, ViTForImageClassification, ViTModel
from transformers import ViTConfig as TheirViTConfig
from transformers.loss.loss_for_object_detection import generalized_box_iou

from attnlib.course import drawings
from attnlib.data.scenes import NOTHING
from attnlib.data.scenes import scenes as scenes_of
from attnlib.models import DETR, DETRConfig, ViT, ViTConfig
from attnlib.models.detecting import ORDERS, assigned, score, small_detr, train, trained_detr
from attnlib.models.detr import DETROutput, grid_codes
from attnlib.models.matching import corners, generalised_iou, match, set_loss
from attnlib.probes.rollout import rollout

EXACT = [(torch.float32, 1e-5), (torch.float64, 1e-10)]
SMALL_VIT = dict(n_classes=10, image_size=8, patch_size=2, channels=1, d_model=24, n_heads=3, n_layers=2)
SMALL_DETR = dict(n_classes=4, channels=3, n_queries=6, d_model=24, n_heads=3, n_encoder_layers=1, n_decoder_layers=2)


def shaken(model, dtype=torch.float32):
    """Away from where weights begin: biases of zero and norms of one would hide what is exchanged."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.to(dtype).eval()


def their_vit(dtype=torch.float32, kind=ViTForImageClassification, **options):
    torch.manual_seed(0)
    sizes = dict(hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=30, num_labels=7)
    pictures = dict(image_size=12, patch_size=3, num_channels=2)
    return shaken(kind(TheirViTConfig(**sizes | pictures | options)), dtype)


@pytest.mark.parametrize(("dtype", "atol"), EXACT)
@pytest.mark.parametrize("options", [{}, {"hidden_act": "relu", "layer_norm_eps": 1e-3, "patch_size": 4}])
def test_vit_equals_hugging_face(dtype, atol, options):
    theirs = their_vit(dtype, **options)
    ours, pictures = ViT.from_huggingface(theirs), torch.rand(3, 2, 12, 12, dtype=dtype)
    wanted, found = theirs(pictures).logits, ours(pictures)
    torch.testing.assert_close(found, wanted, atol=atol, rtol=0)
    direction = torch.randn_like(wanted)
    (found * direction).sum().backward()
    (wanted * direction).sum().backward()
    embeddings, layer = theirs.vit.embeddings, theirs.vit.layers[1]
    pairs = [
        (ours.patches.project.weight, embeddings.patch_embeddings.projection.weight),
        (ours.patches.class_token, embeddings.cls_token),
        (ours.patches.positions, embeddings.position_embeddings),
        (ours.layers[1].feed_forward.linear1.weight, layer.mlp.fc1.weight),
        (ours.layers[1].self_attention.out_proj.bias, layer.attention.o_proj.bias),
        (ours.out.weight, theirs.classifier.weight),
    ]
    for mine, other in pairs:
        torch.testing.assert_close(mine.grad, other.grad, atol=10 * atol, rtol=atol)


def test_a_folder_with_vits_published_names_is_read(tmp_path):
    theirs = their_vit()
    theirs.save_pretrained(tmp_path)
    ours = ViT.from_pretrained(tmp_path)
    pictures = torch.rand(2, 2, 12, 12)
    torch.testing.assert_close(ours(pictures), theirs(pictures).logits, atol=1e-5, rtol=0)


def test_a_vit_that_is_none_of_ours_is_refused():
    with pytest.raises(ValueError, match="qkv_bias must be True"):
        ViT.from_huggingface(their_vit(qkv_bias=False))
    with pytest.raises(ValueError, match=r"classifier\.bias is missing"):
        ViT.from_huggingface(their_vit(kind=ViTModel))


def test_patches_are_a_strided_convolution_and_a_matrix():
    model = ViT(ViTConfig(**SMALL_VIT | {"channels": 2}))
    pictures, project = torch.rand(3, 2, 8, 8), model.patches.project
    patches = pictures.reshape(3, 2, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(3, 16, 8)
    rows = patches @ project.weight.flatten(1).T + project.bias + model.patches.positions[:, 1:]
    torch.testing.assert_close(model.patches(pictures)[:, 1:], rows)


@pytest.mark.parametrize("position", ["learned", "none"])
def test_without_positions_the_order_of_patches_says_nothing(position):
    torch.manual_seed(0)
    model, pictures = shaken(ViT(ViTConfig(**SMALL_VIT, position=position))), torch.rand(3, 1, 8, 8)
    tiles = pictures.reshape(3, 1, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(3, 16, 1, 2, 2)
    moved = tiles[:, torch.randperm(16)].reshape(3, 4, 4, 1, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(3, 1, 8, 8)
    assert torch.allclose(model(moved), model(pictures), atol=1e-5) == (position == "none")


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (ViTConfig, {"patch_size": 3}, "patch_size must divide image_size = 8; got 3"),
        (ViTConfig, {"n_heads": 5}, "n_heads must divide d_model = 24; got 5"),
        (ViTConfig, {"position": "rotary"}, "position must be one of 'learned', 'none'"),
        (ViTConfig, {"n_layers": 0}, "n_layers must be at least 1"),
        (DETRConfig, {"d_model": 30}, "d_model must be a multiple of 4; got 30"),
        (DETRConfig, {"n_queries": 0}, "n_queries must be at least 1"),
    ],
)
def test_choices_that_do_not_fit_are_refused(kind, options, words):
    with pytest.raises(ValueError, match=words):
        kind(**(SMALL_VIT if kind is ViTConfig else SMALL_DETR) | options)


def test_pictures_of_another_shape_are_refused():
    model = ViT(ViTConfig(**SMALL_VIT))
    for shape in ((3, 1, 8, 9), (3, 2, 8, 8), (1, 8, 8)):
        with pytest.raises(ValueError, match=r"pictures must have shape \(batch, 1, 8, 8\); got"):
            model(torch.rand(shape))
    with pytest.raises(TypeError, match="pictures must hold floating-point"):
        model(torch.ones(3, 1, 8, 8, dtype=torch.long))
    with pytest.raises(ValueError, match=r"pictures must have shape \(batch, 3, height, width\); got"):
        DETR(DETRConfig(**SMALL_DETR))(torch.rand(2, 1, 6, 6))


class Features(nn.Module):
    """The last features of their backbone."""

    def __init__(self, theirs):
        super().__init__()
        self.model = theirs.model.backbone.model

    def forward(self, pictures):
        return self.model(pictures).feature_maps[-1]


def their_detr(dtype=torch.float32, **options):
    torch.manual_seed(1)
    stages = dict(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", out_features=["stage2"])
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in (("ffn_dim", 30), ("layers", 2))}
    sizes |= dict(d_model=24, encoder_attention_heads=3, decoder_attention_heads=3, num_queries=7, num_labels=5)
    config = DetrConfig(backbone_config=ResNetConfig(**stages), use_timm_backbone=False, **sizes | options)
    return shaken(DetrForObjectDetection(config), dtype)


def ours_of(theirs):
    model = DETR.from_huggingface(theirs)
    model.backbone = Features(theirs)
    return model


@pytest.fixture
def of_dtype(dtype):
    """Their loss makes its weights in the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    yield dtype
    torch.set_default_dtype(before)


def scenes(dtype):
    """Two objects in the first picture, one in the second: theirs in lists, ours filled up."""
    boxes = 0.2 + 0.5 * torch.rand(2, 3, 4, dtype=dtype)
    kinds = torch.tensor([[1, 3, 5], [5, 0, 5]])
    real = kinds < 5
    labels = [{"class_labels": k[r], "boxes": b[r]} for k, b, r in zip(kinds, boxes, real, strict=True)]
    return kinds, boxes, labels


@pytest.mark.parametrize(("dtype", "atol"), EXACT)
def test_detr_equals_hugging_face_from_picture_to_loss(of_dtype, atol):
    theirs = their_detr(of_dtype)
    ours, pictures = ours_of(theirs), torch.rand(2, 3, 48, 64, dtype=of_dtype)
    kinds, boxes, labels = scenes(of_dtype)
    wanted, found = theirs(pictures, labels=labels), ours(pictures, weights=True)
    torch.testing.assert_close(found.logits, wanted.logits, atol=atol, rtol=0)
    torch.testing.assert_close(found.boxes, wanted.pred_boxes, atol=atol, rtol=0)
    loss = set_loss(found.logits, found.boxes, kinds, boxes)
    torch.testing.assert_close(loss, wanted.loss, atol=10 * atol, rtol=0)
    wanted.loss.backward()
    features = theirs.model.backbone.model.parameters()
    of_backbone = [p.grad.clone() for p in features if p.grad is not None]
    theirs.zero_grad()
    loss.backward()
    shared = [p.grad for p in theirs.model.backbone.model.parameters() if p.grad is not None]
    for mine, other in zip(shared, of_backbone, strict=True):  # the backbone is one module for both
        torch.testing.assert_close(mine, other, atol=100 * atol, rtol=100 * atol)
    assert [alpha.shape for alpha in found.weights] == [(2, 3, 7, found.weights[0].shape[-1])] * 2


@pytest.mark.parametrize(("dtype", "atol"), EXACT)
def test_gradients_of_detr_equal_hugging_faces(of_dtype, atol):
    theirs = their_detr(of_dtype)
    ours, pictures = ours_of(theirs), torch.rand(2, 3, 48, 64, dtype=of_dtype)
    kinds, boxes, labels = scenes(of_dtype)
    theirs(pictures, labels=labels).loss.backward()
    wanted = {name: p.grad.clone() for name, p in theirs.named_parameters() if "backbone" not in name}
    found = ours(pictures)
    set_loss(found.logits, found.boxes, kinds, boxes).backward()
    for mine, other in [
        (ours.queries.weight, "model.query_position_embeddings.weight"),
        (ours.project.weight, "model.input_projection.weight"),
        (ours.encoder[0].feed_forward.linear2.weight, "model.encoder.layers.0.mlp.fc2.weight"),
        (ours.decoder[1].cross_attention.out_proj.weight, "model.decoder.layers.1.encoder_attn.o_proj.weight"),
        (ours.kind.weight, "class_labels_classifier.weight"),
        (ours.box[4].weight, "bbox_predictor.layers.2.weight"),
    ]:
        torch.testing.assert_close(mine.grad, wanted[other], atol=100 * atol, rtol=100 * atol)


def test_a_folder_with_detrs_published_names_is_read(tmp_path):
    theirs = their_detr()
    theirs.save_pretrained(tmp_path)
    ours = DETR.from_pretrained(tmp_path)
    ours.backbone = Features(theirs)
    pictures = torch.rand(2, 3, 48, 64)
    torch.testing.assert_close(ours(pictures).boxes, theirs(pictures).pred_boxes, atol=1e-5, rtol=0)


def test_detrs_variants_are_refused():
    with pytest.raises(ValueError, match="position_embedding_type must be sine"):
        DETR.from_huggingface(their_detr(position_embedding_type="learned"))
    with pytest.raises(ValueError, match="decoder_ffn_dim must be 30"):
        DETR.from_huggingface(their_detr(decoder_ffn_dim=31))


def test_queries_that_change_places_change_their_answers_places_and_nothing_else():
    torch.manual_seed(0)
    model, pictures = shaken(DETR(DETRConfig(**SMALL_DETR))), torch.rand(2, 3, 6, 6)
    found, order = model(pictures), torch.randperm(6)
    model.queries.weight.data = model.queries.weight.data[order]
    moved = model(pictures)
    torch.testing.assert_close(moved.logits, found.logits[:, order], atol=1e-5, rtol=0)
    torch.testing.assert_close(moved.boxes, found.boxes[:, order], atol=1e-5, rtol=0)


def test_no_two_places_of_a_grid_have_one_code():
    codes = grid_codes(5, 7, 16, like=torch.zeros(1, dtype=torch.float64))
    assert (torch.cdist(codes, codes) + torch.eye(35)).min() > 0.1


def test_overlap_equals_hugging_faces():
    torch.manual_seed(0)
    a, b = (torch.rand(n, 4) * 0.5 + 0.01 for n in (9, 7))
    torch.testing.assert_close(generalised_iou(a[:, None], b[None]), generalized_box_iou(corners(a), corners(b)))


def test_the_matching_is_the_cheapest_of_all():
    torch.manual_seed(0)
    logits, boxes = torch.randn(20, 5, 4), torch.rand(20, 5, 4) * 0.5 + 0.1
    kinds, targets = torch.randint(4, (20, 3)), torch.rand(20, 3, 4) * 0.5 + 0.1
    found = match(logits, boxes, kinds, targets)

    def cost(i, queries):
        here = [j for j in range(3) if kinds[i, j] < 3]
        queries = [queries[j] for j in here]
        p = -logits[i].softmax(-1)[queries, kinds[i, here]]
        place = 5 * (boxes[i, queries] - targets[i, here]).abs().sum(-1)
        return float((p + place - 2 * generalised_iou(boxes[i, queries], targets[i, here])).sum())

    for i in range(20):
        least = min(cost(i, queries) for queries in permutations(range(5), 3))
        assert cost(i, found[i]) == pytest.approx(least, abs=1e-5)
        assert ((found[i] == -1) == (kinds[i] == 3)).all()


def test_an_empty_scene_has_a_loss_and_a_gradient():
    logits, boxes = torch.randn(2, 5, 4, requires_grad=True), torch.rand(2, 5, 4)
    set_loss(logits, boxes, torch.full((2, 3), 3), torch.zeros(2, 3, 4)).backward()
    assert (logits.grad[..., 3] < 0).all()
    empty = set_loss(logits, boxes, torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0, 4))
    torch.testing.assert_close(empty, -logits.log_softmax(-1)[..., 3].mean())


def test_another_order_is_taken_as_given():
    torch.manual_seed(0)
    logits, boxes = torch.randn(4, 5, 4), torch.rand(4, 5, 4)
    kinds, targets = torch.randint(3, (4, 3)), torch.rand(4, 3, 4)
    best = match(logits, boxes, kinds, targets)
    torch.testing.assert_close(set_loss(logits, boxes, kinds, targets, best), set_loss(logits, boxes, kinds, targets))
    fixed = torch.arange(3).expand(4, -1)
    assert set_loss(logits, boxes, kinds, targets, fixed) > set_loss(logits, boxes, kinds, targets)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"boxes": torch.rand(2, 4, 4)}, "logits and boxes must have shapes"),
        ({"targets": torch.rand(2, 4, 4)}, "kinds and targets must have shapes"),
        ({"kinds": torch.full((2, 3), 4)}, "kinds must hold whole numbers from 0 to 3"),
        ({"kinds": torch.tensor([[0] * 6] * 2), "targets": torch.rand(2, 6, 4)}, "than there are queries, 5; got 6"),
        ({"boxes": torch.full((2, 5, 4), torch.nan)}, "must make finite costs"),
        ({"matched": torch.zeros(2, 2, dtype=torch.long)}, "matched must have the shape of kinds"),
        ({"matched": torch.full((2, 3), -1)}, "matched must name queries from 0 to 4"),
        ({"nothing": 0.0}, "nothing must be positive"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    given = {"logits": torch.randn(2, 5, 4), "boxes": torch.rand(2, 5, 4)}
    given |= {"kinds": torch.zeros(2, 3, dtype=torch.long), "targets": torch.rand(2, 3, 4)}
    with pytest.raises(ValueError, match=words):
        set_loss(**given | change)


def test_rollout_multiplies_the_layers_and_keeps_rows_of_one():
    torch.manual_seed(0)
    weights = [torch.rand(3, 2, 5, 5, dtype=torch.float64).softmax(-1) for _ in range(3)]
    rolled = rollout(weights)
    half = [0.5 * alpha.mean(1) + 0.5 * torch.eye(5, dtype=torch.float64) for alpha in weights]
    torch.testing.assert_close(rolled, half[2] @ half[1] @ half[0])
    torch.testing.assert_close(rolled.sum(-1), torch.ones(3, 5, dtype=torch.float64))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([], "must hold those of at least one layer"),
        ([torch.rand(2, 3, 4)], "must all have one shape"),
        ([torch.rand(2, 4, 4), torch.rand(2, 5, 5)], "must all have one shape"),
    ],
)
def test_what_cannot_be_rolled_out_is_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        rollout(weights)


def test_a_score_counts_what_is_right():
    data = scenes_of(300, seed=5)

    class Knows(nn.Module):
        """Says what is there, and spares the last shape of the first ten scenes."""

        def forward(self, pictures):
            kinds = data.kinds.clone()
            kinds[:10, 0] = NOTHING
            return DETROutput(20 * torch.eye(NOTHING + 1)[kinds], data.boxes.float(), [])

    found, shapes = score(Knows(), data), int((data.kinds < NOTHING).sum())
    assert found.count == found.scene == pytest.approx(290 / 300)
    assert found.kind == pytest.approx((shapes - 10) / shapes)
    assert found.place == pytest.approx(0, abs=1e-5)


def test_orders_put_queries_to_objects():
    data = scenes_of(40, seed=6)
    left, listed = (assigned(None, data.kinds, data.boxes, order) for order in ORDERS[1:])
    assert (listed == torch.arange(3)).all()
    for kinds, boxes, query in zip(data.kinds, data.boxes, left, strict=True):
        real = kinds < NOTHING
        across = boxes[real, 0][query[real].argsort()]
        assert (across.diff() >= 0).all()
        assert sorted(query[real].tolist()) == list(range(int(real.sum())))
    with pytest.raises(ValueError, match="order must be one of 'matched', 'left to right', 'as listed'"):
        assigned(None, data.kinds, data.boxes, "by size")


def test_a_model_learns_and_the_seed_decides():
    one, other = (train("left to right", seed=3, steps=3, progress=False) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_the_detr_that_is_shipped_reads_scenes_that_nobody_has_seen():
    found = score(trained_detr(), scenes_of(500, seed=12345))
    assert found.scene > 0.85
    assert found.place < 0.35


def test_the_drawings_say_the_shapes_of_the_model():
    model = ViT(ViTConfig(**SMALL_VIT, position="none"))
    picture = drawings.vit_diagram(model, torch.rand(1, 1, 8, 8), title="No places")
    assert "positions added" not in picture.alt
    assert "patches times E to class token and positions, (16, 24)" in picture.alt
    picture = drawings.detr_diagram(small_detr(), torch.rand(1, 1, 24, 24), title="It asks")
    assert "2 × PlacedDecoderLayer to box" in picture.alt
