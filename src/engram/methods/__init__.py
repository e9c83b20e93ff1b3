"""The learners: one file each, all with the same verbs."""

from engram.methods.base import Learner
from engram.methods.fecam import FeCAM
from engram.methods.ncm import NCM
from engram.methods.nearest_neighbour import NearestNeighbour
from engram.methods.prototypes import PrototypeLearner
from engram.methods.ranpac import RanPAC
from engram.methods.slda import SLDA

METHODS: dict[str, type[Learner]] = {
    learner.method: learner for learner in (PrototypeLearner, NCM, NearestNeighbour, SLDA, FeCAM, RanPAC)
}
