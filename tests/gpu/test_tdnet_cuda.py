"""TDnet on a GPU: the CPU's boxes, finite in half precision, the same from a recorded graph."""

from __future__ import annotations

import pytest
import torch
from tests.unit.detector.networks import pictures, small

from surgeval.detector import HeadOutput, TDNet, student_of
from surgeval.detector.attention import AreaAttention

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")


def _on_gpu(dtype: torch.dtype) -> TDNet:
    network: TDNet = small().fused().to("cuda", dtype, memory_format=torch.channels_last)
    return network


def test_boxes_are_those_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    x = pictures(2, 128, 192)
    with torch.inference_mode():
        here, there = small()(x), _on_gpu(torch.float32)(x.cuda())
    torch.testing.assert_close(there.boxes().cpu(), here.boxes(), rtol=1e-3, atol=0.05)
    for head, logits in here.logits.items():
        torch.testing.assert_close(there.logits[head].cpu(), logits, rtol=1e-3, atol=5e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_moves_boxes_by_little(dtype: torch.dtype) -> None:
    x = pictures(2, 128, 192)
    with torch.inference_mode():
        here, there = small()(x), _on_gpu(dtype)(x.to("cuda", dtype))
    assert there.boxes().dtype == torch.float32 and there.boxes().isfinite().all()
    assert (there.boxes().cpu() - here.boxes()).abs().median() < 1.0  # pixel


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_beyond_float16_stay_finite_forward_and_backward(dtype: torch.dtype) -> None:
    unit = AreaAttention(32, areas=1).eval()
    with torch.no_grad():
        unit.qkv.conv.weight.zero_()
        unit.qkv.conv.weight[:64] = torch.cat((torch.eye(32), torch.eye(32)))[..., None, None]
        unit.qkv.conv.weight[64:] = torch.eye(32)[..., None, None] / 1000
    x = torch.zeros(1, 32, 8, 8)
    x[0, :, 0, 0], x[0, :, 7, 7] = 1000.0, -1000.0
    exact = unit(x)
    unit.to("cuda", dtype)
    given = x.to("cuda", dtype).requires_grad_(True)
    found = unit(given)
    found.float().sum().backward()
    torch.testing.assert_close(found.float().cpu(), exact, rtol=0.05, atol=0.05)
    assert given.grad is not None and given.grad.isfinite().all()


def test_a_recorded_graph_replays_the_same_numbers() -> None:
    network = _on_gpu(torch.float16)
    first, second = (pictures(1, 128, 128, seed=seed).to("cuda", torch.float16) for seed in (1, 2))

    def look(x: torch.Tensor) -> HeadOutput:
        with torch.inference_mode():
            output: HeadOutput = network(x)
            return output

    place = first.clone()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            look(place)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = look(place)
        boxes = output.boxes()
    for x in (first, second, first):
        place.copy_(x)
        graph.replay()
        torch.testing.assert_close(boxes, look(x).boxes(), rtol=1e-2, atol=0.5)
        assert torch.equal(output.points, look(x).points)


def test_a_students_boxes_stay_bit_identical_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    teacher: TDNet = small().to("cuda", memory_format=torch.channels_last)
    student = student_of(teacher)
    student.train()
    x = pictures(2, 128, 128).cuda()
    optimiser = torch.optim.SGD([weight for weight in student.parameters() if weight.requires_grad], lr=0.5)
    with torch.autocast("cuda", torch.bfloat16):
        loss = student(x).logits["ivt"].square().mean()
    loss.backward()
    optimiser.step()
    with torch.no_grad():
        old, new = teacher(x), student(x)
    assert torch.equal(old.box, new.box) and not torch.equal(old.logits["ivt"], new.logits["ivt"])
