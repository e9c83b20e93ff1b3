"""The JSON that the server takes and gives, as the OpenAPI schema describes it."""

import hashlib
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from engram.store import Answer, ClassHealth, Health, Merger, Plan, Unreadable, What
from engram.web.predictor import Snapshot

Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(description="The method's score of the class, such as a cosine similarity.")]
Probability = Annotated[float, Field(ge=0, le=1, description="Among all classes known, however unlike they all are.")]

_TAKEN_FOR = 3
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
    similar: dict[str, str] | None = Field(None, description="Of a lesson: names that look like slips, and which of.")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, as OpenAPI has them: these, and those that every route may give."""
    return {status: {"model": Problem, "description": _PROBLEMS[status]} for status in sorted({401, 403, *statuses})}


UPLOAD_PROBLEMS = problems(400, 408, 409, 413, 415, 422, 429, 503)
CHANGE_PROBLEMS = problems(400, 404, 408, 409, 413, 422, 503)


class Neighbour(BaseModel):
    """A class that is near another."""

    name: str
    similarity: float = Field(ge=-1.001, le=1.001, description="Cosine similarity of the two class vectors.")


class TakenFor(BaseModel):
    """A class that pictures of another are taken for."""

    name: str
    share: Share


class HealthView(BaseModel):
    """How a class is doing, by leave-one-out: each of its pictures judged as if it had not been learned."""

    share: Share = Field(description="Of its pictures, how many are answered right.")
    pictures: int = Field(description="How many pictures that is told from.")
    state: Literal["good", "weak", "lost"]
    taken_for: list[TakenFor] = Field(description="Three at most, the most frequent first.")

    @classmethod
    def of(cls, health: ClassHealth) -> "HealthView":
        """The view of a class's health."""
        taken = [TakenFor(name=name, share=share) for name, share in list(health.taken_for.items())[:_TAKEN_FOR]]
        return cls(share=health.share, pictures=health.pictures, state=health.state, taken_for=taken)


class AccuracyView(BaseModel):
    """The share of right answers, as the mean over all classes."""

    share: Share
    pictures: int
    classes: int


class ClassView(BaseModel):
    """One class: what is kept of it, how it is doing, and which are like it (none without a vector per class)."""

    name: str
    pictures: int | None = Field(description="How many it was learned from; null if the method does not count them.")
    learned: str | None = Field(description="When, in UTC.")
    increment: int | None = Field(description="0 is the base.")
    health: HealthView | None = Field(description="Null if that cannot be told.")
    hue: float = Field(description="Its colour, in degrees; it follows from the name.")
    neighbours: list[Neighbour] = Field(description="The classes it is most likely to be taken for.")


class ChangeView(BaseModel):
    """One change of the model."""

    when: str
    what: What
    pictures: dict[str, int]
    seconds: float
    new_name: str | None
    bytes: int = Field(description="Size of the picture files, which are not kept; 0 if not recorded.")
    accuracy: Share | None = Field(description="Of all classes after the change; null if it cannot be told of each.")
    share: Share | None = Field(description="Of known pictures, how many may be refused from then on.")


class UnknownView(BaseModel):
    """The familiarity below which a picture is of no known class."""

    below: float
    share: Share = Field(description="Of pictures of known classes, about how many are called unknown as well.")


class BuiltInView(BaseModel):
    """Classes that nobody taught: the backbone's own head knows them."""

    classes: int
    licence: str


