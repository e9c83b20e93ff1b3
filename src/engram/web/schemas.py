"""The JSON that the server takes and gives, as the OpenAPI schema describes it."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from engram.store import Answer, Plan, Unreadable
from engram.web.predictor import Snapshot

Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(description="The method's score of the class, such as a cosine similarity.")]
Probability = Annotated[float, Field(ge=0, le=1, description="Among all classes known, however unlike they all are.")]

_PROBLEMS = {
    400: "The request cannot be read.",
    401: "A token is required.",
    403: "The request comes from another site, or is addressed to another host name.",
    404: "There is no such class or lesson.",
    408: "The request took too long to arrive.",
    409: "Not possible in the model's present state.",
    413: "More than the server accepts.",
    415: "Not a multipart form.",
    422: "A value in the request is invalid.",
    429: "Too much is waiting already.",
    503: "The model file cannot be read.",
}


class Problem(BaseModel):
    """What was wrong with a request, and what to do."""

    detail: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, as OpenAPI has them: these, and those that every route may give."""
    return {status: {"model": Problem, "description": _PROBLEMS[status]} for status in sorted({401, 403, *statuses})}


UPLOAD_PROBLEMS = problems(400, 408, 409, 413, 415, 422, 429, 503)
CHANGE_PROBLEMS = problems(400, 404, 408, 409, 413, 422, 503)


class Neighbour(BaseModel):
    """A class that is near another."""

    name: str
    similarity: float = Field(ge=-1.001, le=1.001, description="Cosine similarity of the two class vectors.")


class ClassView(BaseModel):
    """One class: what is kept of it, and how it is drawn (not at all if the method keeps no vector per class)."""

    name: str
    pictures: int | None = Field(description="How many it was learned from; null if the method does not count them.")
    learned: str | None = Field(description="When, in UTC.")
    increment: int | None = Field(description="0 is the base.")
    strands: list[float] = Field(description="Its figure: its vector less the mean of all classes, from -1 to 1.")
    hue: float | None = Field(description="The direction of its place on the map, in degrees.")
    x: float | None = Field(description="Its place on the map of all classes.")
    y: float | None
    neighbours: list[Neighbour] = Field(description="The classes it is most likely to be taken for.")


class ChangeView(BaseModel):
    """One change of the model."""

    when: str
    what: Literal["base", "learn", "more", "forget", "rename", "merge"]
    pictures: dict[str, int]
    seconds: float
    new_name: str | None
    bytes: int = Field(description="Size of the picture files, which are not kept; 0 if not recorded.")
    checked: int = Field(description="Held-back pictures that were predicted after this change.")
    right: int


class UnknownView(BaseModel):
    """The familiarity below which a picture is of no known class."""

    below: float
    share: Share = Field(description="Of pictures of known classes, about how many are called unknown as well.")
    rule: Literal["leave-one-out", "held back", "learned from"] = Field(
        description="The method's own rule, or calibrated on pictures that were held back or learned from."
    )
    pictures: int | None = Field(description="How many it was calibrated on; null for the method's own rule.")


class ModelView(BaseModel):
    """The model as it is served."""

    exists: bool = Field(description="False before the first lesson; everything else is empty then.")
    name: str = Field(description="The file's name.")
    version: int = Field(description="Counts the changes.")
    bytes: int
    bytes_per_class: int
    bytes_by_group: dict[str, int]
    backbone: str
    trains: bool = Field(description="Whether a network is trained: then the first lesson needs two classes.")
    can_learn: bool
    can_undo: bool
    can_export: bool = Field(description="Whether an ONNX file can be made here.")
    unknown: UnknownView | None
    map_shows: Share | None = Field(
        description="How much of the distances between classes the map keeps; null if there is no map."
    )
    classes: list[ClassView]
    history: list[ChangeView]

    @classmethod
    def of(cls, snapshot: Snapshot | None, name: str, plan: Plan, can_export: bool) -> "ModelView":
        """The view of a model; without one, that of a file `name` yet to be made as `plan` says."""
        if snapshot is None:
            return cls(
                exists=False, name=name, version=0, bytes=0, bytes_per_class=0, bytes_by_group={},
                backbone=plan.backbone_name, trains=plan.first_classes > 1, can_learn=True,
                can_undo=False, can_export=False, unknown=None, map_shows=None, classes=[], history=[],
            )  # fmt: skip
        info = snapshot.info
        return cls.model_validate(
            info  # what the view does not show is ignored
            | {
                "exists": True,
                "name": name,
                "can_undo": any(number < info["version"] for number in info["versions"]["kept"]),
                "can_export": can_export and bool(info["classes"]),
                "map_shows": None if snapshot.map is None else snapshot.map.shown,
                "classes": _classes(snapshot),
                "history": [asdict(event) for event in snapshot.model.notes.history],
            }
        )


