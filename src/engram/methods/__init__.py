"""The learners: one file each, all with the same verbs."""

from engram.methods.base import Learner
from engram.methods.ewc import EWC
from engram.methods.fearnet import FearNet
from engram.methods.fecam import FeCAM
from engram.methods.finetune import FineTune
from engram.methods.icarl import ICaRL
from engram.methods.joint import Joint
from engram.methods.lwf import LwF
from engram.methods.ncm import NCM
from engram.methods.nearest_neighbour import NearestNeighbour
from engram.methods.prototypes import PrototypeLearner
from engram.methods.ranpac import RanPAC
from engram.methods.slda import SLDA

METHODS: dict[str, type[Learner]] = {
    learner.method: learner
    for learner in (
        PrototypeLearner,
        NearestNeighbour,
        ICaRL,
        FearNet,
        NCM,
        SLDA,
        FeCAM,
        RanPAC,
        EWC,
        LwF,
        FineTune,
        Joint,
    )
}
