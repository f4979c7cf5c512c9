"""What somebody uploads: one file, or a ZIP of several, put into a new folder; a ZIP is not trusted in anything.

Its members stay inside the folder, links and odd names are refused, and what it unpacks to is counted while it is
written: the sizes that it states may be lies. Only stored and deflated members are read: of the other methods a block
of input can become gigabytes before anything can be counted.
"""

from __future__ import annotations

import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from surgeval.errors import BadInput, visible
from surgeval.files import atomic_folder, make_folder, path_inside, safe_name

__all__ = ["unpack"]

_MEMBERS = 200_000
_BYTES = 1 << 30  # of all members, unpacked
_BLOCK = 1 << 20
_DEPTH = 8
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOCKED = 0x1 | 0x40  # bits of a member's flags: encrypted, strongly encrypted
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    LookupError,
    OSError,
)  # what reading a damaged archive ends with
_HIDDEN = re.compile(r"(^|/)(__MACOSX|\.[^./][^/]*)(/|$)")  # what desktops put beside the files


def unpack(upload: str | Path, name: str, folder: str | Path, *, most: int = _BYTES) -> Path:
    """Put an uploaded file of this name into a new folder inside `folder`, a ZIP with what it holds; the new folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as project:
    ...     upload = Path(project, "upload")
    ...     with zipfile.ZipFile(upload, "w") as archive:
    ...         archive.writestr("V1/1.json", "{}")
    ...     labels = unpack(upload, "labels.zip", Path(project, "imports"))
    ...     labels.name, [path.name for path in labels.rglob("*.json")]
    ('labels', ['1.json'])
    """
    upload, folder = Path(upload), Path(folder)
    if folder.is_symlink():
        raise BadInput(f"{folder.name}: found a link, expected a folder (nothing is written through links)")
    zipped = zipfile.is_zipfile(upload)
    target = _new_folder(folder, PurePosixPath(name.replace("\\", "/")).name, zipped)
    try:
        with atomic_folder(target) as partial:
            if not zipped:
                shutil.copyfile(upload, path_inside(partial, safe_name(PurePosixPath(name.replace("\\", "/")).name)))
            else:
                _extract(upload, partial, most)
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
    with _readable():
        archive = zipfile.ZipFile(upload)
    with archive:
        members = [member for member in archive.infolist() if not (member.is_dir() or _HIDDEN.search(member.filename))]
        if len(members) > _MEMBERS:
            raise BadInput(f"archive: found {len(members)} files, expected at most {_MEMBERS}")
        left = most
        for member in members:
            left -= _write(archive, member, _place(member, target), left, most)


def _place(member: zipfile.ZipInfo, target: Path) -> Path:
    """Where a member goes; refused where its name, its kind or its compression is none that is taken."""
    name = repr(visible(member.filename[:80]))
    parts = PurePosixPath(member.filename.replace("\\", "/")).parts
    odd = [part for part in parts if part in ("/", "..") or safe_name(part) != part]
    if odd or not 0 < len(parts) <= _DEPTH or stat.S_ISLNK(member.external_attr >> 16):
        raise BadInput(f"archive: found {name}, expected plain names that stay inside")
    if member.compress_type not in _METHODS or member.flag_bits & _LOCKED:
        how = "encrypted" if member.flag_bits & _LOCKED else f"compressed by method {member.compress_type}"
        raise BadInput(f"archive: found {name} {how}, expected files that are stored or deflated, without a password")
    path = path_inside(target, *parts)
    above = [folder for folder in path.parents if folder != target and folder.is_relative_to(target)]
    if path.exists() or any(folder.is_file() for folder in above):
        raise BadInput(f"archive: found {name} twice, expected each file once")
    return path


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, left: int, most: int) -> int:
    """Unpack one member; how many bytes it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("xb") as out:
        for block in _blocks(archive, member):
            written += len(block)
            if written > left:
                raise BadInput(f"archive: found more than {most} bytes in it, expected at most that")
            out.write(block)
    return written


def _blocks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with _readable():
        stream = archive.open(member)
    with stream:
        while True:
            with _readable():
                block = stream.read(_BLOCK)
            if not block:
                return
            yield block


@contextmanager
def _readable() -> Iterator[None]:
    """What a damaged archive raises, as one sentence that tells nothing of this machine's paths."""
    try:
        yield
    except _BROKEN as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(
            f"archive: found a ZIP that cannot be read ({visible(why[:80])}), expected a whole one"
        ) from None
