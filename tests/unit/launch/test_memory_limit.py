"""A control group for one measurement: where it is made, what is written into it, and what is done without one."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from speechmeter.launch.memory_limit import limit_data, make_group

MIB = 2**20


def machine(folder: Path, *, second: bool, own: str, root: str = "/", parts: tuple[str, ...] = ()) -> Path:
    """What a process is told of its group, the tree of groups beside it: `parts` have `memory` below them."""
    tree, process = folder / "groups", folder / "process"
    process.mkdir()
    kind, options = ("cgroup2", "rw") if second else ("cgroup", "rw,memory")
    (process / "mountinfo").write_text(
        f"24 1 0:5 / /proc rw - proc proc rw\n30 23 0:26 {root} {tree} rw,nosuid - {kind} none {options}\n"
    )
    (process / "cgroup").write_text(f"0::{own}\n" if second else f"4:memory:{own}\n1:name=systemd:/\n")
    here = tree / own.removeprefix(root).lstrip("/")
    here.mkdir(parents=True)
    for place in (here, here.parent, tree):
        (place / "cgroup.procs").touch()
        (place / "cgroup.subtree_control").write_text("cpu pids\n")
    for part in parts:
        (tree / part / "cgroup.subtree_control").write_text("cpu memory pids\n")
    return process


def held(group):
    return {file.name: file.read_text() for file in group.path.iterdir()}


def test_beside_a_group_whose_parent_accounts_for_memory(tmp_path):
    group = make_group(512 * MIB, machine(tmp_path, second=True, own="/app.slice/shell.scope", parts=("app.slice",)))
    assert group.path.parent == tmp_path / "groups/app.slice"
    assert held(group) == {"memory.max": str(512 * MIB), "memory.swap.max": "0", "memory.oom.group": "1"}


def test_below_a_group_that_accounts_for_memory_itself(tmp_path):
    group = make_group(MIB, machine(tmp_path, second=True, own="/", parts=(".",)))
    assert group.path.parent == tmp_path / "groups"


def test_in_a_part_of_the_tree_that_a_container_sees(tmp_path):
    group = make_group(MIB, machine(tmp_path, second=True, own="/docker/abc/x", root="/docker/abc", parts=(".",)))
    assert group.path.parent == tmp_path / "groups"


def test_the_first_version_has_files_of_other_names(tmp_path):
    group = make_group(MIB, machine(tmp_path, second=False, own="/user"))
    assert group.path.parent == tmp_path / "groups/user"
    assert held(group) == {"memory.limit_in_bytes": str(MIB), "memory.memsw.limit_in_bytes": str(MIB)}


def test_none_where_memory_is_not_accounted(tmp_path):
    assert make_group(MIB, machine(tmp_path, second=True, own="/app.slice/shell.scope")) is None
    assert not list(tmp_path.rglob("speechmeter-*"))


def test_none_without_groups(tmp_path):
    assert make_group(MIB, tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("second", "file", "text", "kills"),
    [
        (True, "memory.events", "low 0\nmax 31\noom 1\noom_kill 2\noom_group_kill 1\n", 2),
        (False, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1),
        (True, "memory.events", "low 0\n", 0),
    ],
)
def test_kills_are_told_by_the_group(second, file, text, kills, tmp_path):
    group = make_group(MIB, machine(tmp_path, second=second, own="/", parts=(".",)))
    (group.path / file).write_text(text)
    assert group.oom_kills() == kills


def limits_of(group):
    code = (
        "import json, resource; from pathlib import Path; from speechmeter.launch.memory_limit import limit_data\n"
        f"limit_data(2**31, {group!r}, Path('process'))\n"
        "print(json.dumps([resource.getrlimit(getattr(resource, f'RLIMIT_{kind}'))[0] for kind in ('DATA', 'AS')]))"
    )
    return code


@pytest.mark.parametrize(("group", "limited"), [(None, True), ("speechmeter-1", False), ("speechmeter-2", True)])
def test_the_data_of_a_process_is_limited_unless_its_group_does_it(group, limited, tmp_path):
    (tmp_path / "process").mkdir()
    (tmp_path / "process/cgroup").write_text("0::/speechmeter-1\n")
    done = subprocess.run(
        [sys.executable, "-c", limits_of(group)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    data, address_space = json.loads(done.stdout)
    assert data == (2**31 if limited else -1)
    assert address_space == -1  # it would break the start of CUDA


def test_a_process_without_any_group_is_limited(tmp_path):
    code = limits_of("speechmeter-1")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0] == 2**31
    assert limit_data.__doc__


def test_the_kernel_holds_a_real_group_to_its_limit():
    group = make_group(64 * MIB)
    if group is None:
        pytest.skip("no control group of memory can be made on this machine")
    code = f"open({str(group.path / 'cgroup.procs')!r}, 'w').write('0')\nheld = bytearray(b'x') * (256 * 2**20)"
    try:
        died = subprocess.run([sys.executable, "-c", code], check=False)
        assert died.returncode == -signal.SIGKILL
        assert group.oom_kills() == 1
    finally:
        group.remove()
    deadline = time.monotonic() + 5
    while group.path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group.path.exists()
