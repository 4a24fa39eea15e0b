"""Names of items come from data: what is written for them stays in the folder of the case."""

import numpy as np
import pytest

from speechmeter.core.outputs import Output
from speechmeter.core.types import Batch, Speech
from speechmeter.engine.outputs import write_outputs
from speechmeter.meters.traces.meter import file_name

NAMES = ("../../outside", "/tmp/outside", "..", "a/../../b", "nul\0", "x" * 5000, "-rf", "~/x", "a\nb")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_items_stay_in_the_folder(name, tmp_path):
    folder = tmp_path / "run/artifacts/case"
    sound = Speech(samples=np.zeros(160, np.float32), rate=16_000)
    batch = Batch(data=None, items=1, ids=(name,))
    write_outputs(folder, [(batch, Output(speech=(sound,), lines=("said",)))], speech=True)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == 2
    assert all(path.parent == folder for path in made)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_models_name_files_and_no_folders(name):
    made = file_name(name)
    assert made
    assert "/" not in made
    assert not made.startswith((".", "-"))
    assert len(made) <= 80
