"""POST /api/predict: what pictures show."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from engram.web.limits import RefusedError
from engram.web.schemas import UPLOAD_PROBLEMS, Answers, AnswerView
from engram.web.server import InjectedServer
from engram.web.uploads import form_schema, receive

router = APIRouter(tags=["look"])
T = TypeVar("T")


@router.post("/api/predict", responses=UPLOAD_PROBLEMS, openapi_extra=form_schema(labelled=False))
async def predict(request: Request, server: InjectedServer) -> Answers:
    """Say what pictures show. They are decoded in memory and dropped with the answer."""
    limits = server.limits
    upload = await receive(request, limits, limits.asked_at_once, limits.asked_pixels)
    client = request.client.host if request.client else ""
    found, model, milliseconds = await _unless_gone(request, server.predictor.predict(upload, client))
    answers = dict(zip(upload.pictures, map(AnswerView.of, found), strict=True))
    answers |= {number: AnswerView.unread(reason) for number, reason in upload.unreadable.items()}
    return Answers(
        answers=[answers[number] for number in sorted(answers)],
        milliseconds=milliseconds,
        version=model.notes.version,
        unknown_below=None if (above := model.unknown_above()) is None else -above,
    )


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work comes to; it is ended if the client hangs up, which is all that is received after the body."""
    working, gone = asyncio.create_task(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise RefusedError(408, "the client has hung up")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()
