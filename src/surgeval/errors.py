"""The exceptions a user can meet.

Each has one sentence that says what is wrong, where (file, record, field) and what to do. The command line prints that
sentence and exits with the exception's code, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice

__all__ = ["MODEL_PACKAGES", "BadInput", "DataError", "LeftOut", "MissingExtra", "NotScored", "RunError",
           "RunStopped", "SurgevalError", "UnclearFormat", "bounded", "code_of_others", "did_you_mean", "printable",
           "told", "visible"]  # fmt: skip

_LONGEST = 300  # characters of one part of a message
_LONGEST_SENTENCE = 900  # of the sentence behind the place
_CLOSE = 0.7  # share of letters that two names have in common, from which on one is taken for a slip of the other
_MOST_KNOWN = 10_000  # names that are looked through
_LONGEST_MESSAGE = 16_000  # of a message that lists problems or names


MODEL_PACKAGES = ("torch", "transformers", "safetensors", "tokenizers")  # of the extra `models`


class SurgevalError(Exception):
    """Base of all errors that surgeval raises on purpose; its message is bounded, whatever names went into it.

    Programs decide by `code`, never by the message: it is empty where no program needs to know the reason. `parts` are
    the values that a translation of the message needs.

    >>> error = BadInput("segments: too few frames", code="too-short", parts={"frames": 60})
    >>> error.code, error.parts
    ('too-short', {'frames': 60})
    """

    exit_code = 2

    def __init__(self, message: object = "", *, code: str = "", parts: Mapping[str, str | int] | None = None) -> None:
        super().__init__(bounded(str(message), _LONGEST_MESSAGE))
        self.code, self.parts = code, dict(parts or {})

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders: restore the attributes without calling `__init__`, whose arguments differ.
        return _restore, (type(self), self.args), self.__dict__

    @property
    def lines(self) -> tuple[str, ...]:
        """The message line by line, as the command line prints it."""
        return (str(self),)


def _restore(kind: type[SurgevalError], args: tuple[object, ...]) -> SurgevalError:
    return kind.__new__(kind, *args)


class BadInput(SurgevalError):
    """An argument or option that cannot be used as given."""


class MissingExtra(BadInput):
    """A part of surgeval whose packages the light install leaves out.

    >>> str(MissingExtra("explain", "torch"))
    "explain: found no torch, expected the models extra: pip install 'surgeval[models]'"
    """

    def __init__(self, feature: str, package: str, extra: str = "models") -> None:
        super().__init__(f"{feature}: found no {package}, expected the {extra} extra: pip install 'surgeval[{extra}]'")


class UnclearFormat(BadInput):
    """A path that holds files of several formats of datasets, or of none; `formats` are those that fit.

    >>> UnclearFormat("films: found files of coco and voc, expected one format", ("coco", "voc")).formats
    ('coco', 'voc')
    """

    def __init__(self, message: object = "", formats: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.formats = formats


class DataError(SurgevalError):
    """A file or record that cannot be used. `sentence` says why; its `code` is one of `files.PROBLEM_KINDS`.

    >>> error = DataError("broken.json", "expected 4 numbers, got 3", record="frame 12", field="box")
    >>> str(error), error.sentence
    ('broken.json: frame 12: box: expected 4 numbers, got 3', 'expected 4 numbers, got 3')
    """

    def __init__(
        self, path: object, sentence: str, *, record: str | None = None, field: str | None = None, code: str = ""
    ) -> None:
        self.path, self.record, self.field = str(path), record, field
        self.sentence = bounded(sentence, _LONGEST_SENTENCE)
        super().__init__(locate(self.path, record, field, self.sentence), code=code)


class RunError(SurgevalError):
    """A run folder that cannot be used: locked, made with other settings, or out of space."""


class RunStopped(RunError):
    """Raised by a worker to end the whole run instead of its unit; what is stored stays, and the run can be resumed."""


class NotScored(RunError):
    """A run whose answers wait to be scored; `protocol` is whose run it is.

    >>> NotScored("runs/net: found a run without scores, expected scores", "focus").protocol
    'focus'
    """

    def __init__(self, message: object = "", protocol: str = "") -> None:
        super().__init__(message)
        self.protocol = protocol


class NotRankable(DataError):
    """A submission that its own protocol excludes from a ranking, for example a disqualified one; `reason` says why.

    >>> error = NotRankable("net", "no question could be scored")
    >>> str(error), error.reason
    ('net: not to be ranked: no question could be scored', 'no question could be scored')
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, f"not to be ranked: {reason}")
        self.reason = reason


class LeftOut(UserWarning):
    """A part of another package that cannot be used: everything else works without it."""


@contextmanager
def code_of_others(what: str, passing: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """Whatever another package's code raises, or ends the process with, becomes one `BadInput`.

    Ctrl-C passes, and so do errors of ours and those named in `passing`.

    >>> with code_of_others("protocol crowd"):
    ...     raise SystemExit(3)
    Traceback (most recent call last):
    surgeval.errors.BadInput: protocol crowd: SystemExit: 3
    """
    unchanged: tuple[type[BaseException], ...] = (KeyboardInterrupt, SurgevalError, *passing)
    try:
        yield
    except unchanged:
        raise
    except BaseException as error:
        raise BadInput(f"{what}: {told(error)}") from error


def told(error: BaseException) -> str:
    r"""An exception in one line, whatever its class and message are; ours are sentences already.

    >>> told(ValueError("Empty\nmodule")), told(BadInput("found nothing, expected a name"))
    ('ValueError: Empty\\nmodule', 'found nothing, expected a name')
    """
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a stranger's class can fail at this too
        said = ""
    kind = "" if isinstance(error, SurgevalError) else type(error).__name__
    return bounded(visible(": ".join(part for part in (kind, said) if part)))


def locate(path: str, record: str | None, field: str | None, sentence: str) -> str:
    """The sentence with its place before it: path, record, field.

    >>> locate("labels.json", "frame 12", "box", "expected 4 numbers, got 3")
    'labels.json: frame 12: box: expected 4 numbers, got 3'
    """
    parts = (bounded(path, 4 * _LONGEST), bounded(record or ""), bounded(field or ""))
    return visible(": ".join([*(part for part in parts if part), bounded(sentence, 4 * _LONGEST)]))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """What stands behind a list of known names where one of them is close to the name that was given, else nothing.

    >>> did_you_mean("priorr", ["random", "prior", "oracle"]), did_you_mean("gpt", ["random", "prior", "oracle"])
    ("; did you mean 'prior'?", '')
    """
    given = str(name).casefold()
    if len(given) > _LONGEST:
        return ""
    by_letters = {other.casefold(): other for other in islice(known, _MOST_KNOWN) if len(other) <= _LONGEST}
    close = get_close_matches(given, by_letters, 1, _CLOSE)
    return f"; did you mean {by_letters[close[0]]!r}?" if close else ""


def bounded(text: str, longest: int = _LONGEST) -> str:
    """The text, its middle left out where it is too long: a file can hold a megabyte where a name was expected.

    >>> bounded("a" * 1000, 70)
    'aaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (1000 characters)'
    """
    return text if len(text) <= longest else f"{text[: longest - 60]}…{text[-40:]} ({len(text)} characters)"


def visible(text: str) -> str:
    r"""The text with control characters spelled out: names come from files, and a terminal obeys what it is sent.

    >>> visible("hook\x1b[2J\u202e")
    'hook\\x1b[2J\\u202e'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable(text: str) -> str:
    r"""The text with lone surrogates spelt out: they could not be written to any file.

    >>> printable("clip \ud800")
    'clip \\ud800'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
