"""check_learner finds what it is there to find: every defect below makes its check fail."""

import contextlib
import functools
from dataclasses import replace

import numpy as np
import pytest
import torch

from engram import testing
from engram.learner import State
from engram.methods.ncm import NCM
from engram.peers.ewc import EWC

QUICK = {"width": 16, "batch_size": 16, "base_epochs": 8, "base_rate": 1e-2, "increment_epochs": 3}
SETTINGS = {**QUICK, "lambda_ewc": 1e4}  # so much that a lost importance shows


class KeepsSamples(EWC):
    def _learn(self, task):
        super()._learn(task)
        self.exemplars = task.features[:2].clone()


class KeepsScaledSamplesInAClosure(EWC):
    def _learn(self, task):
        super()._learn(task)
        hidden = (task.features * 0.37).numpy()
        self.hook = functools.partial(lambda extra: hidden + extra, 1)


class SaysItKeepsSamples(EWC):
    about = replace(EWC.about, keeps_samples=True)


class KeepsAnOptimiser(EWC):
    def _learn(self, task):
        super()._learn(task)
        self.moments = [torch.zeros(5)]


class LosesImportance(EWC):
    @classmethod
    def from_state(cls, state, device="auto"):
        learner = super().from_state(state, device)
        for name in learner.tensors:
            if name.startswith("consolidation."):
                learner.tensors[name] = torch.zeros_like(learner.tensors[name])
        return learner


class LosesTheTaskCount(EWC):
    def state(self):
        state = super().state()
        return State(state.tensors, {**state.meta, "tasks_learned": 1})


class UsesTheGlobalRandomState(EWC):
    def task_generator(self, device):
        return torch.Generator(device).manual_seed(int(torch.randint(1000, ())))


class AnswersPositions(EWC):
    def predict(self, X, among=None):
        return self.scores(X).argmax(axis=1)


class LearnsInPlace(EWC):
    def _tensors_after(self, task):
        for tensor in self.tensors.values():
            tensor += 1
        return super()._tensors_after(task)


class CountsFailedAttempts(EWC):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.attempts = []  # changed in place, so that putting the learner's attributes back does not help

    def _learn(self, task):
        self.attempts.append(task.classes)
        super()._learn(task)

    def task_generator(self, device):
        return torch.Generator(device).manual_seed(len(self.attempts))


class CannotBeInterrupted(EWC):
    def learn(self, X, y, progress=None):
        with contextlib.suppress(KeyboardInterrupt):
            super().learn(X, y, progress)


class TrustsItsInput(EWC):
    def _features(self, X):
        return torch.from_numpy(np.nan_to_num(np.ascontiguousarray(X, np.float32))[:, :8])


class RenamesToAnything(EWC):
    def rename(self, old, new):
        self._labels[self._row(old)] = new


class MindsMemoryLayout(EWC):
    def _features(self, X):
        given = np.asarray(X)
        return super()._features(given if given.flags.c_contiguous else given * 1.01)


class RefusesNewClasses(NCM):
    def learn(self, X, y, progress=None):
        if self.labels and not set(y) <= set(self.labels):
            raise ValueError("y contains new labels")
        super().learn(X, y, progress)


class AnswersTheFirstClass(NCM):
    def _nearest(self, features, k):
        return (self._scores(features) - 2 * torch.arange(len(self.labels))).topk(k, dim=1)


class NeedsTwoSamples(EWC):
    def _learn(self, task):
        if len(task.features) < 2:
            raise ValueError("too few samples")
        super()._learn(task)


class GivesTheWorstFirst(NCM):
    def _nearest(self, features, k):
        best, rows = super()._nearest(features, k)
        return best.flip(1), rows.flip(1)


class IgnoresAmong(NCM):
    def nearest(self, X, k=1, among=None):
        best, rows = super().nearest(X, k)
        fewer = k if among is None else min(k, len(among))
        return best[:, :fewer], rows[:, :fewer]


class GivesOneClassOnly(NCM):
    def _nearest(self, features, k):
        best, rows = super()._nearest(features, k)
        return best[:, :1].expand(-1, k), rows[:, :1].expand(-1, k)


class GivesPositionsAmong(NCM):
    def nearest(self, X, k=1, among=None):
        best, rows = super().nearest(X, k, among)
        return best, rows if among is None else np.argsort(np.argsort(rows, axis=1), axis=1)


class RoundsItsBestScores(NCM):
    def _nearest(self, features, k):
        best, rows = super()._nearest(features, k)
        return best.round(decimals=1), rows


class ScoresOtherwiseInTorch(NCM):
    def scorer(self):
        return lambda features: 2 * self._scores(features)


class PredictsTheSecondBest(NCM):
    def predict(self, X, among=None):
        return np.asarray(self.labels)[self.nearest(X, 2, among)[1][:, 1]]


