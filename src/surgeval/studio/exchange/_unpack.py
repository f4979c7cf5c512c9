"""What somebody uploads: one file, or a ZIP of several, put into a new folder; a ZIP is not trusted in anything.

Its members stay inside the folder, links and odd names are refused, and what it unpacks to is counted while it is
written: the sizes that it states may be lies.
"""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from surgeval.errors import BadInput
from surgeval.files import make_folder, path_inside, safe_name

__all__ = ["unpack"]

_MEMBERS = 200_000
_BYTES = 1 << 30  # of all members, unpacked
_BLOCK = 1 << 20
_DEPTH = 8
_HIDDEN = re.compile(r"(^|/)(__MACOSX|\.[^./][^/]*)(/|$)")  # what desktops put beside the files


def unpack(upload: Path, name: str, folder: Path, *, most: int = _BYTES) -> Path:
    """Put an uploaded file of this name into a new folder inside `folder`, a ZIP with what it holds; the new folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     upload = Path(place, "upload")
    ...     with zipfile.ZipFile(upload, "w") as archive:
    ...         archive.writestr("V1/1.json", "{}")
    ...     made = unpack(upload, "labels.zip", Path(place, "imports"))
    ...     made.name, [path.name for path in made.rglob("*.json")]
    ('labels', ['1.json'])
    """
    zipped = zipfile.is_zipfile(upload)
    target = _new_folder(folder, PurePosixPath(name.replace("\\", "/")).name, zipped)
    try:
        if not zipped:
            shutil.copyfile(upload, path_inside(target, safe_name(PurePosixPath(name.replace("\\", "/")).name)))
        else:
            _extract(upload, target, most)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def _new_folder(folder: Path, name: str, zipped: bool) -> Path:
    stem = safe_name(PurePosixPath(name).stem or "labels")
    for number in range(1, 10_000):
        target = path_inside(folder, stem if number == 1 else f"{stem}-{number}")
        if not target.exists() and not target.is_symlink():
            make_folder(target)
            return target
    raise BadInput(f"{'archive' if zipped else 'file'} {stem}: found it in {folder} too often, expected another name")


def _extract(upload: Path, target: Path, most: int) -> None:
    try:
        with zipfile.ZipFile(upload) as archive:
            members = [
                member for member in archive.infolist() if not (member.is_dir() or _HIDDEN.search(member.filename))
            ]
            if len(members) > _MEMBERS:
                raise BadInput(f"archive: found {len(members)} files, expected at most {_MEMBERS}")
            left = most
            for member in members:
                left -= _write(archive, member, target, left, most)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError) as error:
        raise BadInput(f"archive: found a ZIP that cannot be read ({str(error)[:80]}), expected a whole one") from None


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, left: int, most: int) -> int:
    """Unpack one member; how many bytes it had."""
    parts = PurePosixPath(member.filename.replace("\\", "/")).parts
    odd = [part for part in parts if part in ("/", "..") or safe_name(part) != part]
    if odd or not 0 < len(parts) <= _DEPTH or stat.S_ISLNK(member.external_attr >> 16):
        raise BadInput(f"archive: found {member.filename[:80]!r}, expected plain names that stay inside")
    path = path_inside(target, *parts)
    if path.exists():
        raise BadInput(f"archive: found {member.filename[:80]!r} twice, expected each file once")
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(member) as stream, path.open("xb") as out:
        while block := stream.read(_BLOCK):
            written += len(block)
            if written > left:
                raise BadInput(f"archive: found more than {most} bytes in it, expected at most that")
            out.write(block)
    return written
