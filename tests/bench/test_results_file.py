"""A results file is read as it was before it was written."""

import json

import numpy as np
import pytest

from engram.bench.results_file import confusion_file, predictions_file, read_results, write_results


@pytest.fixture
def results():
    def order(seed, init):
        tasks = [
            {
                "task": t,
                "alpha_all": 0.5 + init / 10 + t / 100,
                "kept_bytes": {"network": 5, "classes": t},
                "seconds": 1.5,
            }
            for t in range(3)
        ]
        return {"seed": seed, "init": init, "classes": [seed, 7, 8], "tasks": tasks}

    record = {
        "method": "mas",
        "orders": [order(0, 0), order(0, 1), order(1, 0), order(1, 1)],
        "confusion": {"labels": [0, 7, 8], "counts": [[1, 0, 0], [0, 2, 0], [1, 0, 3]]},
    }
    record["predictions"] = {"labels": [0, 7, 8], "truth": [0, 2, 1, 1], "courses": [[0, 2, 1, 0]] * 3 + [[1, 1, 1, 1]]}
    plain = {"method": "slda", "orders": [order(0, 0)]}
    return {"format": 1, "run": {"device": "cpu"}, "records": [plain, record]}


def test_what_was_written_is_read(results, tmp_path):
    path = tmp_path / "results.json"
    write_results(path, results)
    assert read_results(path) == results


def test_the_file_holds_columns_and_what_is_an_orders_own_once(results, tmp_path):
    path = tmp_path / "results.json"
    write_results(path, results)
    stored = json.loads(path.read_text())
    assert stored["format"] == 2
    first, second = stored["records"][1]["orders"][:2]
    assert first["tasks"]["alpha_all"] == [0.5, 0.51, 0.52]
    assert first["tasks"]["kept_bytes"] == {"network": [5, 5, 5], "classes": [0, 1, 2]}
    assert stored["class_orders"] == {"0": [0, 7, 8], "1": [1, 7, 8]}
    assert all("classes" not in order for record in stored["records"] for order in record["orders"])
    assert "kept_bytes" not in second["tasks"]
    assert "confusion" not in stored["records"][1]
    with np.load(confusion_file(path), allow_pickle=False) as matrices:
        assert matrices.files == ["1"]
    assert "predictions" not in stored["records"][1]
    with np.load(predictions_file(path), allow_pickle=False) as predictions:
        assert predictions["1"].dtype == np.uint8


def test_a_record_with_another_order_of_that_seed_keeps_it(results, tmp_path):
    path = tmp_path / "results.json"
    results["records"][0]["orders"][0]["classes"] = ["a", "b"]
    write_results(path, results)
    assert read_results(path) == results


def test_a_group_of_bytes_that_comes_later_was_nothing_before(results, tmp_path):
    path = tmp_path / "results.json"
    tasks = results["records"][0]["orders"][0]["tasks"]
    del tasks[0]["kept_bytes"]["classes"]
    write_results(path, results)
    assert read_results(path)["records"][0]["orders"][0]["tasks"][0]["kept_bytes"] == {"network": 5, "classes": 0}


def test_older_files_are_read_as_they_are(results, tmp_path):
    path = tmp_path / "older.json"
    path.write_text(json.dumps(results))
    assert read_results(path) == results


def test_more_than_256_classes_take_two_bytes(results, tmp_path):
    path = tmp_path / "results.json"
    labels = [f"class {number:03}" for number in range(300)]
    results["records"][1]["predictions"] = {"labels": labels, "truth": [299, 0], "courses": [[299, 256]]}
    write_results(path, results)
    assert read_results(path) == results


def test_without_matrices_there_is_no_file_of_them(results, tmp_path):
    path = tmp_path / "results.json"
    write_results(path, results | {"records": results["records"][:1]})
    assert not confusion_file(path).exists()
    assert not predictions_file(path).exists()
    assert "confusion" not in read_results(path)["records"][0]


@pytest.mark.parametrize("damage", [{"records": None}, {"records": [{"orders": [{"seed": 0, "tasks": []}]}]}])
def test_a_damaged_file_is_one_line(damage, results, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results | {"format": 2} | damage))
    with pytest.raises(ValueError, match="not a results file of `engram bench`: its columns are damaged"):
        read_results(path)
