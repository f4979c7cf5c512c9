"""Files as everything above uses them: whole or absent when written, regular when read, named inside their folder.

`Store` is the one kind of database: a table of rows that were paid for.
"""

from surgeval.files._append import append_line
from surgeval.files._atomic import (
    NO_ROOM,
    atomic_file,
    copy_atomically,
    failure_reason,
    make_folder,
    remove_temporary,
    write_atomically,
)
from surgeval.files._cells import guard, unguard
from surgeval.files._csv import BrokenCsv, parse_csv
from surgeval.files._digest import file_digest
from surgeval.files._jpeg import too_many_scans
from surgeval.files._json import MAX_DEPTH, BrokenJson, parse_json, read_json_file, read_json_object, too_deep
from surgeval.files._lock import LOCK, folder_lock
from surgeval.files._names import DistinctNames, check_text_path, leads_out, name_beside, path_inside, safe_name
from surgeval.files._parquet import (
    check_parquet,
    collect_parquet,
    find_parquet_damage,
    read_parquet_file,
    scan_parquet_file,
    trust_parquet,
    try_parquets,
    write_csv_file,
    write_parquet_file,
)
from surgeval.files._partial import atomic_folder, atomic_path
from surgeval.files._regular import (
    NONBLOCK,
    NOT_REGULAR,
    NotRegular,
    check_regular,
    holds_bytes,
    open_regular,
    read_bounded,
    read_regular,
)
from surgeval.files._store import Column, Store
from surgeval.files._toml import parse_toml

__all__ = [
    "LOCK",
    "MAX_DEPTH",
    "NONBLOCK",
    "NOT_REGULAR",
    "NO_ROOM",
    "BrokenCsv",
    "BrokenJson",
    "Column",
    "DistinctNames",
    "NotRegular",
    "Store",
    "append_line",
    "atomic_file",
    "atomic_folder",
    "atomic_path",
    "check_parquet",
    "check_regular",
    "check_text_path",
    "collect_parquet",
    "copy_atomically",
    "failure_reason",
    "file_digest",
    "find_parquet_damage",
    "folder_lock",
    "guard",
    "holds_bytes",
    "leads_out",
    "make_folder",
    "name_beside",
    "open_regular",
    "parse_csv",
    "parse_json",
    "parse_toml",
    "path_inside",
    "read_bounded",
    "read_json_file",
    "read_json_object",
    "read_parquet_file",
    "read_regular",
    "remove_temporary",
    "safe_name",
    "scan_parquet_file",
    "too_deep",
    "too_many_scans",
    "trust_parquet",
    "try_parquets",
    "unguard",
    "write_atomically",
    "write_csv_file",
    "write_parquet_file",
]
