"""RT-DETR: what it says, what it learns from, and that both are transformers' own."""

from __future__ import annotations

import pytest
import torch
from tests.unit.detector.rtdetr_scene import CLASSES, SIDE, SPACE, TRIPLETS, labels, nothing, scene
from torch import nn

from surgeval.detector import Classes, Network
from surgeval.detector.assign import BatchTruth
from surgeval.detector.rtdetr import RTDETR_SIZES, DetrLoss, RTDetr, build_rtdetr
from surgeval.detector.rtdetr.config import architecture, transformers_config
from surgeval.detector.rtdetr.loss import targets_of
from surgeval.detector.rtdetr.network import corners
from surgeval.errors import BadInput, RunError


@pytest.fixture(autouse=True)
def _one_core() -> None:
    torch.set_num_threads(1)


def tiny(*, aux: bool = False) -> RTDetr:
    return build_rtdetr("tiny", CLASSES, image_size=SIDE, aux=aux)


def test_the_sizes_have_the_published_numbers_of_parameters() -> None:
    from transformers import RTDetrForObjectDetection

    millions = {}
    for size in RTDETR_SIZES:
        with torch.device("meta"):
            net = RTDetrForObjectDetection(transformers_config(architecture(size, 80)))
        millions[size] = round(sum(p.numel() for p in net.parameters()) / 1e6)
    assert millions == {"tiny": 1, "r18": 20, "r50": 43}  # the paper says 20 and 42


def test_it_says_what_transformers_says_in_input_pixels() -> None:
    images, _ = scene()
    network = tiny(aux=True).eval()
    raw = network.raw(images)
    with torch.no_grad():
        said = network.net(images / 255)
    assert torch.equal(raw.probabilities["ivt"], said.logits.sigmoid())
    centre = (raw.boxes[..., :2] + raw.boxes[..., 2:]) / 2 / SIDE
    assert torch.allclose(centre, said.pred_boxes[..., :2], atol=1e-6)
    assert {head: values.shape[2] for head, values in raw.probabilities.items()} == CLASSES.counts
    assert isinstance(network, Network)


def test_mixed_precision_leaves_the_boxes_in_float32() -> None:
    images, truth = scene()
    network = tiny().eval()
    exact = network.raw(images).boxes
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        seen: list[torch.dtype] = []
        network.net.model.backbone.register_forward_hook(lambda *given: seen.append(given[2][0][0].dtype))
        out = network(images / 255)
        loss = DetrLoss(network)(network, images / 255, truth)
    assert seen[0] == torch.bfloat16 and out.boxes.dtype == torch.float32 and loss.total.dtype == torch.float32
    steps = (out.boxes * 256).frac().abs()  # bfloat16 has no more than these steps above one half
    assert float((steps > 1e-3).float().mean()) > 0.2
    found = torch.cdist(corners(out.boxes)[0] * SIDE, exact[0], p=torch.inf).min(dim=1).values
    assert float(found.median()) < 2


def test_plain_is_the_default_and_instruments_have_one_head() -> None:
    assert set(tiny().eval().raw(scene()[0]).probabilities) == {"ivt"}
    alone = build_rtdetr("tiny", Classes.of(SPACE, "instruments"), image_size=SIDE, aux=True).eval()
    assert set(alone.raw(scene()[0]).probabilities) == {"i"}


def test_the_same_seed_gives_the_same_weights_and_leaves_the_callers_random_numbers() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    first, second = tiny(), tiny()
    assert torch.equal(torch.rand(3), wanted)
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_a_picture_reaches_the_decoder_of_an_untrained_network() -> None:
    """With the norm weights of 0.01 that transformers draws, two pictures look the same to every query."""
    network = tiny().eval()
    images, _ = scene()
    levels: list[torch.Tensor] = []
    network.net.model.encoder.register_forward_hook(lambda *given: levels.extend(given[2].last_hidden_state))
    network.raw(images)
    assert min(float((level[0] - level[1]).std()) for level in levels) > 0.05
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    assert all(bool((norm.weight == 1).all()) for norm in norms)


