"""Fine-tuning: train on every task as it comes, hold nothing still. The lower bound."""

from engram.learners.base import About
from engram.paper.adapter import Adapter
from engram.peers.softmax import SoftmaxLearner


class FineTune(SoftmaxLearner):
    """The growing softmax, and nothing else."""

    method = "finetune"
    about = About(
        title="Fine-tuning",
        paper="McCloskey, Cohen: Catastrophic Interference in Connectionist Networks, 1989",
        per_class="one read-out row",
        forgets=True,
    )


class Method(Adapter):
    """The method, as it is registered."""

    kind = FineTune
