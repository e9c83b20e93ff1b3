"""Blocks of pictures and what is left of them, without a cluster."""

import os
from pathlib import Path

import numpy as np
import pytest
from toys import averages, paint

from engram import IncrementalClassifier
from engram.cluster import Block, Setting, combine, cut_blocks, summarise
from engram.datasets import class_folders
from engram.images import extract
from engram.images.remote import ReadableImages
from engram.testing import assert_same_state


def classifier(**changes: object) -> IncrementalClassifier:
    config = {"kept_bits": 64, **changes}
    return IncrementalClassifier(config=config, backbone=averages(), random_state=0, device="cpu")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, list[Path]]:
    return class_folders(paint(tmp_path / "pictures", "red", "green", "blue", "cyan", n=5))


@pytest.fixture
def setting() -> Setting:
    return Setting(classifier().blank(), averages(), "cpu")


def test_blocks_are_of_bounded_size_and_stay_within_their_range(folders, setting):
    ranges = list(cut_blocks(folders, setting, pictures=4, most_classes=3))
    assert [[len(block.images) for block in blocks] for blocks in ranges] == [[4, 4, 4, 3], [4, 1]]
    assert [sorted({label for block in blocks for label in block.labels}) for blocks in ranges] == [
        ["blue", "cyan", "green"], ["red"],
    ]  # fmt: skip
    paths = [str(path) for paths in folders.values() for path in paths]
    assert [image for blocks in ranges for block in blocks for image in block.images] == paths
    with pytest.raises(ValueError, match="at least one picture"):
        next(cut_blocks(folders, setting, pictures=0))


def test_pictures_named_twice_are_two_blocks(folders, setting):
    blocks = [block for part in cut_blocks({"red": folders["red"] * 2}, setting, pictures=5) for block in part]
    assert blocks[0].images == blocks[1].images
    assert blocks[0].key != blocks[1].key


def test_a_key_is_of_the_pictures_and_of_how_they_are_learned(folders, setting):
    def keys(setting: Setting = setting) -> list[str]:
        return [block.key for blocks in cut_blocks(folders, setting, pictures=10) for block in blocks]

    before = keys()
    assert before == keys() == keys(Setting(classifier().blank(), averages(), "cpu"))
    assert len(set(before)) == 2
    assert set(before).isdisjoint(keys(Setting(classifier(transform="none").blank(), averages(), "cpu")))
    taught = classifier().fit(np.full((3, 8), 1e6), ["a"] * 3)
    assert set(before).isdisjoint(keys(Setting(taught.blank(), averages(), "cpu")))
    mirrored = averages()
    mirrored.average_mirrored()
    assert set(before).isdisjoint(keys(Setting(classifier().blank(), mirrored, "cpu")))
    os.utime(folders["red"][0], ns=(1, 1))
    after = keys()
    assert (after[0], after[1]) == (before[0], after[1])
    assert after[1] != before[1]


def test_summaries_added_up_are_all_pictures_at_once(folders, setting):
    ranges = cut_blocks(folders, setting, pictures=3, most_classes=2)
    summaries = [combine([summarise(block, setting) for block in blocks]) for blocks in ranges]
    assert sum(summary.pictures for summary in summaries) == 20
    clf = classifier().absorb(*(summary.learner for summary in summaries))
    paths = [path for paths in folders.values() for path in paths]
    X, y = extract(paths, averages(), device="cpu").values, np.repeat(list(folders), 5)
    whole = classifier().fit(X, y)
    assert clf.classes_.tolist() == whole.classes_.tolist()
    assert clf.counts_.tolist() == whole.counts_.tolist()
    np.testing.assert_allclose(clf.decision_function(X), whole.decision_function(X), atol=1e-6)
    assert clf.unknown_below() is None
    clf.calibrate(X, y)
    assert clf.unknown_below() == pytest.approx(whole.unknown_below(), abs=1e-6)
    assert clf.learner_.temperature == pytest.approx(whole.learner_.temperature, rel=1e-6)
    assert clf.predict(paths[:1]).tolist() == ["blue"]


def test_adding_up_leaves_what_is_added_alone(folders, setting):
    """A worker may be asked for the same result again, when another that had the sum is lost."""
    parts = [summarise(block, setting) for blocks in cut_blocks(folders, setting, pictures=10) for block in blocks]
    assert combine(parts).learner.counts() == combine(parts).learner.counts() == [5, 5, 5, 5]
    assert [part.learner.counts() for part in parts] == [[5, 5], [5, 5]]


def test_what_cannot_be_read_is_named_and_the_rest_learned(folders, setting, tmp_path):
    folders["red"][0].write_bytes(b"no picture")
    folders["blue"] = [tmp_path / "nowhere.png"]
    blocks = [block for part in cut_blocks(folders, setting, pictures=1, most_classes=9) for block in part]
    done = combine([summarise(block, setting) for block in blocks])
    assert done.learner.labels == ["cyan", "green", "red"]
    assert done.learner.counts() == [5, 5, 4]
    assert [name for name, _ in done.unreadable] == [str(tmp_path / "nowhere.png"), str(folders["red"][0])]
    nothing = combine([summarise(block, setting) for block in blocks[:1]])
    assert (nothing.learner, nothing.pictures) == (None, 1)


def test_a_block_that_was_kept_is_not_done_again(folders, setting, tmp_path, monkeypatch):
    kept = Setting(setting.blank, setting.backbone, "cpu", tmp_path / "kept")
    blocks = [block for part in cut_blocks(folders, kept, pictures=6) for block in part]
    folders["red"][-1].write_bytes(b"no picture")
    (tmp_path / "kept").mkdir()
    first = [summarise(block, kept) for block in blocks]
    assert len(list((tmp_path / "kept").iterdir())) == len(blocks)
    calls = []
    monkeypatch.setattr("engram.cluster.blocks.extract", lambda *a, **k: calls.append(1))
    for one, again in zip(first, [summarise(block, kept) for block in blocks], strict=True):
        assert_same_state(one.learner.state(), again.learner.state())
        assert (one.pictures, one.unreadable) == (again.pictures, again.unreadable)
    assert calls == []
    monkeypatch.undo()
    damaged = next((tmp_path / "kept").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert combine([summarise(block, kept) for block in blocks]).learner.counts() == [5, 5, 5, 4]
    elsewhere = Setting(setting.blank, setting.backbone, "cpu", tmp_path / "no" / "such" / "folder")
    assert summarise(blocks[0], elsewhere).learner.counts() == [5, 1]


def test_addresses_are_read_where_they_are_needed(folders):
    pytest.importorskip("fsspec")
    path = folders["red"][0]
    images = ReadableImages([str(path), f"file://{path}", "nonsense://there/is/none.png"])
    looked = extract(images, averages(), device="cpu")
    assert looked.kept.tolist() == [0, 1]
    assert np.array_equal(looked.values[0], looked.values[1])
    assert looked.skipped[0][0] == "nonsense://there/is/none.png"
    assert len(Block("k", [str(path)], ["red"]).images) == len(ReadableImages([path])) == 1
