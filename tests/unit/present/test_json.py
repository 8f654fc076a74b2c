import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from guider_engine.wire import LayerScore, Localization
from guider_ls.errors import InputError
from guider_ls.present.json import error_to_json, map_to_json, plain, to_json
from guider_ls.present.report import Report


def strict(value: dict[str, Any]) -> dict[str, Any]:
    """As a reader in another language gets it."""
    read: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return read


def test_the_contract(ranking: Report) -> None:
    body = strict(to_json(ranking))
    assert body["schema"] == 1
    assert (body["method"], body["formula"], body["aggregation"]) == ("guider", "ochiai", "mean-gini")
    assert (body["outcome"], body["task"]) == ("ranking", "classification")
    assert body["task_reason"] == "labels are whole numbers"
    assert body["tests"] == {"total": 10, "passed": 7, "failed": 3, "available": None}
    assert body["warnings"] == [{"code": "few-failing-tests", "message": "Only 3 tests fail."}]
    assert body["timings"] == {"model": 0.5}
    assert body["versions"] == {"keras": "3.0"}
    assert body["inputs"]["threshold"] == 0.1
    assert body["inputs"]["test_data"] == list(ranking.localization.inputs.test_data)
    assert [test["index"] for test in body["examples"]] == [4, 1]
    assert [e["index"] for e in body["layers"]] == [0, 1, 2, 3]


def test_a_layer(ranking: Report) -> None:
    layer = strict(to_json(ranking))["layers"][1]
    keys = (
        "index",
        "path",
        "name",
        "class_name",
        "score",
        "rank",
        "tied",
        "neurons",
        "sampled",
        "suspicious",
    )
    assert [layer[key] for key in keys] == [1, [1], "dense_1", "Dense", 0.625, 1, True, 64, 8, 5]
    assert (layer["dead"], layer["saturated"]) == (1, 0)
    assert layer["sites"] == [
        {
            "file": ranking.program,
            "line": 4,
            "column": 20,
            "end_line": 4,
            "end_column": 54,
            "reason": "second Dense",
        }
    ]
    assert layer["top_neurons"][0]["position"] == [7]
    assert layer["top_neurons"][0]["passing"] == {"tests": 7, "mean": None, "std": None}


def test_what_was_not_mapped_is_told(ranking: Report) -> None:
    body = strict(to_json(ranking))
    assert body["layers"][0]["differences"] == [{"argument": "units", "source": "8", "model": "16"}]
    block = body["layers"][2]
    assert (block["sites"], block["unmatched"]) == ([], "built elsewhere")
    (inner,) = block["inner"]
    assert (inner["index"], inner["path"], inner["rank"]) == (2, [2, 0], 1)
    (site,) = body["unmatched_sites"]
    assert (site["line"], site["reason"]) == (5, "the model has no Block")


def test_no_signal_has_no_ranks(silent: Report) -> None:
    body = strict(to_json(silent))
    assert body["outcome"] == "no-failure-signal"
    assert {(layer["score"], layer["rank"]) for layer in body["layers"]} == {(None, None)}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(changed: Callable[..., Report], ranking: Report, number: float) -> None:
    def spoiled(score: LayerScore) -> LayerScore:
        values = {f: getattr(score, f) for f in LayerScore.__slots__}
        return LayerScore(**{**values, "suspiciousness": number})

    localization: Localization = ranking.localization
    body = to_json(
        changed(layers=tuple(map(spoiled, localization.layers)), timings={"model": number}, versions={})
    )
    assert strict(body)["layers"][0]["score"] is None
    assert strict(body)["timings"] == {"model": None}


@hypothesis_settings(deadline=None)
@given(st.recursive(st.floats() | st.binary() | st.complex_numbers() | st.none(), st.lists))
def test_anything_becomes_json(value: Any) -> None:
    json.dumps(plain({"key": value, 3: (value,)}), allow_nan=False)


def test_a_map_without_a_model(ranking: Report) -> None:
    body = strict(map_to_json("/p/train.py", ranking.source))
    assert [(s["line"], s["class_name"], s["layers"]) for s in body["sites"]] == [
        (3, "Dense", []),
        (4, "Dense", []),
        (5, "Block", []),
        (6, "Dense", []),
    ]
    assert body["sites"][2]["arguments"] == {"width": {"code": "WIDTH"}}
    assert body["model"] is None


def test_a_map_with_a_model(ranking: Report) -> None:
    body = strict(map_to_json("/p/train.py", ranking.source, ranking.localization.model, ranking.mapping))
    assert [[layer["name"] for layer in s["layers"]] for s in body["sites"]] == [
        ["dense"],
        ["dense_1"],
        [],
        ["out<3>"],
    ]
    assert body["sites"][2]["unmatched"] == "the model has no Block"
    assert [layer["path"] for layer in body["unmatched_layers"]] == [[2], [2, 0]]
    assert body["unmatched_layers"][0]["candidates"][0]["line"] == 5


def test_an_error() -> None:
    assert error_to_json(InputError("model-missing", "No model.")) == {
        "schema": 1,
        "error": {"code": "model-missing", "message": "No model."},
    }
