"""A model on disk over time: learn, predict, evaluate, forget, undo. The command line and the page are made of it.

Nothing here prints.
"""

from engram.errors import ModelBusyError, NothingToDoError
from engram.images import Crop, ImageError, Prepared, Unreadable, prepare
from engram.names import UNKNOWN, similar_name
from engram.store.card import model_card, tell_what_is_kept
from engram.store.detections import add_classifications, crop_classes, crops, write_detections
from engram.store.drift import measure_drift, warn_of_drift
from engram.store.evaluate import Evaluation, evaluate_images
from engram.store.film import predict_film
from engram.store.health import ClassHealth, Health, examine
from engram.store.history import Event, Notes, What
from engram.store.image_bytes import ImageBytes, ImageUrl, twins
from engram.store.inbox import AnswerLog, Wanted, watch_inbox, watch_stream
from engram.store.learn import learn_classes
from engram.store.merge import Merger, MergeSource, merge_models, plan_merge
from engram.store.model_store import Model, ModelStore
from engram.store.new import new_model
from engram.store.plan import Plan
from engram.store.predict import Answer, Ranked, predict_images, unknown_threshold
from engram.store.report import Learned, Report, Step
from engram.store.statistics import write_statistics
from engram.store.taxonomy import SURE, Namer, read_taxonomy

__all__ = [
    "SURE",
    "UNKNOWN",
    "Answer",
    "AnswerLog",
    "ClassHealth",
    "Crop",
    "Evaluation",
    "Event",
    "Health",
    "ImageBytes",
    "ImageError",
    "ImageUrl",
    "Learned",
    "MergeSource",
    "Merger",
    "Model",
    "ModelBusyError",
    "ModelStore",
    "Namer",
    "Notes",
    "NothingToDoError",
    "Plan",
    "Prepared",
    "Ranked",
    "Report",
    "Step",
    "Unreadable",
    "Wanted",
    "What",
    "add_classifications",
    "crop_classes",
    "crops",
    "evaluate_images",
    "examine",
    "learn_classes",
    "measure_drift",
    "merge_models",
    "model_card",
    "new_model",
    "plan_merge",
    "predict_film",
    "predict_images",
    "prepare",
    "read_taxonomy",
    "similar_name",
    "tell_what_is_kept",
    "twins",
    "unknown_threshold",
    "warn_of_drift",
    "watch_inbox",
    "watch_stream",
    "write_detections",
    "write_statistics",
]
