"""One model file and all that is done with it: what the command line is made of, and anything else may be."""

from engram.store.answers import UNKNOWN, Answer, Evaluation, Unreadable, answers, evaluate, unknown_similarity
from engram.store.learning import learn, watch
from engram.store.lock import ModelBusyError
from engram.store.picture import Picture
from engram.store.plan import Check, Examples, Learned, Plan, Report, Step
from engram.store.records import Event, Notes
from engram.store.workshop import Model, NothingToDoError, Workshop

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
