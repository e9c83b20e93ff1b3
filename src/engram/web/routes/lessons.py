"""/api/lessons and /api/events: teaching, and following what comes of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from engram.names import similar_name
from engram.store import ImageBytes
from engram.web.limits import RefusedError
from engram.web.schemas import UPLOAD_PROBLEMS, LessonView, State, problems
from engram.web.server import InjectedServer, Server
from engram.web.uploads import form_schema, receive

router = APIRouter(tags=["teach"])

_EVENT_STREAM: dict[int | str, Any] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
_POLL = 0.1  # seconds between two looks for something to report
_KEEP_ALIVE = 15.0  # seconds of silence after which a comment is sent


@router.get("/api/lessons", responses=problems())
async def list_lessons(server: InjectedServer) -> list[LessonView]:
    """Lessons that wait, the one being learned, and those that ended lately; oldest first."""
    return [LessonView.model_validate(lesson) for lesson in server.queue.lessons()]


@router.post(
    "/api/lessons",
    status_code=202,
    response_model=LessonView,
    responses=UPLOAD_PROBLEMS,
    openapi_extra=form_schema(labelled=True),
)
async def teach(request: Request, server: InjectedServer) -> LessonView | JSONResponse:
    """Teach classes from pictures: one lesson, however many classes there are, and all of them or none.

    A known class gets more pictures. The pictures are held in memory only, and dropped after the lesson. A name that
    differs from another only in case or form is likely a slip: it is answered 409, with both names, unless `distinct`.
    """
    snapshot = await server.current()
    upload = await receive(request, server.limits, server.limits.pictures)
    if not upload.labels:
        raise RefusedError(422, "the form says nowhere what the pictures show; add fields called label")
    classes: dict[str, dict[int, ImageBytes]] = {}
    for number, picture in upload.pictures.items():
        classes.setdefault(upload.labels[number], {})[number] = picture
    if not classes:
        raise RefusedError(422, "none of these pictures can be read")
    if snapshot is None:
        if server.queue.busy():
            raise RefusedError(409, "the first classes are being learned; send this when that is done")
        if len(classes) < server.plan.first_classes:
            raise RefusedError(422, "the first lesson needs pictures of at least two classes")
    else:
        if not snapshot.info["can_learn"]:
            raise RefusedError(409, "this model was saved slim, and cannot learn; serve the full one")
        for name in classes:
            snapshot.model.as_label(name)  # a ValueError if the classes are numbers and this name is none
    known = [*(snapshot.model.names if snapshot else ()), *classes]
    similar = {name: other for name in classes if (other := similar_name(name, known))}
    if similar and not upload.distinct:
        name, other = next(iter(similar.items()))
        detail = f"{name!r} differs from {other!r} only in how it is written; send distinct=true if it is another class"
        return JSONResponse({"detail": detail, "similar": similar}, 409)
    return LessonView.model_validate(server.queue.submit(classes, upload.unreadable, snapshot is None, server.plan))


@router.delete("/api/lessons/{number}", responses=problems(404, 408, 413, 422))
async def cancel(number: int, server: InjectedServer) -> LessonView:
    """Take a lesson out of the queue, or stop it and leave the model as it was. A lesson that has ended stays so."""
    return LessonView.model_validate(server.queue.cancel(number))


@router.get("/api/events", response_class=StreamingResponse, responses={**_EVENT_STREAM, **problems()})
async def events(request: Request, server: InjectedServer) -> StreamingResponse:
    """Server-sent events, one whenever something has changed; the data of each is a State, as JSON."""
    return StreamingResponse(_report_changes(request, server), media_type="text/event-stream")


@router.get("/api/state", responses=problems())
async def state(server: InjectedServer) -> State:
    """What the event stream reports, for whoever would rather ask now and then."""
    return server.state()


async def _report_changes(request: Request, server: Server) -> AsyncIterator[str]:
    reported, silence = None, 0.0
    while not (server.closing or await request.is_disconnected()):
        revision = server.revision()
        if revision != reported:
            reported, silence = revision, 0.0
            yield f"data: {server.state().model_dump_json()}\n\n"
        elif silence >= _KEEP_ALIVE:
            silence = 0.0
            yield ": still there\n\n"
        await asyncio.sleep(_POLL)
        silence += _POLL
