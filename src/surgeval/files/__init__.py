"""Files as everything above uses them: whole or absent when written, regular and bounded when read; stores of rows."""

from surgeval.files._atomic import (
    NO_ROOM,
    NONBLOCK,
    NotRegular,
    atomic_file,
    check_regular,
    make_folder,
    read_regular,
    remove_temporary,
    write_atomically,
)
from surgeval.files._store import Column, Store

__all__ = [
    "NONBLOCK",
    "NO_ROOM",
    "Column",
    "NotRegular",
    "Store",
    "atomic_file",
    "check_regular",
    "make_folder",
    "read_regular",
    "remove_temporary",
    "write_atomically",
]
