"""The learners: one file each, all with the same verbs."""

from engram.methods.base import Learner
from engram.methods.prototypes import PrototypeLearner

METHODS: dict[str, type[Learner]] = {PrototypeLearner.method: PrototypeLearner}
