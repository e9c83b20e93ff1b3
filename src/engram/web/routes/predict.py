"""POST /api/predict: what pictures show."""

from fastapi import APIRouter, Request

from engram.web.schemas import UPLOAD_PROBLEMS, Answers, AnswerView
from engram.web.server import InjectedServer
from engram.web.uploads import form_schema, receive

router = APIRouter(tags=["look"])


@router.post("/api/predict", responses=UPLOAD_PROBLEMS, openapi_extra=form_schema(labelled=False))
async def predict(request: Request, server: InjectedServer) -> Answers:
    """Say what pictures show. They are decoded in memory and dropped with the answer."""
    await server.existing()
    upload = await receive(request, server.limits, server.limits.asked_at_once)
    found, model, milliseconds = await server.predictor.predict(list(upload.pictures.values()))
    answers = dict(zip(upload.pictures, map(AnswerView.of, found), strict=True))
    answers |= {number: AnswerView.unread(reason) for number, reason in upload.unreadable.items()}
    return Answers(
        answers=[answers[number] for number in sorted(answers)],
        milliseconds=milliseconds,
        version=model.notes.version,
        unknown_below=model.unknown_below(),
    )
