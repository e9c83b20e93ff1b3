"""check_learner finds what it is there to find: every defect below makes its check fail."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch

from engram import testing
from engram.learner import State
from engram.methods.prototypes import Prototypes, PrototypesConfig

SMALL = PrototypesConfig(layers=(16, 8), base_epochs=4, increment_epochs=2, base_rate=1e-2, feature_rms=1.0)


class KeepsSamples(Prototypes):
    def _learn(self, task):
        super()._learn(task)
        self.exemplars = task.features[:2].clone()


class KeepsScaledSamplesInAClosure(Prototypes):
    def _learn(self, task):
        super()._learn(task)
        hidden = (task.features * 0.37).numpy()
        self.hook = functools.partial(lambda extra: hidden + extra, 1)


class KeepsAnOptimiser(Prototypes):
    def _learn(self, task):
        super()._learn(task)
        self.moments = [torch.zeros(5)]


class LosesImportance(Prototypes):
    @classmethod
    def from_state(cls, state, device="auto"):
        learner = super().from_state(state, device)
        for name in learner.importance:
            learner.tensors[f"consolidation.importance.{name}"] = torch.zeros_like(learner.importance[name])
        return learner


class LosesTheTaskCount(Prototypes):
    def state(self, slim=False):
        state = super().state(slim)
        return State(state.tensors, {**state.meta, "tasks_learned": 1})


class UsesTheGlobalRandomState(Prototypes):
    def task_generator(self, device):
        return torch.Generator(device).manual_seed(int(torch.randint(1000, ())))


class AnswersPositions(Prototypes):
    def predict(self, X):
        return self.scores(X).argmax(axis=1)


class LearnsInPlace(Prototypes):
    def _learn(self, task):
        if self.tensors:
            self.tensors["classes.means"] += 1
        super()._learn(task)


class TrustsItsInput(Prototypes):
    def _features(self, X):
        return torch.from_numpy(np.nan_to_num(np.ascontiguousarray(X, np.float32))[:, :8])


class MindsMemoryLayout(Prototypes):
    def _features(self, X):
        given = np.asarray(X)
        return super()._features(given if given.flags.c_contiguous else given * 1.01)


class RefusesNewClasses(Prototypes):
    def learn(self, X, y, progress=None):
        if self.labels and not set(y) <= set(self.labels):
            raise ValueError("y contains new labels")
        super().learn(X, y, progress)


class NeedsTwoSamples(Prototypes):
    def _learn(self, task):
        if len(task.features) < 2:
            raise ValueError("too few samples")
        super()._learn(task)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (KeepsSamples, testing.check_training_data_is_only_where_it_is_declared),
        (KeepsScaledSamplesInAClosure, testing.check_training_data_is_only_where_it_is_declared),
        (KeepsAnOptimiser, testing.check_memory_table_is_exact),
        (LosesImportance, testing.check_saving_and_going_on_is_going_on),
        (LosesTheTaskCount, testing.check_saving_and_going_on_is_going_on),
        (UsesTheGlobalRandomState, testing.check_runs_are_repeatable),
        (AnswersPositions, testing.check_only_seen_labels_are_predicted),
        (LearnsInPlace, testing.check_interruption_changes_nothing),
        (TrustsItsInput, testing.check_bad_input_changes_nothing),
        (MindsMemoryLayout, testing.check_input_forms),
        (RefusesNewClasses, testing.check_unseen_labels_are_accepted),
        (NeedsTwoSamples, testing.check_single_samples),
    ],
)
def test_a_broken_learner_is_caught(broken, check):
    config = replace(SMALL, lambda_reg=1e4)
    check(lambda: Prototypes(config, device="cpu"))
    with pytest.raises((AssertionError, ValueError)):
        check(lambda: broken(config, device="cpu"))


def test_every_check_has_a_broken_learner():
    pairs = next(mark for mark in test_a_broken_learner_is_caught.pytestmark if mark.name == "parametrize").args[1]
    assert {check for _, check in pairs} == set(testing.CHECKS)
