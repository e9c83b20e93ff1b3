"""One model file and all that is done with it: what the command line is made of, and anything else may be."""

from engram.workshop.answers import UNKNOWN, Answer, Evaluation, Unreadable, answers, evaluate, unknown_similarity
from engram.workshop.learning import learn, watch
from engram.workshop.lock import ModelBusyError
from engram.workshop.picture import Picture
from engram.workshop.plan import Check, Examples, Learned, Plan, Report, Step
from engram.workshop.records import Event, Notes
from engram.workshop.workshop import Model, NothingToDoError, Workshop

__all__ = [
    "UNKNOWN",
    "Answer",
    "Check",
    "Evaluation",
    "Event",
    "Examples",
    "Learned",
    "Model",
    "ModelBusyError",
    "Notes",
    "NothingToDoError",
    "Picture",
    "Plan",
    "Report",
    "Step",
    "Unreadable",
    "Workshop",
    "answers",
    "evaluate",
    "learn",
    "unknown_similarity",
    "watch",
]
