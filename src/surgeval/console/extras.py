"""What the light install leaves out, said in one sentence before anything is begun."""

from __future__ import annotations

from importlib.util import find_spec

from surgeval.errors import MODEL_PACKAGES, MissingExtra

__all__ = ["models_missing", "require_models"]


def models_missing() -> str:
    """The first package of the extra `models` that is not installed, or nothing; none of them is imported.

    >>> models_missing()
    ''
    """
    return next((name for name in MODEL_PACKAGES if not _installed(name)), "")


def require_models(feature: str) -> None:
    """Refuse at once what needs a network.

    >>> require_models("explain")
    """
    missing = models_missing()
    if missing:
        raise MissingExtra(feature, missing)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # a finder refused it
        return False
