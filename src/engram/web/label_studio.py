"""An ML backend for Label Studio: it asks for predictions, and tells of every annotation, from which the model learns.

The requests are those of https://labelstud.io/guide/ml_create and https://labelstud.io/guide/webhook_reference.
"""

import asyncio
import base64
import contextlib
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from engram.store import Answer, ImageBytes, ModelStore, Plan, predict_images
from engram.web.label_studio_files import LabelStudioFiles
from engram.web.limits import Limits, RefusedError
from engram.web.predictor import Snapshot
from engram.web.security import Guard
from engram.web.server import Server
from engram.web.uploads import check_pictures

LIMITS = Limits(other_bytes=16_000_000, lessons=10_000)  # annotations wait in line as long as there is memory for them
TOGETHER = 16  # pictures in memory at a time
LEARNED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")

log = logging.getLogger(__name__)


class LabelledTask(BaseModel):
    """A task: its data has the address of the picture."""

    id: int | str | None = None
    data: dict[str, Any] = {}


class PredictRequest(BaseModel):
    """What Label Studio asks."""

    tasks: list[LabelledTask] = Field(max_length=1000)
    label_config: str | None = None


class SetupRequest(BaseModel):
    """A project that is being connected."""

    config: str = Field("", alias="schema")


class Annotation(BaseModel):
    """What somebody said about a task."""

    result: list[dict[str, Any]] = []
    task: int | str | None = None
    was_cancelled: bool = False


class Project(BaseModel):
    """The project of a task."""

    label_config: str = ""


class WebhookEvent(BaseModel):
    """Something that happened in Label Studio."""

    action: str
    annotation: Annotation | None = None
    task: LabelledTask | None = None
    project: Project | None = None


@dataclass(frozen=True)
class Choices:
    """The part of a labelling interface that says what a picture shows: its names, and the field with the picture."""

    from_name: str
    to_name: str
    field: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, config: str) -> "Choices":
        """From the interface's XML; refused unless it has Choices for an Image."""
        if "<!" in config.replace("<!--", ""):  # a document type may define entities, which grow
            raise RefusedError(422, "the labelling interface has a document type; leave it out")
        try:
            tree = ElementTree.fromstring(config)
        except ElementTree.ParseError as error:
            raise RefusedError(422, f"the labelling interface is not XML: {error}") from None
        images = {one.get("name"): one.get("value", "") for one in tree.iter("Image")}
        for control in tree.iter("Choices"):
            name, of = control.get("name"), control.get("toName")
            if name and of in images and images[of].startswith("$"):
                values = [one.get("alias") or one.get("value") for one in control.iter("Choice")]
                return cls(name, of or "", images[of][1:], tuple(value for value in values if value))
        raise RefusedError(422, "the labelling interface has no <Choices> for an <Image value='$…'>")

    def chosen(self, annotation: Annotation) -> str | None:
        """The one name that somebody chose; None for none or several."""
        for one in annotation.result:
            if one.get("type") == "choices" and one.get("from_name") == self.from_name:
                names = one.get("value", {}).get("choices", [])
                return names[0] if len(names) == 1 and isinstance(names[0], str) else None
        return None

    def answer(self, best: Answer | None, version: str) -> dict[str, Any]:
        """A prediction as Label Studio takes it; an empty one where there is no answer."""
        if best is None:
            return {"result": [], "score": 0.0, "model_version": version}
        names = {"from_name": self.from_name, "to_name": self.to_name, "type": "choices"}
        result = {**names, "value": {"choices": [best.label]}, "score": best.probability}
        return {"result": [result], "score": best.probability, "model_version": version}