class ModelView(BaseModel):
    """The model as it is served."""

    exists: bool = Field(description="False before the first lesson; everything else is empty then.")
    problem: str | None = Field(description="Why the file cannot be read; everything else is empty then.")
    name: str = Field(description="The file's name.")
    version: int = Field(description="Counts the changes.")
    bytes: int
    bytes_per_class: int
    bytes_by_group: dict[str, int]
    backbone: str
    trains: bool = Field(description="Whether a network is trained: then the first lesson needs two classes.")
    can_learn: bool
    can_undo: bool
    can_redo: bool
    accuracy: AccuracyView | None = Field(description="Null if it cannot be told of every class.")
    can_export: bool = Field(description="Whether there is something to make an ONNX file of.")
    unknown: UnknownView | None = Field(description="Null if the method is not calibrated, or knows too little yet.")
    classes: list[ClassView]
    built_in: BuiltInView | None = Field(description="Null without such classes.")
    history: list[ChangeView]

    @classmethod
    def of_nothing(cls, name: str, plan: Plan, problem: str | None) -> "ModelView":
        """The view of a file `name` yet to be made as `plan` says, or that cannot be read because of a `problem`."""
        return cls(
            exists=problem is not None, problem=problem, name=name, version=0, bytes=0, bytes_per_class=0,
            bytes_by_group={}, backbone=plan.encoder_name, trains=plan.first_classes > 1, can_learn=problem is None,
            can_undo=False, can_redo=False, can_export=False, accuracy=None, unknown=None, classes=[], built_in=None,
            history=[],
        )  # fmt: skip

    @classmethod
    def of(cls, snapshot: Snapshot, health: Health, name: str) -> "ModelView":
        """The view of a model."""
        info = snapshot.info
        return cls.model_validate(
            info  # what the view does not show is ignored
            | {
                "exists": True,
                "problem": None,
                "name": name,
                "can_undo": any(number < info["version"] for number in info["versions"]["kept"]),
                "can_redo": any(number > info["version"] for number in info["versions"]["kept"]),
                "can_export": bool(info["classes"]),
                "accuracy": _accuracy(health),
                "classes": _classes(snapshot, health),
                "history": [asdict(event) for event in snapshot.model.notes.history],
            }
        )


def _accuracy(health: Health) -> AccuracyView | None:
    share = health.overall()
    if share is None:
        return None
    pictures = sum(one.pictures for one in health.classes.values() if one)
    return AccuracyView(share=share, pictures=pictures, classes=len(health.classes))


def _classes(snapshot: Snapshot, health: Health) -> list[dict[str, Any]]:
    classes = snapshot.info["classes"]
    views = []
    for i, one in enumerate(classes):
        name, told = one["name"], health.classes.get(one["name"])
        near = [{"name": classes[j]["name"], "similarity": s} for j, s in snapshot.neighbours[i]]
        shown = {"neighbours": near, "hue": _hue(name), "health": told and HealthView.of(told)}
        views.append(one | shown)
    return views


def _hue(name: str) -> float:
    """The colour of a class, in degrees: it follows from its name, and so stays whatever else is learned."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=2).digest()) % 360


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


class LearnedView(BaseModel):
    """A class that was learned, and from how many pictures."""

    name: str
    pictures: int


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
    stage: Literal["", "wait", "look", "train", "saved"]
    current: str = Field(description="The class at hand; empty if it is all of them.")
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
    model: str = Field(description="Differs whenever there is something new to see at /api/model.")
    lessons: list[LessonView]


class ConfusionRow(BaseModel):
    """What the pictures of one class were taken for."""

    name: str
    pictures: int
    answers: dict[str, float] = Field(description="The share of each answer.")


class Confusion(BaseModel):
    """What pictures of each class are taken for."""

    names: list[str]
    rows: list[ConfusionRow]

    @classmethod
    def of(cls, health: Health) -> "Confusion":
        """The table; rows of which nothing can be told are left out."""
        rows = [
            ConfusionRow(name=name, pictures=one.pictures, answers={name: one.share} | one.taken_for)
            for name, one in health.classes.items()
            if one is not None
        ]
        return cls(names=list(health.classes), rows=rows)


class MergeView(BaseModel):
    """What adding another model changes, or would change."""

    added: dict[str, int] = Field(description="New classes, and how many pictures each was learned from.")
    joined: dict[str, int] = Field(description="Classes that both know, and how many pictures the other brings.")
    twice: list[str] = Field(description="Classes that both learned from the same pictures, which then count double.")
    model: ModelView | None = Field(description="The model after it; null if nothing was changed.")

    @classmethod
    def of(cls, merger: Merger, model: ModelView | None) -> "MergeView":
        """The view of a merge."""
        twice = list(dict.fromkeys(name for name, *_ in merger.twice))
        return cls(added=merger.added, joined=merger.joined, twice=twice, model=model)


class Forget(BaseModel):
    """A class to forget."""

    name: str


class Rename(BaseModel):
    """A class, and its new name."""

    name: str
    new_name: str = Field(min_length=1, description="1 to 80 printable characters; not the word for no class.")


class Undo(BaseModel):
    """A change to take back, or to make again."""

    version: int = Field(description="The version the change led to, or the one seen now; refused unless it is newest.")


class Refuse(BaseModel):
    """How much may be called unknown."""

    share: float = Field(ge=0.005, le=0.5, description="Of pictures of known classes, how many may be.")
