"""The tables, one layout for SQLite and PostgreSQL.

`operations` is append-only and enough to rebuild everything else (`replay`). Each table of state has a twin ending in
`_before`: the rows as they were before an operation touched them, which makes every inverse exact and undo one
statement per table. A row's `version` is the last operation that touched it; `made_by` the one whose effect it shows:
undoing an operation puts the former `made_by` back, and only what still shows an operation's effect can be undone.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text

__all__ = [
    "ANSWERS", "BEFORE", "DECISIONS", "FLAGS", "FRAMES", "HEAD", "INSTANCES", "LABELS", "LAYOUT", "METADATA",
    "OPERATIONS", "REVIEWS", "ROUNDS", "SETTINGS", "SPANS", "STATE", "STUDIES", "VIDEOS", "keys",
]  # fmt: skip

LAYOUT = 2  # of these tables. An older file gets the tables that it lacks; a newer one is refused
METADATA = MetaData()
# Compared byte by byte everywhere: the order of a server's language is not the order of Python.
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")


def _text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, _TEXT, nullable=null)


def _state(
    name: str, keys: tuple[Column[str] | Column[int], ...], *columns: Column[str] | Column[int] | Column[float]
) -> Table:
    for column in keys:
        column.primary_key = True
    return Table(
        name,
        METADATA,
        *keys,
        *columns,
        Column("alive", Boolean, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("made_by", BigInteger, nullable=False),
    )


def _whole(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null, autoincrement=False)


def _real(name: str, *, null: bool = False) -> Column[float]:
    return Column(name, Double, nullable=null)


def _number(name: str) -> Column[int]:
    """What tells the rows apart, given by us."""
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


def _unique(name: str) -> Column[str]:
    return Column(name, _TEXT, nullable=False, unique=True)


HEAD = Table(
    "head",
    METADATA,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("layout", Integer, nullable=False),
)

OPERATIONS = Table(
    "operations",
    METADATA,
    _number("seq"),
    _unique("id"),
    _text("author"),
    _text("session"),
    _real("time"),
    _text("kind"),
    _text("payload"),
    _text("inverse"),  # which tables' `_before` rows restore what was there
    _whole("base"),
    _whole("target", null=True),  # the operation that an undo or redo is about
    _text("outcome"),
)
Index("operations_author", OPERATIONS.c.author, OPERATIONS.c.seq)
Index("operations_target", OPERATIONS.c.target)

# Combinations of values occur by the thousand: each is stored once, and rows point to it.
LABELS = Table("labels", METADATA, _number("id"), _unique("digest"), _text("text"))

VIDEOS = _state(
    "videos", (_text("id"),),
    _text("name"), _real("fps", null=True), _whole("width"), _whole("height"), _text("extra", null=True),
)  # fmt: skip
FRAMES = _state(
    "frames", (_text("video"), _whole("frame")),
    _text("name"), _real("time", null=True), _whole("own"), _whole("label"),
)  # fmt: skip
INSTANCES = _state(
    "instances", (_text("id"),),
    _text("video"), _whole("frame"), _text("grp"), _text("name"), _whole("track", null=True),
    _text("track_by", null=True), _real("x"), _real("y"), _real("w"), _real("h"), _text("polygons", null=True),
    _whole("own"), _whole("label"), _text("source"), _real("score", null=True), _text("state"), _text("review"),
    _text("extra", null=True),
)  # fmt: skip
SPANS = _state(
    "spans", (_text("id"),),
    _text("video"), _text("tracks"), _text("vals"), _text("written"), _whole("first"), _whole("last"),
    _whole("stamp"), _text("author"), _real("time"), _text("source"),
)  # fmt: skip
FLAGS = _state("flags", (_text("video"), _whole("frame"), _text("reason")), _text("note"), _text("author"))
REVIEWS = _state("reviews", (_text("video"), _whole("frame"), _text("reviewer"), _whole("round")), _text("mark"))
ROUNDS = _state("rounds", (_whole("number"),), _text("title"), _text("reviewers"), _text("author"), _real("time"))
# The agreement study: what annotators say without seeing the labels is kept apart from the labels.
STUDIES = _state(
    "studies", (_text("id"),),
    _text("title"), _text("grp"), _text("annotators"), _text("segments"), _whole("seed"),
    _text("author"), _real("time"),
)  # fmt: skip
ANSWERS = _state("answers", (_text("study"), _text("annotator"), _text("instance")), _text("name"), _text("vals"))
DECISIONS = _state(
    "decisions", (_text("study"), _text("instance"), _whole("number")),
    _text("choice"), _text("annotator"), _text("name_before"), _text("vals_before"), _text("name_after"),
    _text("vals_after"), _text("note"), _text("author"), _real("time"),
)  # fmt: skip
SETTINGS = _state("settings", (_text("owner"), _text("key")), _text("value"))

STATE = (VIDEOS, FRAMES, INSTANCES, SPANS, FLAGS, REVIEWS, ROUNDS, STUDIES, ANSWERS, DECISIONS, SETTINGS)

Index("instances_frame", INSTANCES.c.video, INSTANCES.c.frame)
Index("instances_track", INSTANCES.c.video, INSTANCES.c.grp, INSTANCES.c.name, INSTANCES.c.track, INSTANCES.c.frame)
Index("instances_label", INSTANCES.c.grp, INSTANCES.c.name, INSTANCES.c.label, INSTANCES.c.alive)
Index("frames_name", FRAMES.c.name)
Index("spans_video", SPANS.c.video)


def keys(table: Table) -> tuple[str, ...]:
    """The names of a table's key columns."""
    return tuple(column.name for column in table.primary_key.columns)


def _before(table: Table) -> Table:
    copies = [
        Column(column.name, column.type, nullable=column.nullable, primary_key=column.primary_key, autoincrement=False)
        for column in table.columns
    ]
    return Table(
        f"{table.name}_before",
        METADATA,
        _number("seq"),
        *copies,
    )


BEFORE = {table.name: _before(table) for table in STATE}