class CountsTheLastTask(NCM):
    def _tensors_after(self, task):
        counts = torch.bincount(task.targets, minlength=task.classes)
        return {**super()._tensors_after(task), "classes.counts": counts}


class ForgetsNoCount(NCM):
    def forget(self, label):
        counts = self.tensors["classes.counts"]
        super().forget(label)
        self.tensors["classes.counts"] = counts[: len(self.labels)]


class HasNoVectorForTheLastClass(NCM):
    def class_vectors(self):
        return super().class_vectors()[:-1]


class HasOneVectorForAll(NCM):
    def class_vectors(self):
        return np.zeros_like(super().class_vectors())


class NeedsItsFirstClass(NCM):
    def _scores(self, features):
        return super()._scores(features) / (1.0 if "a" in self.labels else 0.0)


class CannotStartOver(NCM):
    def forget(self, label):
        if len(self.labels) == 1:
            raise ValueError("the last class stays")
        super().forget(label)


class TakesAnySetting(EWC):
    @classmethod
    def configure(cls, settings=None):
        known = cls.config_type.__dataclass_fields__
        return super().configure({name: value for name, value in (settings or {}).items() if name in known})


class NamesNoSetting(EWC):
    @classmethod
    def configure(cls, settings=None):
        try:
            return super().configure(settings)
        except ValueError:
            raise ValueError("something is wrong") from None


class LeavesItsDefaults(EWC):
    @classmethod
    def configure(cls, settings=None):
        return super().configure({"width": 3, **(settings or {})})


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (KeepsSamples, testing.check_training_data_is_only_where_it_is_declared),
        (KeepsScaledSamplesInAClosure, testing.check_training_data_is_only_where_it_is_declared),
        (SaysItKeepsSamples, testing.check_training_data_is_only_where_it_is_declared),
        (KeepsAnOptimiser, testing.check_memory_table_is_exact),
        (LosesImportance, testing.check_saving_and_going_on_is_going_on),
        (LosesTheTaskCount, testing.check_saving_and_going_on_is_going_on),
        (UsesTheGlobalRandomState, testing.check_runs_are_repeatable),
        (AnswersPositions, testing.check_only_seen_labels_are_predicted),
        (LearnsInPlace, testing.check_interruption_changes_nothing),
        (CountsFailedAttempts, testing.check_interruption_changes_nothing),
        (CannotBeInterrupted, testing.check_interruption_changes_nothing),
        (TrustsItsInput, testing.check_bad_input_changes_nothing),
        (RenamesToAnything, testing.check_bad_input_changes_nothing),
        (MindsMemoryLayout, testing.check_input_forms),
        (RefusesNewClasses, testing.check_unseen_labels_are_accepted),
        (AnswersTheFirstClass, testing.check_unseen_labels_are_accepted),
        (NeedsTwoSamples, testing.check_single_samples),
        (GivesTheWorstFirst, testing.check_nearest_is_the_best_of_scores),
        (IgnoresAmong, testing.check_nearest_is_the_best_of_scores),
        (GivesOneClassOnly, testing.check_nearest_is_the_best_of_scores),
        (GivesPositionsAmong, testing.check_nearest_is_the_best_of_scores),
        (RoundsItsBestScores, testing.check_nearest_is_the_best_of_scores),
        (ScoresOtherwiseInTorch, testing.check_nearest_is_the_best_of_scores),
        (PredictsTheSecondBest, testing.check_nearest_is_the_best_of_scores),
        (CountsTheLastTask, testing.check_what_is_known_of_classes),
        (ForgetsNoCount, testing.check_what_is_known_of_classes),
        (HasNoVectorForTheLastClass, testing.check_what_is_known_of_classes),
        (HasOneVectorForAll, testing.check_what_is_known_of_classes),
        (NeedsItsFirstClass, testing.check_every_class_can_be_forgotten),
        (CannotStartOver, testing.check_every_class_can_be_forgotten),
        (TakesAnySetting, testing.check_settings_are_checked),
        (NamesNoSetting, testing.check_settings_are_checked),
        (LeavesItsDefaults, testing.check_settings_are_checked),
    ],
)
def test_a_broken_learner_is_caught(broken, check):
    sound = broken.__base__
    config = sound.configure(SETTINGS if sound is EWC else None)
    check(lambda: sound(config, device="cpu"))
    with pytest.raises((AssertionError, ValueError)):
        check(lambda: broken(config, device="cpu"))


def test_every_check_has_a_broken_learner():
    pairs = next(mark for mark in test_a_broken_learner_is_caught.pytestmark if mark.name == "parametrize").args[1]
    assert {check for _, check in pairs} == set(testing.CHECKS)
