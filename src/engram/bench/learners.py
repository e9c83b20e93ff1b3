"""The one place through which experiments come by methods: by name, in the order of the tables."""

from engram import methods
from engram.learner import Learner
from engram.methods import find_method as find_method

# Our own, the paper's, the systems of its tables, statistics of frozen features, the systems it discusses, the bounds.
_ORDER = (
    *("whitened", "imagenet"),
    *("prototypes", "mas", "si", "mas-lof", "si-lof"),
    *("1nn", "geppnet", "icarl", "fearnet"),
    *("ncm", "slda", "fecam", "ranpac"),
    *("ewc", "lwf", "gem", "gan-replay", "icwgan", "hat", "deepncm"),
    *("finetune", "joint"),
)
_NAMES = (*_ORDER, *(name for name in methods.METHODS if name not in _ORDER))
METHODS: dict[str, type[Learner]] = {name: kind for name in _NAMES if (kind := methods.METHODS.get(name))}
