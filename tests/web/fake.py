"""A server that serves the real page and answers as it is told: for what the page does, whatever the model is like."""

import asyncio
import json
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from engram.web.routes import page
from engram.web.schemas import Confusion, LessonView, ModelView
from engram.web.security import HEADERS

WORDS = (
    "wren",
    "robin",
    "heron",
    "kestrel",
    "bluethroat",
    "goldcrest",
    "dunnock",
    "siskin",
    "great spotted woodpecker",
)


def health(share: float, state: str = "good", pictures: int = 24, **taken_for: float) -> dict[str, Any]:
    """How a class is doing."""
    taken = [{"name": name, "share": part} for name, part in taken_for.items()]
    return {"share": share, "pictures": pictures, "state": state, "taken_for": taken}


def class_names(n: int) -> list[str]:
    return [WORDS[i % len(WORDS)] + (f" {i // len(WORDS)}" if i >= len(WORDS) else "") for i in range(n)]


def model_view(names: list[str], **fields: Any) -> dict[str, Any]:
    """A model that knows these classes, as GET /api/model tells it."""
    rng = np.random.default_rng(len(names))
    places = rng.normal(size=(len(names), 2))
    classes = []
    for i, name in enumerate(names):
        near = np.argsort(((places - places[i]) ** 2).sum(1))[1:4]
        neighbours = [{"name": names[j], "similarity": 0.9 - 0.1 * k} for k, j in enumerate(near)]
        classes.append({
            "name": name, "pictures": 24, "learned": "2026-05-03T10:20:30+00:00", "increment": i, "hue": (i * 47) % 360,
            "neighbours": neighbours, "health": health(0.96, wren=0.04) if i else health(1.0),
        })  # fmt: skip
    change = {"when": "2026-05-03T10:20:30+00:00", "what": "learn", "pictures": {names[-1]: 24} if names else {},
              "seconds": 2.0, "new_name": None, "bytes": 3_000_000, "accuracy": None, "share": None}  # fmt: skip
    return {
        "exists": bool(names), "name": "birds.engram", "version": 3, "bytes": 6_000_000,
        "bytes_per_class": 5000, "bytes_by_group": {},
        "backbone": "efficientnet_lite0:joined@224", "trains": False, "can_learn": True, "can_undo": True,
        "can_redo": False, "can_export": True, "problem": None,
        "unknown": {"below": 0.1, "share": 0.05},
        "accuracy": {"share": 0.94, "pictures": 24 * len(names), "classes": len(names)},
        "classes": classes, "built_in": None, "history": [change],
    } | fields  # fmt: skip


def lesson_view(number: int, classes: dict[str, int], state: str = "learning", **fields: Any) -> dict[str, Any]:
    """A lesson, as the server tells it."""
    return {
        "number": number, "classes": classes, "base": False, "state": state, "stage": "look", "done": 0, "total": 0,
        "current": "", "loss": None, "seconds_left": None, "seconds": 0.0, "message": "", "unreadable": [],
        "result": None,
    } | fields  # fmt: skip


def result_view(classes: dict[str, int], **fields: Any) -> dict[str, Any]:
    """What came of a lesson."""
    learned = [{"name": name, "pictures": n} for name, n in classes.items()]
    return {"learned": learned, "misfits": [], "seconds": 2.0} | fields


def answer_view(label: str | None, *top: str) -> dict[str, Any]:
    """An answer about a picture; `top` are the best classes."""
    ranked = [{"label": name, "similarity": 0.9, "probability": 0.9 / 4**i} for i, name in enumerate(top)]
    return {"label": label, "similarity": 0.9, "probability": 0.9, "familiarity": 0.5, "top": ranked, "problem": None}


class Fake:
    """The state that is told, and what was asked. `replies` by "METHOD path" come before the usual ones, each once."""

    def __init__(self) -> None:
        self.address = ""
        self.reset()

    def reset(self) -> None:
        self.server, self.stamp = uuid.uuid4().hex, 0
        self.model = model_view([])
        self.lessons: list[dict[str, Any]] = []
        self.answer = answer_view("wren", "wren", "robin", "heron")
        self.confusion: dict[str, Any] = {}
        self.replies: dict[str, tuple[int, Any]] = {}
        self.always: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, Any]] = []
        self.file_names: set[str | None] = set()  # that were sent
        self.streams: list[Request] = []  # that are open
        self.held = threading.Event()  # cleared, it holds up the ONNX file
        self.held.set()

    def know(self, names: list[str], **fields: Any) -> None:
        """Serve another model."""
        self.model, self.stamp = model_view(names, **fields), self.stamp + 1

    def bodies(self, call: str) -> list[Any]:
        """What was sent with the calls of that kind."""
        return [body for name, body in self.asked if name == call]

    def state(self) -> dict[str, Any]:
        return {"server": self.server, "model": str(self.stamp), "lessons": self.lessons}


def create_fake(fake: Fake) -> FastAPI:
    app = FastAPI()
    app.include_router(page.router)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Any) -> Response:
        response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.get("/api/events")
    async def events(request: Request) -> StreamingResponse:
        async def tell() -> AsyncIterator[str]:
            streams, told = fake.streams, None
            streams.append(request)
            try:
                while not await request.is_disconnected():
                    if told != (told := json.dumps(fake.state())):
                        yield f"data: {told}\n\n"
                    await asyncio.sleep(0.03)
            finally:
                streams.remove(request)

        return StreamingResponse(tell(), media_type="text/event-stream")

    @app.api_route("/api/{path:path}", methods=["GET", "POST", "DELETE"])
    async def reply(path: str, request: Request) -> Response:
        call, body = f"{request.method} {path}", None
        if request.headers.get("content-type", "").startswith("multipart"):
            form = await request.form(max_files=2000, max_fields=4000)
            body = {
                key: [one if isinstance(one, str) else await one.read() for one in form.getlist(key)] for key in form
            }
            fake.file_names |= {one.filename for one in form.getlist("picture") if not isinstance(one, str)}
        elif request.method == "POST":
            body = await request.json()
        fake.asked.append((call, body))
        if call in fake.replies or call in fake.always:
            status, content = fake.replies.pop(call, None) or fake.always[call]
            return JSONResponse(content, status)
        match call:
            case "GET state":
                return JSONResponse(fake.state())
            case "GET confusion":
                return JSONResponse(Confusion.model_validate(fake.confusion).model_dump())
            case "POST predict":
                return JSONResponse(
                    {"answers": [fake.answer], "milliseconds": 21.0, "version": 3, "unknown_below": 0.1}
                )
            case "POST lessons":
                labels = body["label"]
                lesson = lesson_view(len(fake.lessons) + 1, {name: labels.count(name) for name in labels}, "waiting")
                fake.lessons.append(lesson)
                return JSONResponse(LessonView.model_validate(lesson).model_dump(), 202)
            case "GET model/onnx":
                await asyncio.to_thread(fake.held.wait, 30)
                return Response(b"onnx", headers={"Content-Disposition": 'attachment; filename="birds.onnx"'})
            case "POST unknown":
                fake.model["unknown"]["share"] = body["share"]
        return JSONResponse(ModelView.model_validate(fake.model).model_dump())  # the page gets what the API promises

    return app


class FakeServer:
    """Runs the fake on a free port, in a thread."""

    def __init__(self) -> None:
        self.fake = Fake()
        self.server = uvicorn.Server(
            uvicorn.Config(create_fake(self.fake), port=0, log_level="warning", timeout_graceful_shutdown=1)
        )
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            self.thread.join(0.01)
        self.fake.address = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(5)
