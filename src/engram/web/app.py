"""The server: the page, and the HTTP API behind it, which its OpenAPI schema documents (/api/openapi.json)."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse

import engram
from engram.io.model_file import ModelFileError
from engram.store import DEFAULT_BACKBONE, ModelBusyError, ModelStore, NothingToDoError, Plan
from engram.web import downloads, views
from engram.web.lessons import Lessons, stamp
from engram.web.limits import Limits, RefusedError
from engram.web.safety import Guard
from engram.web.served import Served, Snapshot
from engram.web.uploads import class_name, form_schema, receive

_PROBLEMS = {
    400: "The request cannot be read.",
    401: "The server wants a token.",
    403: "Not from this page, or not under the server's own name.",
    404: "There is none.",
    408: "It took too long to send.",
    409: "Not possible as things are.",
    413: "More than the server takes.",
    415: "Not a form.",
    422: "Something in the request is not as it should be.",
    429: "Too much is waiting already.",
    503: "The model file cannot be read.",
}
_PAGE = Path(__file__).parent / "static"
_EVERY = 0.1  # seconds between two looks for something to tell
_STILL_THERE = 15.0  # seconds of silence after which that is said


def _responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": views.Problem, "description": _PROBLEMS[status]} for status in sorted({401, 403, *statuses})
    }


_UPLOADED = _responses(400, 408, 409, 413, 415, 422, 429, 503)
_CHANGED = _responses(400, 404, 408, 409, 413, 422, 503)


def create_app(
    workshop: ModelStore,
    plan: Plan,
    *,
    bound: str = "127.0.0.1",
    token: str | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """The application around one model file, to be served on the address `bound`.

    `plan` says how to learn, a first model most of all. With a `token`, nothing is answered without it.
    """
    limits = limits or Limits()
    served, lessons = Served(workshop, limits), Lessons(workshop.path, plan, workshop.device, limits)
    changing = asyncio.Lock()  # one change without pictures at a time
    identity = secrets.token_hex(4)
    can_export = all(find_spec(name) for name in ("onnx", "onnxruntime", "onnxscript"))

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        lessons.start()
        try:
            yield
        finally:
            lessons.close()
            served.close()

    app = FastAPI(
        title="engram", version=engram.__version__, description=(__doc__ or ""), lifespan=lifespan,
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.add_middleware(Guard, bound=bound, token=token, limits=limits)
    _handle_errors(app)

    async def current() -> Snapshot | None:
        return await asyncio.to_thread(served.current)

    async def existing() -> Snapshot:
        snapshot = await current()
        if snapshot is None:
            raise RefusedError(409, "there is no model yet; teach at least two classes first")
        return snapshot

    def known(snapshot: Snapshot, name: str) -> None:
        if name not in snapshot.model.names:
            raise RefusedError(404, f"the model knows no class {name!r}")

    def shown(snapshot: Snapshot | None) -> views.ModelView:
        version = snapshot.model.notes.version if snapshot else 0
        can_undo = any(number < version for number in workshop.versions.numbers())
        return views.ModelView.of(snapshot, workshop.path.name, plan.backbone or DEFAULT_BACKBONE, can_undo, can_export)

    async def change(make: Any, *arguments: Any) -> Any:
        """A change without pictures. While a lesson holds the model, nobody else changes it."""
        if lessons.learning():
            raise RefusedError(409, "a class is being learned; wait until that is done, or stop it first")
        try:
            return await asyncio.to_thread(make, *arguments)
        except ValueError as error:  # the request is sound; the model is not such that it could be done
            raise RefusedError(409, str(error)) from error

    # --- looking -----------------------------------------------------------------------------------------------------

    @app.get("/api/model", responses=_responses(503), tags=["look"])
    async def model() -> views.ModelView:
        """What the model knows, since when, how its classes look and lie, and every change so far."""
        return shown(await current())

    @app.post("/api/predict", responses=_UPLOADED, openapi_extra=form_schema(labelled=False), tags=["look"])
    async def predict(request: Request) -> views.Answers:
        """Say what pictures show. They are decoded in memory and gone with the answer."""
        await existing()
        upload = await receive(request, limits, limits.asked_at_once)
        found, answering, milliseconds = await served.predict(list(upload.pictures.values()))
        by_number = dict(zip(upload.pictures, map(views.AnswerView.of, found), strict=True)) | {
            number: views.AnswerView(label=None, similarity=None, top=[], problem=reason)
            for number, reason in upload.unreadable.items()
        }
        ordered = [by_number[number] for number in sorted(by_number)]
        notes = answering.notes
        return views.Answers(
            answers=ordered,
            milliseconds=milliseconds,
            version=notes.version,
            unknown_below=notes.unknown.similarity if notes.unknown else None,
        )

    # --- learning ----------------------------------------------------------------------------------------------------

    @app.get("/api/lessons", responses=_responses(), tags=["teach"])
    async def list_lessons() -> list[views.LessonView]:
        """Lessons that wait, the one being learned, and those that ended lately; oldest first."""
        return [views.LessonView.of(job) for job in lessons.jobs()]

    @app.post(
        "/api/lessons", status_code=202, responses=_UPLOADED, openapi_extra=form_schema(labelled=True), tags=["teach"]
    )
    async def teach(request: Request) -> list[views.LessonView]:
        """Teach classes from pictures. A new model learns all of them in one lesson; a known one, class by class.

        A class the model knows gets more pictures. The pictures are in memory only, and gone after the lesson.
        """
        snapshot = await current()
        upload = await receive(request, limits, limits.pictures)
        if not upload.labels:
            raise RefusedError(422, "the form says nowhere what the pictures show; add fields called label")
        classes: dict[str, dict[int, Any]] = {}
        for number, picture in upload.pictures.items():
            classes.setdefault(upload.labels[number], {})[number] = picture
        if not classes:
            raise RefusedError(422, "none of these pictures can be read")
        if snapshot is None:
            if lessons.learning():
                raise RefusedError(409, "the first classes are being learned; send this when that is done")
            if len(classes) < 2:
                raise RefusedError(422, "the first lesson needs pictures of at least two classes")
            return [views.LessonView.of(lessons.submit(classes, upload.unreadable, base=True))]
        if not snapshot.info["can_learn"]:
            raise RefusedError(409, "this model was saved slim, and cannot learn; serve the full one")
        for name in classes:
            snapshot.model.as_label(name)  # a ValueError, where the classes are numbers and this is none
        submitted = []
        for name, pictures in classes.items():
            bad = {number: why for number, why in upload.unreadable.items() if upload.labels[number] == name}
            submitted.append(lessons.submit({name: pictures}, bad, base=False))
        return [views.LessonView.of(job) for job in submitted]

    @app.delete("/api/lessons/{number}", responses=_responses(404, 408, 413, 422), tags=["teach"])
    async def cancel(number: int) -> views.LessonView:
        """Take a lesson out of the queue, or stop it: the model is then as it was. One that has ended stays so."""
        return views.LessonView.of(lessons.cancel(number))

    @app.get(
        "/api/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **_responses()},
        tags=["teach"],
    )
    async def events(request: Request) -> StreamingResponse:
        """Server-sent events, whenever something has changed; the data of each is a State, as JSON."""
        return StreamingResponse(_tell(request), media_type="text/event-stream")

    def state() -> views.State:
        mark = stamp(workshop.path)
        jobs = [views.LessonView.of(job) for job in lessons.jobs()]
        return views.State(server=identity, model="-".join(map(str, mark or ())), lessons=jobs)

    async def _tell(request: Request) -> AsyncIterator[str]:
        told, silent = None, 0.0
        while not await request.is_disconnected():
            present = (lessons.revision, stamp(workshop.path))
            if present != told:
                told, silent = present, 0.0
                yield f"data: {state().model_dump_json()}\n\n"
            elif silent >= _STILL_THERE:
                silent = 0.0
                yield ": still there\n\n"
            await asyncio.sleep(_EVERY)
            silent += _EVERY

    # --- changes without pictures ------------------------------------------------------------------------------------

    @app.post("/api/forget", responses=_CHANGED, tags=["change"])
    async def forget(wanted: views.Forget) -> views.ModelView:
        """Forget a class. The version before is kept, and undo brings it back."""
        async with changing:
            known(await existing(), wanted.name)
            await change(workshop.forget, wanted.name)
            lessons.forget(wanted.name)
            return shown(await current())

    @app.post("/api/rename", responses=_CHANGED, tags=["change"])
    async def rename(wanted: views.Rename) -> views.ModelView:
        """Give a class another name."""
        async with changing:
            known(await existing(), wanted.name)
            new = class_name(wanted.new_name, limits)
            await change(workshop.rename, wanted.name, new)
            lessons.forget(wanted.name, new)
            return shown(await current())

    @app.post("/api/undo", responses=_CHANGED, tags=["change"])
    async def undo(wanted: views.Undo) -> views.ModelView:
        """Take the last change back: the version before takes the model's place, byte for byte."""
        async with changing:
            if (await existing()).model.notes.version != wanted.version:
                raise RefusedError(409, "the model has changed meanwhile; look at it again first")
            await change(workshop.undo)
            return shown(await current())

    # --- downloads and the page --------------------------------------------------------------------------------------

    @app.get("/api/model/file", response_class=StreamingResponse, tags=["download"],
             responses={**downloads.content("application/octet-stream"), **_responses(409, 503)})  # fmt: skip
    async def model_file() -> StreamingResponse:
        """The model file itself."""
        await existing()
        return downloads.file(workshop.path, workshop.path.name)

    @app.get("/api/model/onnx", response_class=Response, tags=["download"],
             responses={**downloads.content("application/octet-stream"), **_responses(409, 503)})  # fmt: skip
    async def onnx_file() -> Response:
        """The model as one ONNX graph, pictures in, similarities out. Making it takes some seconds."""
        await existing()
        if not can_export:
            raise RefusedError(409, "ONNX is not installed here; pip install 'engram[onnx]', and start again")
        return await downloads.onnx(workshop.path)

    @app.get("/api/model/report", response_class=HTMLResponse, tags=["download"], responses=_responses(409, 503))
    async def report() -> HTMLResponse:
        """All that is known about the model, as a page that stands by itself."""
        snapshot = await existing()
        page = downloads.report(shown(snapshot))
        name = f"{workshop.path.stem}-report.html"
        return HTMLResponse(page, headers={"Content-Disposition": downloads.attachment(name)})

    for path in _PAGE.iterdir():  # one route each: no name from a request is ever part of a path
        app.add_route("/" if path.name == "index.html" else f"/{path.name}", _sends(path))
    return app


def _sends(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def send(_: Request) -> Response:
        return FileResponse(path)

    return send


def _handle_errors(app: FastAPI) -> None:
    """Whatever is to be expected is one line that says what to do."""

    def answer(status: int, detail: str) -> JSONResponse:
        return JSONResponse({"detail": detail}, status)

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> JSONResponse:
        return answer(error.status, error.detail)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return answer(400, "the body is not JSON")
        return answer(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.exception_handler(ModelFileError)
    async def unreadable(_: Request, error: ModelFileError) -> JSONResponse:
        return answer(503, f"{error}; put a good copy in its place, or a previous version with engram undo")

    @app.exception_handler(ModelBusyError)
    async def busy(_: Request, error: ModelBusyError) -> JSONResponse:
        return answer(409, "another process is changing the model; try again when it is done")

    @app.exception_handler(NothingToDoError)
    async def nothing(_: Request, error: NothingToDoError) -> JSONResponse:
        return answer(409, str(error))

    @app.exception_handler(ValueError)
    async def bad(_: Request, error: ValueError) -> JSONResponse:
        return answer(422, str(error))
