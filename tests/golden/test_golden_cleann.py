"""Golden causal graphs under `--golden DIR`: `xai/cleann*.json[.gz]` with the attention in the npz of the same name.

Edges, separating sets and explanations are exact; a file is recognised by its keys, an absent kind is not a failure.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surgeval.explain.cleann import (
    CausalSettings,
    choose_nodes,
    correlation,
    explain_node,
    learn_graph,
    rank_heads,
    reply_graphs,
)

MARKS = {"circle": "Circle", "arrow": "Directed", "tail": "Undirected"}


def _read(path: Path) -> Any:
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _folder(config: pytest.Config) -> Path:
    chosen = config.getoption("--golden")
    return (Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden") / "xai"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    files = [(path, _read(path)) for path in sorted(_folder(metafunc.config).glob("cleann*.json*"))]
    for fixture, key in (("graph_case", "edges"), ("nodes_case", "image_nodes"), ("heads_case", "rank_max_image")):
        if fixture in metafunc.fixturenames:
            cases = [(path, case) for path, content in files for case in content if key in case]
            metafunc.parametrize(fixture, cases, ids=[_name(path, case) for path, case in cases])
    if "llava_folder" in metafunc.fixturenames:
        folders = sorted(path.parent for path in _folder(metafunc.config).glob("token_gradcam/tokens.npz"))
        metafunc.parametrize("llava_folder", folders, ids=[path.name for path in folders])


def _name(path: Path, case: dict[str, Any]) -> str:
    keys = ("case", "token", "target", "n", "alpha", "learner")
    return "-".join([_stem(path), *(str(case[key]) for key in keys if key in case)])


def _attention(path: Path, case: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    with np.load(path.parent / f"{_stem(path)}.npz", allow_pickle=False) as stored:
        return np.asarray(stored[case], dtype=np.float64)


def test_a_causal_graph_is_what_the_file_says(graph_case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = graph_case
    C = correlation(_attention(path, golden["case"]))
    graph = learn_graph(C, golden["nodes"], golden["n"], golden["alpha"], golden["learner"])
    if golden.get("nearest_log10_p_to_alpha") is not None and golden["nearest_log10_p_to_alpha"] < 1e-6:
        pytest.skip("a test falls on alpha: either graph is right")
    assert [[e.a, e.b, MARKS[e.at_a], MARKS[e.at_b]] for e in graph.edges] == sorted(golden["edges"])
    assert [[*pair, list(between)] for pair, between in graph.sepsets.items()] == sorted(golden["sepsets"])
    for radius, nodes in golden["explanations_by_radius"].items():
        assert list(explain_node(graph, golden["target"], int(radius)).nodes) == nodes
    for a, b, p in golden["marginal_pvalues"]:  # two tokens alone are joined where alpha is above their p-value
        for alpha in (p * (1 - 1e-6) - 1e-12, p * (1 + 1e-6) + 1e-12):
            if 0 < alpha < 1:
                assert bool(learn_graph(C, [a, b], golden["n"], alpha).edges) == (alpha > p), (a, b, p)
    assert graph.complete
    # Python walks over sets of numbers below 8 upwards; beyond, the older file counts the tests of another order.
    if "as_run" in golden or max(golden["nodes"]) < 8:
        counts = golden["n_ci_tests"]
        assert list(graph.tests) == counts[: len(graph.tests)]
        assert not any(counts[len(graph.tests) :])


def test_nodes_are_those_of_the_file(nodes_case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = nodes_case
    A = _attention(path, golden["case"])
    span = _image_span(path)
    nodes = choose_nodes(A[golden["target"]], span, golden["target"], golden["kappa"])
    assert (list(nodes.image), list(nodes.text)) == (golden["image_nodes"], golden["text_nodes"])
    shown = explain_node(
        learn_graph(correlation(A), nodes.all, golden["n"], golden["alpha"], golden["learner"]), nodes.target
    )
    assert [token for token in shown.nodes if token in nodes.image] == golden["explanation_image_nodes"]


def test_heads_are_ranked_as_the_file_says(heads_case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = heads_case
    graphs = path.with_name(path.name.replace("_heads.json", ".npz"))
    with np.load(graphs, allow_pickle=False) as stored:
        numbered = {int(name.rpartition("_h")[2]): stored[name] for name in stored.files if "_h" in name}
    attention = np.stack([numbered[head] for head in sorted(numbered)])
    span = _image_span(graphs.with_suffix(".json"))
    for rule, name in (("max_image", "max_image"), ("image_over_text", "max_image_over_max_text")):
        ranked = rank_heads(attention, golden["row"], span, rule)  # type: ignore[arg-type]
        np.testing.assert_allclose(ranked.scores, golden[name], rtol=1e-12)
        assert list(ranked.order) == golden[f"rank_{name}"]
        assert list(ranked.order[:5]) == golden[f"top5_{name}"]


def test_a_golden_model_is_explained_as_the_file_says(llava_folder: Path) -> None:
    """From pixels to explanations: the model's own attention gives the graphs that were made of the stored one."""
    import torch

    from surgeval.models import Generated, Preparation
    from surgeval.models.llava import Llava, load_network

    facts = json.loads((llava_folder / "tokens.json").read_text("utf-8"))
    with np.load(llava_folder / "tokens.npz", allow_pickle=False) as stored:
        pixels = torch.from_numpy(stored["pixel_values"])
    model = Llava(load_network(llava_folder)[0], None, tuple(facts["grid"]), name="golden", family="llava",
                  identity="golden", preparation=Preparation((facts["image_size"],) * 2))  # fmt: skip
    span = (facts["image_span"][0], facts["image_span"][1])
    asked = Generated("", (), (), facts["prompt_length"], tuple(facts["input_ids"]), (span,))
    graphs = reply_graphs(model, [pixels], asked.with_reply(facts["generated"]), CausalSettings(heads=facts["n_heads"]))
    made = {(graph.token, graph.head): graph for row in graphs for graph in row}
    used = {"learner": "ordered", "n": 128, "alpha": 1e-5, "kappa": 0.01}
    stored_graphs = _read(llava_folder.parent / "cleann_llava.json.gz")
    expected = [case for case in stored_graphs if case["case"].startswith("llava") and used.items() <= case.items()]
    assert len(expected) == facts["n_heads"] * 3  # the file has the first three tokens
    for golden in expected:
        graph = made[golden["token"], golden["head"]]
        if golden["nearest_log10_p_to_alpha"] > 1e-3:
            assert list(graph.nodes.all) == golden["nodes"]
            assert list(graph.explanation.nodes) == golden["explanations_by_radius"]["3"]


def _image_span(path: Path) -> tuple[int, int]:
    """Of the model that made the attention: written beside its tokens where they are, else the one of the files."""
    tokens = path.parent / "token_gradcam" / "tokens.json"
    first, end = json.loads(tokens.read_text("utf-8"))["image_span"] if tokens.exists() else (3, 19)
    return first, end