def _classes(snapshot: Snapshot) -> list[dict[str, Any]]:
    classes = snapshot.info["classes"]
    if snapshot.map is None:
        return [{**one, "strands": [], "hue": None, "x": None, "y": None, "neighbours": []} for one in classes]
    return [
        one | vars(place) | {"neighbours": [{"name": classes[j]["name"], "similarity": s} for j, s in place.neighbours]}
        for one, place in zip(classes, snapshot.map.places, strict=True)
    ]


class Ranked(BaseModel):
    """A class, and how well a picture fits it."""

    label: str
    similarity: Score
    probability: Probability


class AnswerView(BaseModel):
    """What a picture shows: its class, or "unknown"; or why it could not be read."""

    label: str | None
    similarity: Score | None
    probability: Probability | None
    familiarity: float | None = Field(description="How much it looks like any known class; see unknown_below.")
    top: list[Ranked] = Field(description="The five best classes, best first.")
    problem: str | None

    @classmethod
    def of(cls, answer: Answer | Unreadable) -> "AnswerView":
        """The view of the store's answer."""
        if isinstance(answer, Unreadable):
            return cls.unread(answer.reason)
        return cls.model_validate(answer.as_json() | {"problem": None})

    @classmethod
    def unread(cls, reason: str) -> "AnswerView":
        """The view of a picture that could not be read."""
        return cls(label=None, similarity=None, probability=None, familiarity=None, top=[], problem=reason)


class Answers(BaseModel):
    """One answer per picture, in order."""

    answers: list[AnswerView]
    milliseconds: float = Field(description="From the request to the answers, inside the server.")
    version: int = Field(description="Of the model that answered.")
    unknown_below: float | None = Field(
        description="The familiarity below which the answer is unknown; null if the model cannot tell."
    )


class CheckView(BaseModel):
    """Predictions of held-back pictures: how many, and how many were right."""

    pictures: int
    right: int


class LearnedView(BaseModel):
    """A class that was learned: from how many pictures, and how many were held back for the check."""

    name: str
    pictures: int
    held_back: int


class MisfitView(BaseModel):
    """A picture that looks like another class than it was taught as: its number in the upload, from 1."""

    picture: int
    name: str
    answer: str = Field(description="What the other pictures say it is.")
    probability: Share


class ResultView(BaseModel):
    """The result of a lesson."""

    learned: list[LearnedView]
    misfits: list[MisfitView] = Field(description="Pictures whose label may be wrong, the surest first; 12 at most.")
    seconds: float
    new: CheckView = Field(description="Pictures of the new classes, after learning.")
    before: CheckView = Field(description="Examples of the classes known before, before learning.")
    after: CheckView = Field(description="The same examples after learning.")


class UnreadableView(BaseModel):
    """A picture that could not be read: its number in the upload, from 1."""

    picture: int
    reason: str


class LessonView(BaseModel):
    """One lesson: waiting, being learned, or how it ended."""

    model_config = ConfigDict(from_attributes=True)  # made from the queue's Lesson

    number: int
    classes: dict[str, int] = Field(description="The classes, and how many pictures of each.")
    base: bool = Field(description="Whether it makes a new model.")
    state: Literal["waiting", "learning", "done", "failed", "cancelled"]
    stage: Literal["", "wait", "look", "train", "saved", "check"]
    done: int = Field(description="Of the stage: pictures read, or epochs trained.")
    total: int
    loss: float | None
    seconds_left: float | None = Field(description="Of the stage; null if it cannot be estimated.")
    seconds: float
    message: str
    unreadable: list[UnreadableView]
    result: ResultView | None


class State(BaseModel):
    """What the event stream reports: enough to notice every change, and a restart of the server."""

    server: str = Field(description="Differs after a restart.")
    model: str = Field(description="Differs whenever the model file has changed; empty without a file.")
    lessons: list[LessonView]


class Forget(BaseModel):
    """A class to forget."""

    name: str


class Rename(BaseModel):
    """A class, and its new name."""

    name: str
    new_name: str = Field(min_length=1, description="1 to 80 printable characters; not the word for no class.")


class Undo(BaseModel):
    """The last change to take back."""

    version: int = Field(description="The version the client sees; refused if the model has changed since.")
