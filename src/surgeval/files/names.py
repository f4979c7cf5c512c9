r"""Names that come from data as names of files: always inside the folder, on every disk, and no two the same.

A video may be called `../../x`, `/etc/x`, `CON` or have a name of a megabyte. What can be a file name anywhere stays as
it is; anything else is changed to something that can.
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
    """For a path that leads nowhere: `; did you mean …?` with a name in the same folder that is close, else nothing.

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
    r"""The text as the name of one file or folder, on any disk; a name that is fit already stays as it is.

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
    """The path below `folder` that these names lead to, each made safe; refused where a link is in the way.

    >>> path_inside(Path("out"), "../../x", "7.jpg").as_posix()
    'out/x/7.jpg'
    """
    path = Path(folder)
    for name in names:
        path = path / safe_name(name)
        if path.is_symlink():
            shown = visible(str(path))
            raise BadInput(f"{shown}: found a link, expected a file or folder (nothing is written through links)")
    return path


def check_text_path(path: str | Path) -> None:
    r"""Raise `BadInput` where a path holds bytes that are no text: polars and JSON take none.

    >>> check_text_path("/runs/größe")
    >>> check_text_path(b"/runs/\xff".decode("utf-8", "surrogateescape"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: /runs/\xff: found a path with bytes that are no text, expected UTF-8
    """
    whole = os.path.abspath(path)  # noqa: PTH100 (`resolve` follows links)
    try:
        whole.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise BadInput(f"{visible(shown)}: found a path with bytes that are no text, expected UTF-8") from None


def leads_out(path: str | Path, home: str | Path) -> bool:
    """Whether a path that stands inside `home` really ends elsewhere, because of a link.

    >>> leads_out(Path("data/frames/1.jpg"), Path("data"))
    False
    """
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(home)):  # noqa: PTH100 (`resolve` follows links)
        return False
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(home))


class DistinctNames:
    """File names for one folder: safe, and different on every disk, also where case does not count.

    >>> names = DistinctNames("labels.json")
    >>> [names.claim(name) for name in ("a/b", "a-b", "A-B", "labels.json")]
    ['a-b', 'a-b-2', 'A-B-3', 'labels.json-2']
    """

    def __init__(self, *used: str, longest: int = _LONGEST - 60) -> None:
        self._longest = longest
        self._last = {_folded(name): 1 for name in used}  # name as a disk may see it → the last number given to it

    def claim(self, name: str, suffix: str = "") -> str:
        """A file name for this name, which nobody else gets; `suffix` ends it."""
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
