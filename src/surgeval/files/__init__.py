"""Files as everything above uses them: whole or absent when written, regular when read, named inside their folder."""

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
from surgeval.files._cells import guard, unguard
from surgeval.files._names import DistinctNames, leads_out, path_inside, safe_name

__all__ = [
    "NONBLOCK",
    "NO_ROOM",
    "DistinctNames",
    "NotRegular",
    "atomic_file",
    "check_regular",
    "guard",
    "leads_out",
    "make_folder",
    "path_inside",
    "read_regular",
    "remove_temporary",
    "safe_name",
    "unguard",
    "write_atomically",
]
