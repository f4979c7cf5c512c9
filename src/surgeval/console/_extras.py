"""What the light install leaves out, said in one sentence before anything is begun."""

from __future__ import annotations

from importlib.util import find_spec

from surgeval.errors import BadInput

__all__ = ["models_missing", "require_models"]

_NEEDED = ("torch", "transformers", "safetensors")


def models_missing() -> str:
    """The first package of the extra `models` that is not installed, or nothing; none of them is imported.

    >>> models_missing()
    ''
    """
    return next((name for name in _NEEDED if find_spec(name) is None), "")


def require_models(what: str) -> None:
    """Refuse at once what needs a network.

    >>> require_models("explain")
    """
    missing = models_missing()
    if missing:
        raise BadInput(f"{what}: found no {missing}, expected the models extra: pip install 'surgeval[models]'")
