"""A manifest with the simulator in place of its engine asks for what the simulator needs."""

from pathlib import Path

import pytest
import yaml

from tandem_cli.simulate import simulated

_SAMPLES = sorted((Path(__file__).parents[3] / "crds" / "samples").glob("*.yaml"))


@pytest.mark.parametrize("sample", _SAMPLES, ids=lambda path: path.stem)
def test_what_only_the_real_engine_needs_is_left_out_and_the_rest_stays(sample: Path) -> None:
    written = yaml.safe_load(sample.read_text())
    changed = simulated(written)["spec"]
    assert changed["engine"]["type"] == "Simulator"
    assert not {"image", "args"} & changed["engine"].keys()
    for name in {"prefill", "decode"} & changed.keys():
        role = changed[name]
        assert not {"cpu", "memory"} & role.get("resources", {}).keys()
        assert not any("resources" in each for each in role.get("template", {}).get("spec", {}).get("containers", ()))
        assert role.get("parallelism") == written["spec"][name].get("parallelism")
    kept = ("model", "profile", "kvTransfer", "router", "slo", "autoscaling")
    assert {name: changed.get(name) for name in kept} == {name: written["spec"].get(name) for name in kept}


def test_the_manifest_itself_is_not_changed() -> None:
    written = yaml.safe_load(_SAMPLES[0].read_text())
    before = yaml.safe_dump(written)
    simulated(written)
    assert yaml.safe_dump(written) == before
