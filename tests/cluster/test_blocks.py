"""Blocks of pictures and what is left of them, without a cluster."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from toys import averages, paint

from engram.cluster import Block, Setting, Summary, combine, cut_blocks, summarise
from engram.datasets.folders import class_folders
from engram.encoders.base import Encoder
from engram.encoders.recorded import RecordedEncoder
from engram.images.remote import ReadableImages
from engram.images.stream import encode_all
from engram.learners.trying import assert_same_state
from engram.model import Model


def model(encoder: Encoder | None = None, **changes: object) -> Model:
    return Model.new(settings={"kept_bits": 64, **changes}, encoder=RecordedEncoder.of(encoder or averages()))


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, list[Path]]:
    return class_folders(paint(tmp_path / "pictures", "red", "green", "blue", "cyan", n=5))


@pytest.fixture
def setting() -> Setting:
    return Setting.of(model(), "cpu")


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
    assert before == keys() == keys(Setting.of(model(), "cpu"))
    assert len(set(before)) == 2
    taught, _ = model().learn(np.full((3, 8), 1e6), ["a"] * 3)  # in another unit
    for other in (model(transform="none"), taught, model(FakeEncoder(seed=1))):
        assert set(before).isdisjoint(keys(Setting.of(other, "cpu")))
    os.utime(folders["red"][0], ns=(1, 1))
    after = keys()
    assert (after[0], after[1]) == (before[0], after[1])
    assert after[1] != before[1]


def test_summaries_added_up_are_all_pictures_at_once(folders, setting):
    ranges = cut_blocks(folders, setting, pictures=3, most_classes=2)
    summaries = [combine([summarise(block, setting) for block in blocks]) for blocks in ranges]
    assert sum(summary.pictures for summary in summaries) == 20
    joined = model().absorb(*(summary.learner for summary in summaries))
    X = encode_all([path for paths in folders.values() for path in paths], averages()).features
    y = [name for name, paths in folders.items() for _ in paths]
    whole, _ = model().learn(X, y)
    assert joined.pictures() == whole.pictures()
    assert joined.unknown_above() is None
    joined, _ = joined.judged(X, y)
    assert joined.unknown_above() == pytest.approx(whole.unknown_above(), abs=1e-6)
    for found, wanted in zip(joined.learner.score(X), whole.learner.score(X), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_adding_up_leaves_what_is_added_alone(folders, setting):
    """A worker may be asked for the same result again, when another that had the sum is lost."""
    parts = [summarise(block, setting) for blocks in cut_blocks(folders, setting, pictures=10) for block in blocks]
    assert counts(combine(parts)) == counts(combine(parts)) == [5, 5, 5, 5]
    assert [counts(part) for part in parts] == [[5, 5], [5, 5]]


def counts(summary: Summary) -> list[int]:
    return summary.learner.counts().tolist()


def test_what_cannot_be_read_is_named_and_the_rest_learned(folders, setting, tmp_path):
    folders["red"][0].write_bytes(b"no picture")
    folders["blue"] = [tmp_path / "nowhere.png"]
    blocks = [block for part in cut_blocks(folders, setting, pictures=1, most_classes=9) for block in part]
    done = combine([summarise(block, setting) for block in blocks])
    assert done.learner.labels == ("cyan", "green", "red")
    assert counts(done) == [5, 5, 4]
    assert [name for name, _ in done.unreadable] == [str(tmp_path / "nowhere.png"), str(folders["red"][0])]
    nothing = combine([summarise(block, setting) for block in blocks[:1]])
    assert (nothing.learner, nothing.pictures) == (None, 1)


def test_a_block_that_was_kept_is_not_done_again(folders, setting, tmp_path):
    kept = replace(setting, folder=tmp_path / "kept")
    blocks = [block for part in cut_blocks(folders, kept, pictures=6) for block in part]
    folders["red"][-1].write_bytes(b"no picture")
    (tmp_path / "kept").mkdir()
    first = [summarise(block, kept) for block in blocks]
    assert len(list((tmp_path / "kept").iterdir())) == len(blocks)
    seen = setting.encoder.open().seen
    for one, again in zip(first, [summarise(block, kept) for block in blocks], strict=True):
        assert_same_state(one.learner.state(), again.learner.state())
        assert (one.pictures, one.unreadable) == (again.pictures, again.unreadable)
    assert setting.encoder.open().seen == seen
    damaged = next((tmp_path / "kept").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert counts(combine([summarise(block, kept) for block in blocks])) == [5, 5, 5, 4]
    elsewhere = replace(setting, folder=tmp_path / "no" / "such" / "folder")
    assert counts(summarise(blocks[0], elsewhere)) == [5, 1]


def test_addresses_are_read_where_they_are_needed(folders):
    pytest.importorskip("fsspec")
    path = folders["red"][0]
    images = ReadableImages([str(path), f"file://{path}", "nonsense://there/is/none.png"])
    looked = encode_all(images, averages())
    assert looked.kept.tolist() == [0, 1]
    assert np.array_equal(*looked.features)
    assert looked.unreadable[0].name == "nonsense://there/is/none.png"
    assert len(Block("k", [str(path)], ["red"]).images) == len(ReadableImages([path])) == 1
