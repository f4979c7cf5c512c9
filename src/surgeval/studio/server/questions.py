"""Reviewing questions: the list, a question with its pictures, a judgement, and how far people agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput
from surgeval.studio.server.served import Served, View, author_of, json_object, picture_answer, whole_number

if TYPE_CHECKING:
    from surgeval.studio.question_desk import QuestionDesk, Role

__all__ = ["JUDGING", "QUESTIONS"]

_MOST_OTHERS = 20
_FIELDS: dict[str, tuple[type, ...]] = {
    "item": (str,), "content": (str,), "verdict": (str,), "role": (str,), "author": (str,), "comment": (str,),
    "answer": (int, type(None)),
}  # fmt: skip


async def _queue(project: Served, asked: Asked) -> Response:
    desk, reviewer, role = _who(project, asked)
    each = whole_number(asked, "each")
    if each > _MOST_OTHERS:
        raise BadInput(f"each: found {each}, expected 0 (all questions) to {_MOST_OTHERS}")
    return JSONResponse(await run_in_threadpool(desk.queue, reviewer, role, each or None))


async def _item(project: Served, asked: Asked) -> Response:
    desk, reviewer, role = _who(project, asked)
    return JSONResponse(await run_in_threadpool(desk.item, reviewer, asked.query_params.get("item", ""), role))


async def _picture(project: Served, asked: Asked) -> Response:
    number = whole_number(asked, "number")
    name = asked.query_params.get("item", "")
    return picture_answer(asked, await run_in_threadpool(_desk(project).picture, name, number))


async def _agreement(project: Served, asked: Asked) -> Response:
    desk, reviewer, _ = _who(project, asked)
    return JSONResponse(await run_in_threadpool(desk.agreement, reviewer))


async def _judge(project: Served, asked: Asked) -> Response:
    body = await json_object(asked)
    for name, value in body.items():
        if isinstance(value, bool) or not isinstance(value, _FIELDS.get(name, ())):
            shown, known = str(value)[:40], ", ".join(_FIELDS)
            raise BadInput(f"judgement: {name[:40]}: found {shown!r}, expected {known} of their kinds")
    reviewer = author_of(project, body.get("author"))
    desk = _desk(project)

    def keep() -> dict[str, Any]:
        texts = (body.get(name, "") for name in ("item", "content", "verdict"))
        return desk.judge(reviewer, *texts, answer=body.get("answer"), comment=body.get("comment", ""),
                          role=_role(body.get("role", "review")))  # fmt: skip

    return JSONResponse(await run_in_threadpool(keep))


def _who(project: Served, asked: Asked) -> tuple[QuestionDesk, str, Role]:
    asks = asked.query_params
    return _desk(project), author_of(project, asks.get("author")), _role(asks.get("role", "review"))


def _role(role: str) -> Role:
    if role not in ("review", "adjudicate"):
        raise BadInput(f"role: found {role[:40]!r}, expected review or adjudicate")
    return "review" if role == "review" else "adjudicate"


def _desk(project: Served) -> QuestionDesk:
    if project.questions is None:
        raise BadInput("questions: found none in this folder, expected a set of questions")
    return project.questions


QUESTIONS: dict[str, View] = {
    "/api/questions": _queue,
    "/api/questions/item": _item,
    "/api/questions/agreement": _agreement,
    "/questions/picture": _picture,
}
JUDGING: dict[str, View] = {"/api/questions/judge": _judge}
