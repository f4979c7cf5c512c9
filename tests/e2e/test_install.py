from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires

HEAVY = ("numpy", "polars", "vl_convert", "cv2", "av", "torch", "typer")


def _needed(name: str, seen: set[str]) -> set[str]:
    """The packages that `pip install NAME` without extras pulls in, from the installed metadata."""
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return seen
    for line in lines:
        if "extra ==" in line:
            continue
        other = re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0].lower().replace("_", "-")
        if other not in seen:
            seen.add(other)
            _needed(other, seen)
    return seen


def test_a_plain_install_pulls_no_torch() -> None:
    needed = _needed("surgeval", set())
    assert {"numpy", "polars", "typer"} <= needed
    assert not needed & {"torch", "transformers", "torchvision", "ray", "pandas", "scikit-learn"}


def test_importing_surgeval_loads_nothing_heavy() -> None:
    code = f"import surgeval, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.strip() == "[]"


def test_the_help_of_a_command_loads_no_plotting() -> None:
    code = (
        "import sys; from surgeval.cli.app import run; run(['data', 'check', '--help']); "
        "print([m for m in ('vl_convert', 'cv2', 'av', 'torch') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    assert done.stderr.strip() == "[]"


def test_every_public_name_of_the_package_can_be_had() -> None:
    import surgeval

    for name in dir(surgeval):
        assert getattr(surgeval, name) is not None
