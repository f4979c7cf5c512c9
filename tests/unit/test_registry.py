from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.plugins import install_plugin

from surgeval.errors import BadInput, LeftOut
from surgeval.registry import Registry

SOURCE = """
class Tool:
    def __init__(self, name="hook"):
        self.name = name
hook, grasper = Tool("hook"), Tool("grasper")
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[object]:
    entries = {"grasper": "registered_tools:grasper", "gone": "registered_tools:gone", "hook": "registered_tools:Tool"}
    monkeypatch.syspath_prepend(install_plugin(tmp_path, "surgical.tools", entries, registered_tools=SOURCE))
    monkeypatch.delitem(sys.modules, "registered_tools", raising=False)
    return Registry("surgical.tools", {"hook": "registered_tools:hook"}, object, "tool")


def test_a_name_is_loaded_when_it_is_looked_up(tools: Registry[object]) -> None:
    with pytest.warns(LeftOut, match="'hook' of another package .* has this name already"):
        assert tools.names() == ("hook", "gone", "grasper")
    assert "registered_tools" not in sys.modules
    assert tools["hook"] is sys.modules["registered_tools"].hook
    assert tools["grasper"] is tools["grasper"]


def test_a_broken_plug_in_costs_one_warning(tools: Registry[object]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert list(tools.load_all()) == list(tools.load_all()) == ["hook", "grasper"]
        with pytest.raises(BadInput, match=r"'gone' of another package \(registered_tools:gone\) cannot be used"):
            tools["gone"]
    assert len([warning for warning in caught if "'gone'" in str(warning.message)]) == 1


@pytest.mark.filterwarnings("ignore::surgeval.errors.LeftOut")
def test_an_unknown_name_is_answered_with_a_close_one(tools: Registry[object]) -> None:
    with pytest.raises(BadInput, match=r"Unknown tool 'graper'\. .*; did you mean 'grasper'\?"):
        tools["graper"]


def test_the_command_line_loads_no_format_family_or_protocol() -> None:
    code = (
        "import sys, surgeval.cli.app; from surgeval.protocols.registry import PROTOCOLS\n"
        "kinds = ('datasets', 'models', *(f'protocols.{name}' for name in PROTOCOLS))\n"
        "print([name for name in sys.modules if f'{name}.'.startswith(tuple(f'surgeval.{kind}.' for kind in kinds))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
