"""What the server says, as the OpenAPI schema describes it."""

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from engram.store import Answer, Unreadable
from engram.web.lessons import Job
from engram.web.served import Snapshot

Similarity = Annotated[float, Field(ge=-1.001, le=1.001, description="Cosine similarity to the class mean.")]
Share = Annotated[float, Field(ge=0, le=1)]


class Problem(BaseModel):
    """What was wrong with a request, and what to do."""

    detail: str


class Neighbour(BaseModel):
    """A class that is near another."""

    name: str
    similarity: Similarity


class ClassView(BaseModel):
    """One class: what is kept of it, and how that looks."""

    name: str
    pictures: int = Field(description="How many pictures its mean stands for.")
    learned: str | None = Field(description="When, in UTC.")
    increment: int | None = Field(description="0 is the base.")
    strands: list[float] = Field(description="A figure made of its mean, less the middle of all: -1 to 1.")
    hue: float = Field(description="Of its direction on the map, in degrees.")
    x: float = Field(description="Its place on the map of all classes.")
    y: float
    neighbours: list[Neighbour] = Field(description="The classes it is most likely to be taken for.")


class ChangeView(BaseModel):
    """One change of the model."""

    when: str
    what: Literal["base", "learn", "more", "forget", "rename"]
    pictures: dict[str, int]
    seconds: float
    new_name: str | None
    bytes: int = Field(description="Of the picture files that were looked at, and not kept; 0 if not recorded.")
    checked: int = Field(description="Pictures that were held back, asked about after this change.")
    right: int


class UnknownView(BaseModel):
    """Below which similarity a picture is of no known class."""

    similarity: float
    share: Share
    pictures: int
    held_back: bool


class ModelView(BaseModel):
    """The model as it is served."""

    exists: bool = Field(description="False before the first lesson: then everything else is empty.")
    name: str = Field(description="What the file is called.")
    version: int = Field(description="Counts the changes.")
    bytes: int
    bytes_per_class: int
    bytes_by_group: dict[str, int]
    backbone: str
    can_learn: bool
    can_undo: bool
    can_export: bool = Field(description="Whether an ONNX file can be made here.")
    unknown: UnknownView | None
    map_shows: Share = Field(description="How much of the distances between classes the map shows.")
    classes: list[ClassView]
    history: list[ChangeView]

    @classmethod
    def of(cls, snapshot: Snapshot | None, name: str, backbone: str, can_undo: bool, can_export: bool) -> "ModelView":
        """What is to be shown of a model, or of none."""
        if snapshot is None:
            return cls(
                exists=False, name=name, version=0, bytes=0, bytes_per_class=0, bytes_by_group={}, backbone=backbone,
                can_learn=True, can_undo=False, can_export=False, unknown=None, map_shows=1.0, classes=[], history=[],
            )  # fmt: skip
        info, names = snapshot.info, snapshot.model.names
        classes = [
            ClassView(
                **about,
                **{key: value for key, value in vars(look).items() if key != "neighbours"},
                neighbours=[Neighbour(name=names[j], similarity=near) for j, near in look.neighbours],
            )
            for about, look in zip(info["classes"], snapshot.looks, strict=True)
        ]
        return cls(
            exists=True,
            name=name,
            can_undo=can_undo,
            can_export=can_export and bool(names),
            map_shows=snapshot.map_shows,
            classes=classes,
            history=[ChangeView(**asdict(event)) for event in snapshot.model.notes.history],
            **{k: info[k] for k in ("version", "bytes", "bytes_per_class", "bytes_by_group", "backbone", "can_learn")},
            unknown=info["unknown"] and UnknownView(**info["unknown"]),
        )


class Ranked(BaseModel):
    """A class and how near a picture is to it."""

    label: str
    similarity: Similarity


class AnswerView(BaseModel):
    """What a picture shows: its class, or "unknown"; or why it could not be read."""

    label: str | None
    similarity: Similarity | None
    top: list[Ranked] = Field(description="The five nearest classes, nearest first.")
    problem: str | None

    @classmethod
    def of(cls, answer: Answer | Unreadable) -> "AnswerView":
        """An answer of the library's."""
        if isinstance(answer, Unreadable):
            return cls(label=None, similarity=None, top=[], problem=answer.reason)
        top = [Ranked(label=label, similarity=similarity) for label, similarity in answer.top]
        return cls(label=answer.label, similarity=answer.similarity, top=top, problem=None)


class Answers(BaseModel):
    """One answer per picture, in order."""

    answers: list[AnswerView]
    milliseconds: float = Field(description="From the question to the answers, inside the server.")
    version: int = Field(description="Of the model that answered.")
    unknown_below: float | None = Field(description="The similarity below which it says unknown, if it does.")


class CheckView(BaseModel):
    """Answers about pictures that were held back."""

    pictures: int
    right: int


class LearnedView(BaseModel):
    """A class that was learned, from how many pictures, and how many were held back to check with."""

    name: str
    pictures: int
    held_back: int


class ResultView(BaseModel):
    """What came of a lesson."""

    learned: list[LearnedView]
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

    number: int
    classes: dict[str, int] = Field(description="The classes, and how many pictures of each.")
    base: bool = Field(description="Whether it makes a new model.")
    state: Literal["waiting", "learning", "done", "failed", "cancelled"]
    stage: Literal["", "wait", "look", "train", "saved", "check"]
    done: int = Field(description="Of the stage: pictures looked at, or epochs.")
    total: int
    loss: float | None
    seconds_left: float | None = Field(description="Of the stage, as far as can be said.")
    seconds: float
    message: str
    unreadable: list[UnreadableView]
    result: ResultView | None

    @classmethod
    def of(cls, job: Job) -> "LessonView":
        """A lesson of the queue's."""
        fields = {name: getattr(job, name) for name in cls.model_fields if name != "seconds_left"}
        return cls(**fields, seconds_left=job.seconds_left())


class State(BaseModel):
    """What the stream of events tells: enough to notice every change, and a restart of the server."""

    server: str = Field(description="Another one after a restart.")
    model: str = Field(description="Another one whenever the model file changes; empty if there is none.")
    lessons: list[LessonView]


class Forget(BaseModel):
    """A class to forget."""

    name: str


class Rename(BaseModel):
    """A class, and what to call it."""

    name: str
    new_name: str = Field(min_length=1, description="1 to 80 printable characters, and not the word for no class.")


class Undo(BaseModel):
    """The last change to take back."""

    version: int = Field(description="The model's, as the client knows it: nothing happens if that is not the present.")
