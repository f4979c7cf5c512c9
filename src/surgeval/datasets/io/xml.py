"""XML from strangers, walked by Python's own expat: bounded in size and depth, and without document types.

The handler of a document type raises before its first declaration is read, so no entity ever exists: neither a bomb of
nested ones nor one that names a file or an address. That is what defusedxml adds to the standard parsers, so it is not
needed. Nothing is held: elements are told as they begin and end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from xml.parsers import expat

from surgeval.datasets.io.files import bounded_size, tell_unreadable
from surgeval.files import Location, OnProblem, open_regular

MAX_DEPTH = 24  # of elements in one another; CVAT's deepest is 9
MAX_TEXT = 1 << 24  # characters of one element
_CHUNK = 1 << 18


class Elements(Protocol):
    """Who is told of the elements."""

    def start(self, tag: str, attributes: dict[str, str], line: int) -> None:
        """An element begins on this line."""
        ...

    def end(self, tag: str, text: str) -> None:
        """It ends; `text` is what stood in it since the last element began or ended."""
        ...


class _RefusedError(Exception):
    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind, self.sentence = kind, sentence


def walk_xml(path: Path, on_problem: OnProblem, elements: Elements, limit: int) -> bool:
    """Walk a file of at most `limit` bytes; False after telling what is wrong with it.

    >>> import tempfile
    >>> class Printed:
    ...     def start(self, tag, attributes, line): print(line, tag, attributes)
    ...     def end(self, tag, text): print("end", tag, repr(text))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.xml"
    ...     _ = path.write_text('<track id="3"><name>hook</name></track>')
    ...     walk_xml(path, print, Printed(), 1000)
    1 track {'id': '3'}
    1 name {}
    end name 'hook'
    end track ''
    True
    """
    place = Location(str(path), on_problem)
    try:
        with open_regular(path) as stream:
            if bounded_size(stream, place, limit) is None:
                return False
            parser = _parser(elements)
            while chunk := stream.read(_CHUNK):
                parser.Parse(chunk, False)
            parser.Parse(b"", True)
    except OSError as error:
        tell_unreadable(place, error)
    except _RefusedError as error:
        place.error(error.kind, error.sentence)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        place.error(
            "file-broken", f"found {reason} at line {error.lineno} column {error.offset + 1}, expected well-formed XML"
        )
    except (ValueError, LookupError) as error:
        place.error("file-broken", f"found {error}, expected well-formed XML")
    else:
        return True
    return False


def _parser(elements: Elements) -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth, text, length = 0, list[str](), 0

    def doctype(*_: object) -> None:
        raise _RefusedError("file-broken", "found a document type declaration, expected plain annotation XML")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, length
        depth += 1
        if depth > MAX_DEPTH:
            raise _RefusedError(
                "file-broken", f"found elements nested deeper than {MAX_DEPTH}, expected annotation XML"
            )
        text.clear()
        length = 0
        elements.start(tag, attributes, parser.CurrentLineNumber)

    def end(tag: str) -> None:
        nonlocal depth, length
        depth -= 1
        elements.end(tag, "".join(text))
        text.clear()
        length = 0

    def characters(data: str) -> None:
        nonlocal length
        length += len(data)
        if length > MAX_TEXT:
            raise _RefusedError(
                "file-broken", f"found a text of more than {MAX_TEXT} characters, expected annotation XML"
            )
        text.append(data)

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    return parser
