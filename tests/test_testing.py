"""check_learner finds what it is there to find: every defect below makes its check fail."""

import contextlib
import functools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from engram import testing
from engram.learners import registry
from engram.learners.base import Answers, Learner, Progress, Scores, State
from engram.learners.ncm import NCM
from engram.learners.nearest_neighbour import NearestNeighbour
from engram.stats.sums import Sums


@dataclass(frozen=True)
class TrainedSettings:
    epochs: int = 3
    noise: float = 1e-3


@dataclass(frozen=True, eq=False)
class Trained(NCM):
    """Class means that are trained, as it were: in epochs, with random numbers."""

    method: ClassVar[str] = "trained"
    settings_type: ClassVar[type] = TrainedSettings

    def learn(self, x, y, tell=lambda progress: None):
        for epoch in range(self.settings.epochs):
            tell(Progress("base", epoch + 1, self.settings.epochs, 0.0))
        after = super().learn(x, y)
        return with_means(after, after.sums.means + self.settings.noise * after.random().normal(size=x.shape[1]))


def with_means(learner, means):
    return replace(learner, sums=replace(learner.sums, means=means.astype(np.float32)))


def with_counts(learner, counts):
    return replace(learner, sums=replace(learner.sums, counts=counts))


@dataclass(frozen=True, eq=False)
class KeepsSamples(NCM):
    exemplars: object = None

    def learn(self, x, y, tell=None):
        return replace(super().learn(x, y), exemplars=x[:2].copy())


class KeepsScaledSamplesInAClosure(NCM):
    def learn(self, x, y, tell=None):
        after, hidden = super().learn(x, y), x * 0.37
        vars(after)["hook"] = functools.partial(lambda extra: hidden + extra, 1)
        return after


class SaysItKeepsSamples(NCM):
    about = replace(NCM.about, keeps_samples=True)


class HidesAnOptimiser(NCM):
    def learn(self, x, y, tell=None):
        after = super().learn(x, y)
        vars(after)["moments"] = [np.zeros(5)]
        return after


@dataclass(frozen=True, eq=False)
class KeepsAnOptimiser(NCM):
    moments: object = None

    def learn(self, x, y, tell=None):
        return replace(super().learn(x, y), moments=[np.zeros(5)])


class CallsAnArrayAnything(NCM):
    def _arrays(self):
        return {name.replace("classes.counts", "counts"): array for name, array in super()._arrays().items()}