@pytest.mark.parametrize("side", [32, 100, 8192])
def test_a_side_without_a_point_for_every_query_is_refused(side: int) -> None:
    with pytest.raises(BadInput, match=f"image size: found {side}, expected a multiple of 32 from 64"):
        build_rtdetr("tiny", CLASSES, image_size=side)
    with pytest.raises(BadInput, match="size: found 'huge', expected one of tiny"):
        build_rtdetr("huge", CLASSES)


def test_the_loss_is_transformers_own() -> None:
    images, truth = scene()
    network = tiny().train()
    torch.manual_seed(3)
    ours = DetrLoss(network)(network, images / 255, truth)
    torch.manual_seed(3)
    theirs = network.net(images / 255, labels=targets_of(truth, "ivt", SIDE).labels)
    assert ours.total.item() == pytest.approx(theirs.loss.item(), rel=1e-5)
    assert ours.total.item() == pytest.approx(sum(part.item() for part in ours.parts.values()), rel=1e-5)
    assert int(ours.positives) == 3 and set(ours.parts) == {"l1", "giou", "ivt"}


def test_targets_are_shares_of_the_picture_and_a_box_with_two_triplets_comes_twice() -> None:
    marks = labels(0)
    marks["ivt"] = torch.tensor([[True, False, True, False]])
    both = BatchTruth.of([torch.tensor([[16.0, 0, 48, 64]]), torch.zeros(0, 4)], [marks, labels()])
    found = targets_of(both, "ivt", SIDE)
    assert found.labels[0]["class_labels"].tolist() == [0, 2] and found.owners[0].tolist() == [0, 0]
    assert found.labels[0]["boxes"].tolist() == [[0.5, 0.5, 0.5, 1.0]] * 2
    assert found.count == 2 and len(found.labels[1]["boxes"]) == 0


def test_part_heads_learn_on_matched_queries_divided_by_the_number_of_targets() -> None:
    images, truth = scene()
    network = tiny(aux=True).eval()  # nothing is denoised: the queries can be matched by hand
    loss = DetrLoss(network)
    parts = loss(network, images / 255, truth).parts
    out = network(images / 255)
    targets = targets_of(truth, "ivt", SIDE)
    matched = loss.criterion.matcher({"logits": out.logits["ivt"], "pred_boxes": out.boxes}, targets.labels)
    for column, head in enumerate("ivt"):
        total = 0.0
        for b, (queries, rows) in enumerate(matched):
            for query, row in zip(queries.tolist(), rows.tolist(), strict=True):
                p = out.logits[head][b, query].detach().sigmoid()
                wanted = int(CLASSES.parts[TRIPLETS[b][row], column])
                total += float(-(p[wanted].log() + (1 - p).log().sum() - (1 - p[wanted]).log()))
        assert parts[head].item() == pytest.approx(0.1 * total / 3, rel=1e-4)


def test_denoising_queries_have_no_part_in_the_part_heads() -> None:
    images, truth = scene()
    network = tiny(aux=True).train()
    out = network(images / 255, targets_of(truth, "ivt", SIDE).labels)
    assert out.all.last_hidden_state.shape[1] > 60  # denoising queries come first
    assert out.boxes.shape == (2, 60, 4) and all(values.shape[1] == 60 for values in out.logits.values())


def test_a_part_that_nobody_labelled_does_not_train_its_head() -> None:
    images, truth = scene()
    truth.labels["v"] = torch.zeros_like(truth.labels["v"])
    network = tiny(aux=True).eval()
    parts = DetrLoss(network)(network, images / 255, truth).parts
    assert parts["v"].item() == 0 and parts["t"].item() > 0


def test_pictures_without_a_box_teach_that_there_is_nothing() -> None:
    images, _ = scene()
    network = tiny(aux=True).train()
    loss = DetrLoss(network)(network, images / 255, nothing(2))
    assert int(loss.positives) == 0 and loss.parts["ivt"].item() > 0
    assert {loss.parts[part].item() for part in ("l1", "giou", "i", "v", "t")} == {0.0}
    loss.total.backward()


def test_a_training_that_diverged_is_one_sentence() -> None:
    images, truth = scene()
    network = tiny().train()
    with torch.no_grad():
        network.net.model.enc_bbox_head.layers[-1].bias.fill_(torch.nan)
    with pytest.raises(RunError, match="rtdetr: found boxes that are not numbers"):
        DetrLoss(network)(network, images / 255, truth)
