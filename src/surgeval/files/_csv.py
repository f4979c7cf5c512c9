"""CSV that nobody vouches for. Polars unpacks what looks compressed, however much that is: such bytes are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BrokenCsv", "parse_csv"]

# The first bytes by which polars tells them from text.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"x\x01": "zlib", b"x\x9c": "zlib", b"x\xda": "zlib"}
_LONGEST = 160


class BrokenCsv(ValueError):
    """What was found instead of a table; `empty` where that was nothing."""

    def __init__(self, found: str, *, empty: bool = False) -> None:
        super().__init__(found)
        self.empty = empty


def parse_csv(data: bytes, separator: str = ",") -> pl.DataFrame:
    r"""A table of texts.

    >>> parse_csv(b"a;b\n1;2\n", ";").rows()
    [('1', '2')]
    >>> parse_csv(b"\x1f\x8b\x08 and a table of a terabyte")
    Traceback (most recent call last):
    surgeval.files._csv.BrokenCsv: a compressed file (gzip)
    """
    import polars as pl

    kind = next((name for magic, name in _COMPRESSED.items() if data.startswith(magic)), None)
    if kind:
        raise BrokenCsv(f"a compressed file ({kind})")
    try:
        return pl.read_csv(data, infer_schema=False, separator=separator, truncate_ragged_lines=False)
    except pl.exceptions.NoDataError:
        raise BrokenCsv("an empty file", empty=True) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise BrokenCsv((str(error).splitlines() or [type(error).__name__])[0][:_LONGEST]) from error
