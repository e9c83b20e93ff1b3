"""The learners: one file each, all with the same verbs."""

from engram.learner import Learner
from engram.methods.deepncm import DeepNCM
from engram.methods.ewc import EWC
from engram.methods.fearnet import FearNet
from engram.methods.fecam import FeCAM
from engram.methods.finetune import FineTune
from engram.methods.gan_replay import GANReplay
from engram.methods.gem import GEM
from engram.methods.geppnet import GeppNet
from engram.methods.hat import HAT
from engram.methods.icarl import ICaRL
from engram.methods.icwgan import ICwGAN
from engram.methods.imagenet import BesideImageNet
from engram.methods.joint import Joint
from engram.methods.lwf import LwF
from engram.methods.ncm import NCM
from engram.methods.nearest_neighbour import NearestNeighbour
from engram.methods.paper import PrototypesMAS, PrototypesMASLOF, PrototypesSI, PrototypesSILOF
from engram.methods.prototypes import Prototypes
from engram.methods.ranpac import RanPAC
from engram.methods.slda import SLDA
from engram.methods.whitened import Whitened

# The paper's own, the systems of its tables, statistics of frozen features, the systems it discusses, the bounds.
_ALL: tuple[type[Learner], ...] = (
    *(Whitened, BesideImageNet),
    *(Prototypes, PrototypesMAS, PrototypesSI, PrototypesMASLOF, PrototypesSILOF),
    *(NearestNeighbour, GeppNet, ICaRL, FearNet),
    *(NCM, SLDA, FeCAM, RanPAC),
    *(EWC, LwF, GEM, GANReplay, ICwGAN, HAT, DeepNCM),
    *(FineTune, Joint),
)
METHODS: dict[str, type[Learner]] = {learner.method: learner for learner in _ALL}


def find_method(method: str | type[Learner]) -> type[Learner]:
    """The learner of that name; a class is its own."""
    if isinstance(method, type) and issubclass(method, Learner):
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"no method is called {method!r}; there are {', '.join(METHODS)}")
    return METHODS[method]