class CountsHalfOfItsMemory(NCM):
    def state(self):
        state = super().state()

        class Less(State):
            def memory(self):
                return {name: size // 2 for name, size in super().memory().items()}

        return Less(state.arrays, state.meta)


class LosesCounts(NCM):
    @classmethod
    def from_state(cls, state):
        learner = super().from_state(state)
        return with_counts(learner, np.ones_like(learner.sums.counts))


class LosesCountsOnceItGoesOn(NCM):
    """What is read and written is the same; what is learned afterwards is not."""

    @classmethod
    def from_state(cls, state):
        learner = super().from_state(state)
        vars(learner)["read"] = True
        return learner

    def learn(self, x, y, tell=None):
        after = super().learn(x, y)
        return with_means(after, after.sums.means[::-1]) if "read" in vars(self) else after


class LosesTheTaskCount(NCM):
    def description(self):
        return super().description() | {"tasks_learned": 1}


class UsesTheGlobalRandomState(Trained):
    def random(self):
        return np.random.default_rng(np.random.randint(1000))


class ForgetsNothing(NCM):
    def forget(self, label):
        return self


class RenamesNothing(NCM):
    def rename(self, old, new):
        return self


class LearnsInPlace(NCM):
    def learn(self, x, y, tell=None):
        if self.sums is not None:
            self.sums.means[...] += 1
        return super().learn(x, y)


class ForgetsInPlace(NCM):
    def forget(self, label):
        object.__setattr__(self, "sums", self.sums.without(label))
        return self


class RemembersWhatItWasAsked(NCM):
    def score(self, x):
        found = super().score(x)
        asked = vars(self).setdefault("asked", [])
        asked.append(len(x))
        return found._replace(values=found.values + 0.001 * len(asked))


class MergesInPlace(NCM):
    def merge(self, *others):
        merged = super().merge(*others)
        self.sums.means[...] = merged.sums.means[: len(self.labels)]
        return merged


class JudgesOtherClasses(NCM):
    def judged(self, x, y):
        after, scores = super().judged(x, y)
        return after, scores._replace(values=scores.values[:, :2])


class CountsFailedAttempts(Trained):
    attempts: ClassVar[list[int]] = []

    def learn(self, x, y, tell=lambda progress: None):
        self.attempts.append(len(x))  # changed in place, so that being a value does not help
        return super().learn(x, y, tell)

    def random(self):
        return np.random.default_rng(len(self.attempts))


class CannotBeInterrupted(Trained):
    def learn(self, x, y, tell=lambda progress: None):
        def swallow(progress):
            with contextlib.suppress(KeyboardInterrupt):
                tell(progress)

        return super().learn(x, y, swallow)


class TellsOfWhatItHasDone(Trained):
    """Each epoch changes the learner in place, so an interruption leaves it half-taught."""

    def learn(self, x, y, tell=lambda progress: None):
        def move(progress):
            if self.sums is not None:
                self.sums.means[...] += 0.01
            tell(progress)

        return super().learn(x, y, move)


class RenamesToAnything(NCM):
    def row_to_rename(self, old, new):
        return int(self.rows([old])[0])


class ForgetsStrangers(NCM):
    def forget(self, label):
        return super().forget(label) if label in self.labels else self


class AnswersStrangers(NCM):
    def rows(self, labels):
        return super().rows([label if label in self.labels else self.labels[0] for label in labels])


class RefusesNewClasses(NCM):
    def learn(self, x, y, tell=None):
        if self.labels and not set(y) <= set(self.labels):
            raise ValueError("y contains new labels")
        return super().learn(x, y)


class SortsItsClasses(NCM):
    def learn(self, x, y, tell=None):
        after = super().learn(x, y)
        order = sorted(range(len(after.labels)), key=lambda row: after.labels[row], reverse=True)
        sums = after.sums
        labels = tuple(sums.labels[row] for row in order)
        return replace(after, sums=Sums(labels, sums.counts[order], sums.means[order], None, sums.samples))


class AnswersTheFirstClass(NCM):
    def score(self, x):
        found = super().score(x)
        return found._replace(values=found.values - 2 * np.arange(len(self.labels), dtype=np.float32))


class NeedsTwoSamples(NCM):
    def learn(self, x, y, tell=None):
        if len(x) < 2:
            raise ValueError("too few samples")
        return super().learn(x, y)


class CentresWhatItIsAsked(NCM):
    def score(self, x):
        return super().score(x - x.mean(axis=0) / 10)


class CentresItsNovelty(NCM):
    def score(self, x):
        novelty = np.linalg.norm(x, axis=1)
        return super().score(x)._replace(novelty=novelty - novelty.mean())


class GivesTheWorstFirst(NCM):
    def answer(self, x, k=1, candidates=None, temperature=None):
        found = super().answer(x, k, candidates, temperature)
        return Answers(found.rows[:, ::-1], found.scores[:, ::-1], found.probabilities[:, ::-1], found.novelty)


class IgnoresCandidates(NCM):
    def answer(self, x, k=1, candidates=None, temperature=None):
        return super().answer(x, k if candidates is None else min(k, len(candidates)), None, temperature)


class GivesOneClassOnly(NCM):
    def answer(self, x, k=1, candidates=None, temperature=None):
        found = super().answer(x, k, candidates, temperature)
        return found._replace(rows=np.repeat(found.rows[:, :1], found.rows.shape[1], axis=1))


class GivesPositionsAmongCandidates(NCM):
    def answer(self, x, k=1, candidates=None, temperature=None):
        found = super().answer(x, k, candidates, temperature)
        if candidates is None:
            return found
        return found._replace(rows=np.argsort(np.argsort(found.rows, axis=1), axis=1))


class RoundsItsBestScores(NCM):
    def answer(self, x, k=1, candidates=None, temperature=None):
        found = super().answer(x, k, candidates, temperature)
        return found._replace(scores=found.scores.round(1))


class ForgetsItsTemperature(NCM):
    def score(self, x):
        return super().score(x)._replace(temperature=0.1)

    def answer(self, x, k=1, candidates=None, temperature=None):
        return super().answer(x, k, candidates, 1.0 if temperature is None else temperature)


class GivesProbabilitiesAmongAll(NCM):
    def answer(self, x, k=1, candidates=None, temperature=None):
        found = super().answer(x, k, candidates, temperature)
        everything = super().answer(x, len(self.labels))
        both = zip(found.rows, everything.rows, everything.probabilities, strict=True)
        odds = [[dict(zip(all_rows, p, strict=True))[row] for row in rows] for rows, all_rows, p in both]
        return found._replace(probabilities=np.array(odds))


class LosesNovelty(NCM):
    def score(self, x):
        return super().score(x)._replace(novelty=np.linalg.norm(x, axis=1))

    def answer(self, x, k=1, candidates=None, temperature=None):
        return super().answer(x, k, candidates, temperature)._replace(novelty=None)


class CountsTheLastTask(NCM):
    def learn(self, x, y, tell=None):
        after = super().learn(x, y)
        now = Sums.of(x, y)
        counts = [now.counts[now.row[label]] if label in now.row else 0 for label in after.labels]
        return with_counts(after, np.array(counts))


class ForgetsNoCount(NCM):
    def forget(self, label):
        after = super().forget(label)
        return with_counts(after, self.sums.counts[: len(after.labels)])


class HasNoVectorForTheLastClass(NCM):
    def class_vectors(self):
        return super().class_vectors()[:-1]


class HasOneVectorForAll(NCM):
    def class_vectors(self):
        return np.zeros_like(super().class_vectors())


class NeedsItsFirstClass(NCM):
    def score(self, x):
        found = super().score(x)
        return found if "a" in self.labels else Scores(found.values * np.nan, None, 1.0)


class CannotStartOver(NCM):
    def forget(self, label):
        if len(self.labels) == 1:
            raise ValueError("the last class stays")
        return super().forget(label)


class CannotBeReadEmpty(NCM):
    def _arrays(self):
        return super()._arrays() | ({} if self.labels or self.sums is None else {"classes.more": np.zeros((0, 2))})


class TakesAnySetting(Trained):
    @classmethod
    def configure(cls, settings=None):
        known = cls.settings_type.__dataclass_fields__
        return super().configure({name: value for name, value in (settings or {}).items() if name in known})


class TakesTextForANumber(Trained):
    @classmethod
    def configure(cls, settings=None):
        return super().configure({name: value for name, value in (settings or {}).items() if value != "much"})


class NamesNoSetting(Trained):
    @classmethod
    def configure(cls, settings=None):
        try:
            return super().configure(settings)
        except ValueError:
            raise ValueError("something is wrong") from None


class LeavesItsDefaults(Trained):
    @classmethod
    def configure(cls, settings=None):
        return super().configure({"epochs": 2, **(settings or {})})


class SaysItDoesNotMerge(NCM):
    about = replace(NCM.about, merges=False)


class MergesTheFirstOther(NCM):
    def merge(self, *others):
        return super().merge(*others[:1])


class MergesByTheMeanOfMeans(NCM):
    def merge(self, *others):
        for other in others:
            ones = with_counts(other, np.ones_like(other.sums.counts)) if other.sums else other
            self = NCM.merge(self, ones)
        return self


class MergesOnlyIntoWhatIsTaught(NCM):
    def merge(self, *others):
        merged = super().merge(*others)
        return merged if self.labels else replace(merged, sums=replace(merged.sums, means=merged.sums.means[::-1]))


class IsNotEmpty(NCM):
    def empty(self):
        return self


class SubtractsNothing(NCM):
    def subtract(self, other):
        return self


class SubtractsNoMean(NCM):
    def subtract(self, other):
        after = super().subtract(other)
        return with_means(after, np.stack([self.sums.means[self.sums.row[label]] for label in after.labels]))


@dataclass(frozen=True, eq=False)
class KeepsSamplesTwice(NearestNeighbour):
    """Declares what it stores, and stores more beside it."""

    hidden: object = None

    def learn(self, x, y, tell=None):
        return replace(super().learn(x, y), hidden=x[:2] * 3)


class NamesAnArrayAfterNothing(NCM):
    def _arrays(self):
        return {name.replace("classes.counts", "counts"): array for name, array in super()._arrays().items()}

    @classmethod
    def from_state(cls, state):
        names = {name: "classes.counts" if name == "counts" else name for name in state.arrays}
        return super().from_state(State({names[name]: array for name, array in state.arrays.items()}, state.meta))


class AnswersOtherwiseOnceItIsRead(LosesCountsOnceItGoesOn):
    def learn(self, x, y, tell=None):
        return NCM.learn(self, x, y)

    def score(self, x):
        found = super().score(x)
        return found._replace(values=found.values * (0.5 if "read" in vars(self) else 1))


class CountsNoTaskOnceItIsRead(LosesCountsOnceItGoesOn):
    def learn(self, x, y, tell=None):
        return replace(NCM.learn(self, x, y), updates=self.updates + ("read" not in vars(self)))


class CountsInPlace(NCM):
    def learn(self, x, y, tell=None):
        if self.sums is not None:
            self.sums.counts[...] += 1
        return super().learn(x, y)


class JudgesAndForgets(NCM):
    def judged(self, x, y):
        after, scores = super().judged(x, y)
        return after.forget(after.labels[-1]), scores


class CountsWhatItRefuses(NCM):
    def forget(self, label):
        if label not in self.labels:
            self.sums.counts[...] += 1
        return super().forget(label)


class IsInfiniteForOneSample(NCM):
    def score(self, x):
        found = super().score(x)
        return found._replace(values=np.where(self.sums.counts == 1, np.inf, found.values))


class LearnsOneSampleAtMost(NCM):
    def learn(self, x, y, tell=None):
        return super().learn(x[:1], y[:1]) if len(x) == len(set(y)) else super().learn(x, y)


class AnswersWithAnotherNovelty(LosesNovelty):
    def answer(self, x, k=1, candidates=None, temperature=None):
        return NCM.answer(self, x, k, candidates, temperature)._replace(novelty=np.zeros(len(x)))


PLANTED = [
    (KeepsSamplesTwice, testing.check_training_data_is_only_where_it_is_declared),
    (NamesAnArrayAfterNothing, testing.check_memory_table_is_exact),
    (AnswersOtherwiseOnceItIsRead, testing.check_saving_and_going_on_is_going_on),
    (CountsNoTaskOnceItIsRead, testing.check_saving_and_going_on_is_going_on),
    (CountsInPlace, testing.check_a_learner_is_a_value),
    (JudgesAndForgets, testing.check_a_learner_is_a_value),
    (CountsWhatItRefuses, testing.check_what_is_impossible_changes_nothing),
    (IsInfiniteForOneSample, testing.check_single_samples),
    (LearnsOneSampleAtMost, testing.check_single_samples),
    (AnswersWithAnotherNovelty, testing.check_answers_are_the_best_of_scores),
    (KeepsSamples, testing.check_training_data_is_only_where_it_is_declared),
    (KeepsScaledSamplesInAClosure, testing.check_training_data_is_only_where_it_is_declared),
    (SaysItKeepsSamples, testing.check_training_data_is_only_where_it_is_declared),
    (HidesAnOptimiser, testing.check_memory_table_is_exact),
    (KeepsAnOptimiser, testing.check_memory_table_is_exact),
    (CallsAnArrayAnything, testing.check_memory_table_is_exact),
    (CountsHalfOfItsMemory, testing.check_memory_table_is_exact),
    (LosesCounts, testing.check_saving_and_going_on_is_going_on),
    (LosesCountsOnceItGoesOn, testing.check_saving_and_going_on_is_going_on),
    (LosesTheTaskCount, testing.check_saving_and_going_on_is_going_on),
    (UsesTheGlobalRandomState, testing.check_runs_are_repeatable),
    (ForgetsNothing, testing.check_only_known_labels_are_answers),
    (RenamesNothing, testing.check_only_known_labels_are_answers),
    (LearnsInPlace, testing.check_a_learner_is_a_value),
    (ForgetsInPlace, testing.check_a_learner_is_a_value),
    (RemembersWhatItWasAsked, testing.check_a_learner_is_a_value),
    (MergesInPlace, testing.check_a_learner_is_a_value),
    (JudgesOtherClasses, testing.check_a_learner_is_a_value),
    (CountsFailedAttempts, testing.check_interruption_changes_nothing),
    (CannotBeInterrupted, testing.check_interruption_changes_nothing),
    (TellsOfWhatItHasDone, testing.check_interruption_changes_nothing),
    (RenamesToAnything, testing.check_what_is_impossible_changes_nothing),
    (ForgetsStrangers, testing.check_what_is_impossible_changes_nothing),
    (AnswersStrangers, testing.check_what_is_impossible_changes_nothing),
    (RefusesNewClasses, testing.check_unseen_labels_are_accepted),
    (SortsItsClasses, testing.check_unseen_labels_are_accepted),
    (AnswersTheFirstClass, testing.check_unseen_labels_are_accepted),
    (NeedsTwoSamples, testing.check_single_samples),
    (CentresWhatItIsAsked, testing.check_a_sample_scores_alike_in_any_company),
    (CentresItsNovelty, testing.check_a_sample_scores_alike_in_any_company),
    (GivesTheWorstFirst, testing.check_answers_are_the_best_of_scores),
    (IgnoresCandidates, testing.check_answers_are_the_best_of_scores),
    (GivesOneClassOnly, testing.check_answers_are_the_best_of_scores),
    (GivesPositionsAmongCandidates, testing.check_answers_are_the_best_of_scores),
    (RoundsItsBestScores, testing.check_answers_are_the_best_of_scores),
    (ForgetsItsTemperature, testing.check_answers_are_the_best_of_scores),
    (GivesProbabilitiesAmongAll, testing.check_answers_are_the_best_of_scores),
    (LosesNovelty, testing.check_answers_are_the_best_of_scores),
    (CountsTheLastTask, testing.check_what_is_known_of_classes),
    (ForgetsNoCount, testing.check_what_is_known_of_classes),
    (HasNoVectorForTheLastClass, testing.check_what_is_known_of_classes),
    (HasOneVectorForAll, testing.check_what_is_known_of_classes),
    (NeedsItsFirstClass, testing.check_every_class_can_be_forgotten),
    (CannotStartOver, testing.check_every_class_can_be_forgotten),
    (CannotBeReadEmpty, testing.check_every_class_can_be_forgotten),
    (TakesAnySetting, testing.check_settings_are_checked),
    (TakesTextForANumber, testing.check_settings_are_checked),
    (NamesNoSetting, testing.check_settings_are_checked),
    (LeavesItsDefaults, testing.check_settings_are_checked),
    (SaysItDoesNotMerge, testing.check_merging_is_having_learned_everything),
    (MergesTheFirstOther, testing.check_merging_is_having_learned_everything),
    (MergesByTheMeanOfMeans, testing.check_merging_is_having_learned_everything),
    (MergesOnlyIntoWhatIsTaught, testing.check_merging_is_having_learned_everything),
    (IsNotEmpty, testing.check_merging_is_having_learned_everything),
    (SubtractsNothing, testing.check_merging_is_having_learned_everything),
    (SubtractsNoMean, testing.check_merging_is_having_learned_everything),
]


@pytest.mark.parametrize(("broken", "check"), PLANTED)
def test_a_broken_learner_is_caught(broken, check):
    with pytest.raises((AssertionError, ValueError)):
        check(broken.new)


@pytest.mark.parametrize("sound", [NCM, Trained])
def test_a_sound_learner_is_not(sound):
    testing.check_learner(sound.new)


def test_every_check_has_a_broken_learner():
    assert {check for _, check in PLANTED} == set(testing.CHECKS)


SHIPPED = [
    ("whitened", {}),
    ("whitened", {"kept_bits": 32}),
    ("whitened", {"kept_bits": 64, "transform": "none"}),
    ("whitened", {"width": 6}),
    ("imagenet", {}),
    ("slda", {}),
    ("ncm", {}),
    ("1nn", {}),
    ("1nn", {"samples": 500}),
]


@pytest.mark.parametrize(("name", "settings"), SHIPPED, ids=str)
def test_what_is_shipped_holds_to_it(name: str, settings: dict[str, object]):
    kind: type[Learner] = registry.find(name)
    testing.check_learner(lambda: kind.new(settings, seed=3))
