"""What a run would do is found out under the conditions of the run."""

import pytest

from speechmeter.api import runs
from speechmeter.api.runs import Options, check_study
from speechmeter.launch.offline import is_offline
from speechmeter.plan.study import study_from_python


@pytest.mark.parametrize("offline", [False, True])
def test_a_dry_run_keeps_off_the_network_when_told(offline, workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    seen = []
    monkeypatch.setattr(runs, "preflight", lambda *args, **options: seen.append(is_offline()) or [])
    check_study(study_from_python({"models": ["python:fakes.py:nothing"]}), Options(offline=offline))
    assert seen == [offline]
    assert not is_offline()
