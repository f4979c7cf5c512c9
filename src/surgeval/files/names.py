r"""File names made from names in data: inside their folder, valid on every disk, and distinct.

A video may be called `../../x`, `/etc/x` or `CON`, or have a name of a megabyte. A name that is a valid file name
everywhere is not changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from pathlib import Path

from surgeval.errors import BadInput, did_you_mean, visible

__all__ = ["DistinctNames", "check_text_path", "leads_out", "name_beside", "path_inside", "safe_name"]

_LONGEST = 240  # bytes; file systems take 255, and a temporary name adds a few
_UNFIT = re.compile('[\x00-\x1f\x7f-\x9f<>:"|?*\u2028\u2029\ud800-\udfff]')
# Windows takes these for devices, whatever their suffix.
_DEVICES = frozenset({"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$",
                      *(f"{port}{digit}" for port in ("COM", "LPT") for digit in "0123456789¹²³")})  # fmt: skip


def name_beside(path: str | Path) -> str:
    """For a path that does not exist: `; did you mean …?` with a similar name in the same folder, else nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "phantom").mkdir()
    ...     name_beside(Path(folder, "phantm")), name_beside(Path(folder, "net", "phantm"))
    ("; did you mean 'phantom'?", '')
    """
    path = Path(path)
    try:
        with os.scandir(path.parent) as entries:
            return did_you_mean(path.name, (entry.name for entry in entries))
    except (OSError, ValueError):  # no such folder, or a name that no folder can have
        return ""


def safe_name(text: str, longest: int = _LONGEST) -> str:
    r"""The text as the name of one file or folder, valid on any disk; a valid name is not changed.

    >>> [safe_name(text) for text in ("VID01", "../../etc/x", r"C:\films\a", "nul.json", "..")]
    ['VID01', 'etc-x', 'C--films-a', 'nul-.json', 'unnamed']
    """
    parts = [part for part in re.split(r"[/\\]", text) if part.strip(" .")]
    name = _UNFIT.sub("-", "-".join(parts)).lstrip(".").rstrip(" .") or "unnamed"
    base, dot, rest = name.partition(".")
    if base.rstrip().upper() in _DEVICES:
        name = f"{base.rstrip()}-{dot}{rest}"
    data = name.encode()
    if len(data) <= longest:
        return name
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{data[: longest - 9].decode('utf-8', 'ignore').rstrip(' .')}-{digest}"


def path_inside(folder: str | Path, *names: str) -> Path:
    """The path of these names below `folder`, each made safe. A link among them is refused.

    >>> path_inside(Path("out"), "../../x", "7.jpg").as_posix()
    'out/x/7.jpg'
    """
    path = Path(folder)
    for name in names:
        path = path / safe_name(name)
        if path.is_symlink():
            raise BadInput(f"{visible(str(path))}: is a link, and nothing is written through links")
    return path


def check_text_path(path: str | Path) -> None:
    r"""Raise `BadInput` for a path that is not valid UTF-8: polars and JSON cannot hold it.

    >>> check_text_path("/runs/größe")
    >>> check_text_path(b"/runs/\xff".decode("utf-8", "surrogateescape"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: /runs/\xff: the path is not valid UTF-8
    """
    whole = os.path.abspath(path)  # noqa: PTH100 (`resolve` follows links)
    try:
        whole.encode()
    except UnicodeEncodeError:
        text = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise BadInput(f"{visible(text)}: the path is not valid UTF-8") from None


def leads_out(path: str | Path, home: str | Path) -> bool:
    """Whether a path inside `home` leads out of it through a link.

    >>> leads_out(Path("data/frames/1.jpg"), Path("data"))
    False
    """
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(home)):  # noqa: PTH100 (`resolve` follows links)
        return False
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(home))


class DistinctNames:
    """File names for one folder: safe, and distinct also on disks that ignore case.

    >>> names = DistinctNames("labels.json")
    >>> [names.claim(name) for name in ("a/b", "a-b", "A-B", "labels.json")]
    ['a-b', 'a-b-2', 'A-B-3', 'labels.json-2']
    """

    def __init__(self, *used: str, longest: int = _LONGEST - 60) -> None:
        self._longest = longest
        self._last = {_folded(name): 1 for name in used}  # name as a disk may see it → last number given

    def claim(self, name: str, suffix: str = "") -> str:
        """A file name for this name that was not given out before; `suffix` ends it."""
        clean, suffix = safe_name(name, self._longest), safe_name(f"x{suffix}", self._longest)[1:]
        key = _folded(clean + suffix)
        number = self._last.get(key, 0) + 1
        candidate = clean if number == 1 else f"{clean}-{number}"
        while number > 1 and _folded(candidate + suffix) in self._last:
            number += 1
            candidate = f"{clean}-{number}"
        self._last[key] = number
        self._last.setdefault(_folded(candidate + suffix), 1)
        return candidate + suffix


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
