"""Opening judges by name for one scoring, and what their tokens cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from surgeval.errors import BadInput
from surgeval.protocols.focus.scoring.judge import Judging
from surgeval.qa import Panel, Price, TiePolicy, VerdictCache, open_judges, parse_judge, public_name

if TYPE_CHECKING:
    from surgeval.qa import Chat

__all__ = ["Judges", "Prices", "check_judges", "open_panel", "read_prices"]

Judges: TypeAlias = Judging | Sequence[str] | str
Prices: TypeAlias = Mapping[str, Price] | Sequence[str]


@contextmanager
def open_panel(
    judge: Judges | None,
    *,
    cache: str | Path | None = None,
    tie: TiePolicy = "judge_error",
    quorum: int | None = None,
    ask_all: bool = False,
    compat: str | None = None,
) -> Iterator[Judging | None]:
    """The panel of the named judges, whose verdicts are kept in the folder `cache`; a judge that is open already stays.

    >>> with open_panel("exact") as panel:
    ...     [judge.name for judge in panel.judges]
    ['exact']
    """
    specs = _specs(judge)
    if specs is None:
        yield None if isinstance(judge, str | Sequence) else judge
        return
    kinds = {parse_judge(spec).kind for spec in specs}
    judges = open_judges(specs, _open_chat, original=compat is not None)
    with ExitStack() as stack:
        asked = cache is not None and kinds - {"table", "exact"}
        stored = stack.enter_context(VerdictCache(Path(cache))) if asked and cache is not None else None
        yield Panel(judges, tie=tie, quorum=quorum, cache=stored, short_circuit=not ask_all, compat=compat)


def check_judges(judge: Judges | None) -> None:
    """Refuse names that would fail once the answers are there: an unknown kind, a file of verdicts that is not there.

    >>> check_judges("table:no/such/file.json")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/file.json: no such file
    """
    specs = _specs(judge) or ()
    kinds = [parse_judge(spec).kind for spec in specs]
    open_judges([spec for spec, kind in zip(specs, kinds, strict=True) if kind == "table"])


def read_prices(price: Prices | None, judges: Sequence[str]) -> dict[str, Price]:
    """What the tokens of each judge cost, from `JUDGE=PROMPT,COMPLETION` (per million tokens).

    >>> read_prices(["exact=1,2"], ["exact"])["exact"].completion
    2.0
    """
    if price is None or isinstance(price, Mapping):
        return dict(price or {})
    prices: dict[str, Price] = {}
    for text in price:
        name, _, numbers = text.rpartition("=")
        name = public_name(name)  # as reports call the judge
        try:
            prompt, completion = (float(part) for part in numbers.split(","))
        except ValueError:
            prompt = completion = -1.0
        if not (0 <= prompt < float("inf") and 0 <= completion < float("inf")):
            raise BadInput(f"price of {name!r}: write JUDGE=PROMPT,COMPLETION, two costs per million tokens.")
        if name not in judges:
            raise BadInput(f"price: no judge is called {name!r}. The judges: {', '.join(judges) or 'none'}.")
        prices[name] = Price(prompt, completion)
    return prices


def _specs(judge: Judges | None) -> Sequence[str] | None:
    if isinstance(judge, str):
        return [judge]
    return judge if isinstance(judge, Sequence) and judge else None


def _open_chat(spec: str) -> Chat:
    from surgeval.models.chat import open_chat

    return open_chat(spec)
