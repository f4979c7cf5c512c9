"""What an RT-DETR is made of: our three sizes, and the configuration of a folder that a stranger wrote.

Only fields listed here reach transformers, each with its bounds; what would change the network in a way we do not
read (another backbone, timm, fixed anchors) is refused instead of ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, DataError

__all__ = ["RTDETR_SIZES", "architecture", "least_side", "read_architecture", "transformers_config"]

RTDETR_SIZES = ("tiny", "r18", "r50")
MAX_CLASSES = 10_000  # as many as a label space can have
_TINY_NET = {
    "encoder_hidden_dim": 64, "encoder_ffn_dim": 128, "encoder_attention_heads": 4, "hidden_expansion": 0.5,
    "d_model": 64, "decoder_ffn_dim": 128, "decoder_layers": 2, "decoder_attention_heads": 4, "num_queries": 60,
    "num_denoising": 20,
}  # fmt: skip
_TINY_BACKBONE = {"embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "layer_type": "basic"}
_R18_BACKBONE = {"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2],
                 "layer_type": "basic"}  # fmt: skip
_R50_BACKBONE = {"embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3],
                 "layer_type": "bottleneck"}  # fmt: skip
_MADE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tiny": (_TINY_NET, _TINY_BACKBONE),
    "r18": ({"hidden_expansion": 0.5, "decoder_layers": 3}, _R18_BACKBONE),
    "r50": ({}, _R50_BACKBONE),
}

_ACTS = ("gelu", "relu", "silu")
_WHOLE: dict[str, tuple[int, int]] = {
    "encoder_hidden_dim": (8, 2048), "encoder_layers": (0, 12), "encoder_ffn_dim": (8, 16384),
    "encoder_attention_heads": (1, 64), "d_model": (8, 2048), "num_queries": (1, 3000),
    "decoder_ffn_dim": (8, 16384), "decoder_n_points": (1, 16), "decoder_layers": (1, 24),
    "decoder_attention_heads": (1, 64), "num_denoising": (0, 1000), "num_feature_levels": (3, 3),
}  # fmt: skip
_NUMBER: dict[str, tuple[float, float]] = {
    "hidden_expansion": (0.1, 4), "label_noise_ratio": (0, 1), "box_noise_scale": (0, 4), "dropout": (0, 1),
    "activation_dropout": (0, 1), "attention_dropout": (0, 1), "layer_norm_eps": (1e-12, 1),
    "batch_norm_eps": (1e-12, 1), "positional_encoding_temperature": (1, 1e6),
    "matcher_alpha": (0, 1), "matcher_gamma": (0, 10),
    "matcher_class_cost": (0, 100), "matcher_bbox_cost": (0, 100), "matcher_giou_cost": (0, 100),
    "focal_loss_alpha": (0, 1), "focal_loss_gamma": (0, 10), "weight_loss_vfl": (0, 100),
    "weight_loss_bbox": (0, 100), "weight_loss_giou": (0, 100),
}  # fmt: skip
_CHOICE: dict[str, tuple[object, ...]] = {
    "encoder_activation_function": _ACTS, "activation_function": _ACTS, "decoder_activation_function": _ACTS,
    "normalize_before": (True, False), "freeze_backbone_batch_norms": (True, False), "learn_initial_query": (False,),
    "with_box_refine": (True,), "use_focal_loss": (True,), "auxiliary_loss": (True,),
}  # fmt: skip
_FIXED: dict[str, list[Any]] = {"feat_strides": [8, 16, 32], "encode_proj_layers": [2]}
_ELSEWHERE = ("use_timm_backbone", "use_pretrained_backbone", "backbone", "anchor_image_size")


def architecture(size: str, labels: int, *, frozen_norms: bool = False) -> dict[str, Any]:
    """The configuration of one of our sizes, as config.json has it.

    The norms of the backbone learn unless frozen: a network that starts at random has no statistics worth keeping.

    >>> architecture("r18", 89)["decoder_layers"], architecture("r50", 89)["backbone_config"]["depths"]
    (3, [3, 4, 6, 3])
    """
    if size not in RTDETR_SIZES:
        raise BadInput(f"size: found {size!r}, expected one of {', '.join(RTDETR_SIZES)}")
    net, backbone = _MADE[size]
    return _complete({**net, "freeze_backbone_batch_norms": frozen_norms}, backbone, labels)


def _complete(net: Mapping[str, Any], backbone: Mapping[str, Any], labels: int) -> dict[str, Any]:
    hidden = net.get("encoder_hidden_dim", 256)
    return {
        "model_type": "rt_detr",
        **net,
        "num_labels": labels,
        "encoder_in_channels": list(backbone["hidden_sizes"][1:]),
        "decoder_in_channels": [hidden] * 3,
        "backbone_config": {"model_type": "rt_detr_resnet", "num_channels": 3, **backbone,
                            "out_features": ["stage2", "stage3", "stage4"]},
    }  # fmt: skip


def read_architecture(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The same from a config.json that somebody wrote; a field out of bounds is named."""
    if config.get("model_type") != "rt_detr":
        raise DataError(path, f"found {repr(config.get('model_type'))[:80]}, expected 'rt_detr'", field="model_type")
    for name in _ELSEWHERE:
        if config.get(name):
            raise DataError(
                path,
                f"found {repr(config[name])[:80]}, expected nothing: a backbone of transformers' own ResNet kind",
                field=name,
            )
    for name, wanted in _FIXED.items():
        if config.get(name) is not None and list(_items(config, name, path)) != wanted:
            raise DataError(path, f"found {repr(config[name])[:80]}, expected {wanted!r}", field=name)
    net: dict[str, Any] = {name: _whole(config, name, path, *_WHOLE[name]) for name in _WHOLE if name in config}
    net |= {name: _number(config, name, path) for name in _NUMBER if name in config}
    net |= {name: _choice(config, name, path, _CHOICE[name]) for name in _CHOICE if name in config}
    checked = _complete(net, _read_backbone(config, path), _labels(config, path))
    for width, heads in (("encoder_hidden_dim", "encoder_attention_heads"), ("d_model", "decoder_attention_heads")):
        size, parts = checked.get(width, 256), checked.get(heads, 8)
        if size % parts or size % 4:
            raise DataError(path, f"found {size}, expected a multiple of 4 and of the {parts} heads", field=width)
    return checked


