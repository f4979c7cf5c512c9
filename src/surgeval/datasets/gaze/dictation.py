"""What was dictated while looking: REFLACX's `timestamps_transcription.csv`, word by word."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surgeval.datasets.gaze.table import read_table
from surgeval.errors import DataError

__all__ = ["SpokenWord", "read_dictation"]


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word, from when to when (seconds)."""

    word: str
    start: float
    end: float


def read_dictation(path: str | Path) -> tuple[SpokenWord, ...]:
    r"""The words of a transcription with their times.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "timestamps_transcription.csv"
    ...     _ = path.write_text("word,timestamp_start_word,timestamp_end_word\nsmall,1.0,1.4\neffusion,1.4,2.1\n")
    ...     [word.word for word in read_dictation(path)]
    ['small', 'effusion']
    """
    table = read_table(Path(path))
    names = ("word", "timestamp_start_word", "timestamp_end_word")
    table.require(names)
    starts, ends = table.numbers(names[1]), table.numbers(names[2])
    if (ends < starts).any():
        row = int((ends < starts).argmax())
        times, wanted = f"{ends[row]:.6g} s after a start at {starts[row]:.6g} s", "a word that ends after it starts"
        raise DataError(path, f"found {times}, expected {wanted}", record=table.line(row), field=names[2])
    return tuple(map(SpokenWord, table.texts(names[0]), starts.tolist(), ends.tolist()))
