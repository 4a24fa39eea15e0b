"""Other interpreters: what they are asked before anything is measured, and what they start with."""

import os
import sys

import pytest
from conftest import make_case
from other_interpreters import old_python, script

from speechmeter.core.errors import SubjectError, UnavailableError
from speechmeter.core.types import Spec
from speechmeter.launch.carried import carried
from speechmeter.launch.interpreters import answers, ask, environ_for, located, shown
from speechmeter.launch.preflight import preflight


def test_the_package_and_its_entry_points_are_carried_and_nothing_else():
    assert sorted(path.name.partition("-")[0] for path in carried().iterdir()) == ["speechmeter", "speechmeter"]
    assert "speechmeter.subjects" in next(carried().glob("*.dist-info/entry_points.txt")).read_text()


def test_an_interpreter_is_a_file_the_folder_of_an_environment_or_a_command(tmp_path, monkeypatch):
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert located("env/bin/python") == located("env") == located("env/../env/bin/python") == str(python)
    monkeypatch.setenv("PATH", str(python.parent))
    assert located("python") == str(python)
    assert located("no-such-python") == "no-such-python"


def test_variables_of_this_environment_are_not_passed_on():
    found = environ_for("/envs/a/bin/python", {"PATH": "/usr/bin", "PYTHONPATH": "/ours", "PYTHONHOME": "/x", "A": "1"})
    assert found == {
        "PATH": f"/envs/a/bin{os.pathsep}/usr/bin",
        "A": "1",
        "SPEECHMETER_INTERPRETER": "/envs/a/bin/python",
    }


def test_a_record_does_not_hold_the_name_of_a_user(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert shown("/home/ada/envs/a/bin/python") == "~/envs/a/bin/python"
    assert shown("/opt/a/bin/python") == "/opt/a/bin/python"


def test_the_other_interpreter_says_what_is_missing_there_and_what_is_wrong(tmp_path):
    good, absent, wrong = (
        make_case(name, subject=Spec(plugin=plugin, name=name, source=source))
        for name, plugin, source in (
            ("good", "python", f"{__file__}:ask"), ("absent", "s3prl", "apc"), ("wrong", "python", "no.py:make")
        )
    )  # fmt: skip
    said = ask(sys.executable, [good, absent, wrong])
    assert said.version == ".".join(map(str, sys.version_info[:3])) and not said.reason
    assert said.about(good) is None
    assert said.about(absent) == f"s3prl is not installed: {sys.executable} -m pip install s3prl"
    with pytest.raises(SubjectError, match=r"there is no file 'no.py'"):
        said.about(wrong)


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 7, 17), (3, 9, 2)])
def test_an_old_python_is_refused_with_the_way_out(version, tmp_path):
    said = ask(str(old_python(tmp_path / "python", version)))
    text = ".".join(map(str, version))
    assert said.version == text
    assert said.reason == (
        f"{tmp_path}/python is Python {text}, and a model is measured by Python 3.10 or later; "
        "use `runner:` to measure a program of any other kind"
    )


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("echo 'Python 3.7.17'\n", r"did not answer as a Python interpreter does \(exit code 0\): Python 3.7.17"),
        ("echo out of order >&2; exit 7\n", r"did not answer .* \(exit code 7\): out of order"),
        ("kill -9 $$\n", r"did not answer .* \(signal 9\): it printed nothing"),
        ("echo '{}' >&$3\n", r"did not answer"),
    ],
)
def test_what_is_no_interpreter_is_a_reason(lines, reason, tmp_path):
    python = script(tmp_path / "python", lines)
    case = make_case("there")
    with pytest.raises(UnavailableError, match=reason):
        preflight([case], elsewhere=answers([case], {"there": str(python)}))
    left_out = preflight([case, make_case(subject=Spec(plugin="log-mel", name="here"))],
                         elsewhere=answers([case], {"there": str(python)}))  # fmt: skip
    assert [skip.case for skip in left_out] == [case]


def test_an_interpreter_that_is_not_there_is_a_reason():
    assert ask("/no/such/python").reason == "cannot start the interpreter /no/such/python: No such file or directory"


def test_a_package_that_prints_spoils_no_answer(tmp_path):
    python = script(tmp_path / "python", f'echo "{{}}"; exec {sys.executable} "$@"\n')
    assert ask(str(python)).version


def test_a_list_of_any_length_is_answered(tmp_path):
    """A pipe would hold no more than 64 KiB."""
    cases = [make_case(f"model {n}", subject=Spec(plugin="s3prl", name=f"{n}" * 400, source="apc")) for n in range(200)]
    assert len(ask(sys.executable, cases).absent) == 200


def test_what_inputs_need_is_asked_too():
    said = ask(sys.executable)
    lacking = type(said)(version="3.11.0", python="python", lacks=("numpy", "soundfile"))
    assert said.about_input(make_case()) is None
    assert lacking.about_input(make_case()).startswith("numpy is not installed there")
    read = type(said)(version="3.11.0", python="python", lacks=("soundfile",))
    file = Spec(plugin="audio", name="a.wav", source="a.wav")
    assert read.about_input(make_case(workload=file)) is None
    assert "`boundary: +load` times how sound is read" in read.about_input(make_case(workload=file, boundary="+load"))