def _read_backbone(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    part = config.get("backbone_config")
    if not isinstance(part, dict) or part.get("model_type") != "rt_detr_resnet":
        kind = part.get("model_type") if isinstance(part, dict) else part
        raise DataError(path, f"found {repr(kind)[:80]}, expected an rt_detr_resnet", field="backbone_config")
    stages = part.get("out_features")
    if stages is not None and stages != ["stage2", "stage3", "stage4"]:
        raise DataError(
            path, f"found {repr(stages)[:80]}, expected stages 2, 3 and 4", field="backbone_config.out_features"
        )
    backbone: dict[str, Any] = {
        "embedding_size": _whole(part, "embedding_size", path, 2, 1024) if "embedding_size" in part else 64
    }
    for name, most, default in (("hidden_sizes", 8192, [256, 512, 1024, 2048]), ("depths", 64, [3, 4, 6, 3])):
        backbone[name] = _items(part, name, path) if name in part else default
        if len(backbone[name]) != 4 or not all(_is_whole(value) and 1 <= value <= most for value in backbone[name]):
            raise DataError(
                path,
                f"found {repr(backbone[name])[:80]}, expected four whole numbers from 1 to {most}",
                field=f"backbone_config.{name}",
            )
    backbone["layer_type"] = _choice({"layer_type": "bottleneck", **part}, "layer_type", path, ("basic", "bottleneck"))
    backbone["hidden_act"] = _choice({"hidden_act": "relu", **part}, "hidden_act", path, _ACTS)
    for name, allowed in (("downsample_in_first_stage", (False,)), ("downsample_in_bottleneck", (True, False))):
        if name in part:
            backbone[name] = _choice(part, name, path, allowed)
    return backbone


def _labels(config: Mapping[str, Any], path: Path) -> int:
    """How many classes; transformers counts them by their names."""
    names = config.get("id2label")
    if isinstance(names, dict):
        return _whole({"id2label": len(names)}, "id2label", path, 1, MAX_CLASSES)
    return _whole(config, "num_labels", path, 1, MAX_CLASSES) if "num_labels" in config else 2


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(config: Mapping[str, Any], name: str, path: Path, low: int, high: int) -> int:
    value = config[name]
    if not _is_whole(value) or not low <= value <= high:
        raise DataError(path, f"found {repr(value)[:80]}, expected a whole number from {low} to {high}", field=name)
    return int(value)


def _number(config: Mapping[str, Any], name: str, path: Path) -> float:
    value, (low, high) = config[name], _NUMBER[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise DataError(path, f"found {repr(value)[:80]}, expected a number from {low:g} to {high:g}", field=name)
    return value


def _choice(config: Mapping[str, Any], name: str, path: Path, allowed: tuple[object, ...]) -> Any:
    value = config[name]
    if not any(value is option or (isinstance(option, str) and value == option) for option in allowed):
        raise DataError(
            path, f"found {repr(value)[:80]}, expected {' or '.join(str(option) for option in allowed)}", field=name
        )
    return value


def _items(config: Mapping[str, Any], name: str, path: Path) -> list[Any]:
    value = config[name]
    if not isinstance(value, list) or len(value) > 64:
        raise DataError(path, f"found {repr(value)[:80]}, expected a short list", field=name)
    return value


def transformers_config(config: Mapping[str, Any]) -> Any:
    """The configuration as transformers' own object."""
    from transformers import RTDetrConfig, RTDetrResNetConfig

    backbone = {name: value for name, value in config["backbone_config"].items() if name != "model_type"}
    rest = {name: value for name, value in config.items() if name not in ("backbone_config", "model_type")}
    return RTDetrConfig(backbone_config=RTDetrResNetConfig(**backbone), **rest)


def least_side(config: Mapping[str, Any]) -> int:
    """The smallest input side with a point for every query; sides are multiples of 32.

    >>> least_side(architecture("tiny", 5)), least_side(architecture("r50", 5))
    (64, 128)
    """
    side = 32
    while sum((side // stride) ** 2 for stride in _FIXED["feat_strides"]) < config.get("num_queries", 300):
        side += 32
    return side