class Backend:
    """Answers Label Studio's requests with one model file."""

    def __init__(self, store: ModelStore, plan: Plan, files: LabelStudioFiles) -> None:
        self.server, self.files = Server(store, plan, LIMITS), files

    async def predict(self, asked: PredictRequest) -> dict[str, Any]:
        """One prediction for each task, in order; empty where the picture cannot be had, or no choice is known."""
        control, snapshot = Choices.parse(asked.label_config or ""), await self.server.current()
        results = []
        for start in range(0, len(asked.tasks), TOGETHER):
            tasks = asked.tasks[start : start + TOGETHER]
            answers = await asyncio.to_thread(self._answers, control, snapshot, tasks)
            results += [control.answer(one, self.version(snapshot)) for one in answers]
        return {"results": results}

    def _answers(self, control: Choices, snapshot: Snapshot | None, tasks: list[LabelledTask]) -> list[Answer | None]:
        if snapshot is None:
            return [None] * len(tasks)
        model = snapshot.model
        known = {*model.names, *model.built_in}
        among = [name for name in control.values if name in known] if control.values else None
        if not known or among == []:
            return [None] * len(tasks)
        pictures = {at: found for at, task in enumerate(tasks) if (found := self._picture(control, task)) is not None}
        answers = predict_images(model, list(pictures.values()), top=1, among=among, device=self.server.store.device)
        by_task = dict(zip(pictures, answers, strict=True))
        return [one if isinstance(one := by_task.get(at), Answer) else None for at in range(len(tasks))]

    def _picture(self, control: Choices, task: LabelledTask) -> ImageBytes | None:
        try:
            content = self.files.read(str(task.data.get(control.field, "")))
            return check_pictures([], [content], LIMITS, LIMITS.pixels).pictures.get(1)
        except (ValueError, OSError, RefusedError) as error:
            log.warning("task %s: %s", task.id, getattr(error, "detail", error))
            return None

    async def learn(self, event: WebhookEvent) -> str:
        """Learn from an annotation, in its turn; says what becomes of it."""
        if event.action not in LEARNED or event.annotation is None or event.project is None:
            return "nothing to learn: only annotations that are created or updated are"
        control = Choices.parse(event.project.label_config)
        name = None if event.annotation.was_cancelled else control.chosen(event.annotation)
        if name is None:
            return "nothing to learn: not one choice was made"
        number = event.annotation.task if event.task is None else event.task.id
        try:
            content = await asyncio.to_thread(self._taught_picture, control, event.task, number)
            checked = await asyncio.to_thread(check_pictures, [name], [content], LIMITS, LIMITS.pixels)
        except (ValueError, OSError) as error:
            raise RefusedError(422, f"task {number}: {error}") from None
        if not checked.pictures:
            raise RefusedError(422, f"task {number}: {checked.unreadable[1]}")
        snapshot = await self.server.current()
        pictures = {checked.labels[1]: checked.pictures}
        lesson = self.server.queue.submit(pictures, {}, snapshot is None, self.server.plan)
        return f"learning, number {lesson.number}"

    def _taught_picture(self, control: Choices, task: LabelledTask | None, number: int | str | None) -> ImageBytes:
        if task is None:  # older versions of Label Studio do not send it along
            task = LabelledTask(**self.files.task(number))
        return self.files.read(str(task.data.get(control.field, "")))

    def version(self, snapshot: Snapshot | None) -> str:
        """What Label Studio files predictions under."""
        number = snapshot.model.notes.version if snapshot else 0
        return f"{self.server.store.path.stem}-{number}"


def create_backend(
    store: ModelStore,
    plan: Plan,
    files: LabelStudioFiles,
    *,
    bound: str = "127.0.0.1",
    login: tuple[str, str] | None = None,
) -> FastAPI:
    """The application, to be served on the address `bound`; with a `login`, every request has to carry it."""
    backend = Backend(store, plan, files)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        backend.server.queue.start()
        try:
            yield
        finally:
            backend.server.close()

    app = FastAPI(title="engram for Label Studio", lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.server = backend.server

    @app.middleware("http")
    async def ask_for_login(request: Request, pass_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if login is not None and not _same(request.headers.get("authorization", ""), login):
            return JSONResponse({"detail": "a login is needed"}, 401, {"WWW-Authenticate": "Basic"})
        return await pass_on(request)

    @app.get("/")
    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_class": "engram"}

    @app.post("/setup")
    async def setup(asked: SetupRequest) -> dict[str, str]:
        Choices.parse(asked.config)
        return {"model_version": backend.version(await backend.server.current())}

    @app.post("/predict")
    async def predict(asked: PredictRequest) -> dict[str, Any]:
        return await backend.predict(asked)

    @app.post("/webhook", status_code=201)
    async def webhook(event: WebhookEvent) -> dict[str, str]:
        return {"status": "ok", "result": await backend.learn(event)}

    app.add_middleware(Guard, bound=bound, token=None, limits=LIMITS)
    return app


def _same(header: str, login: tuple[str, str]) -> bool:
    """Whether a request carries this user and password, as HTTP's basic authentication has them."""
    expected = base64.b64encode(":".join(login).encode()).decode()
    return hmac.compare_digest(header.encode(), f"Basic {expected}".encode())
