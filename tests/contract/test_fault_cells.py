"""Each cell of the fault matrix is tried by `tests/campaign/test_fault_matrix.py`, or cannot occur for a reason."""

import pytest
from fault_matrix import (
    IN_A_MODEL,
    IN_PREFLIGHT,
    MEASURING,
    OF_ALL,
    OF_THE_MODEL,
    OF_THE_RUN,
    PHASES,
    PREFLIGHT,
    WRITING,
    impossible,
)

KINDS = {*OF_THE_MODEL, *OF_THE_RUN}
CANNOT_OCCUR = {
    PREFLIGHT: {
        "bad-alloc", "memory-limit", "cuda-oom", "cuda-sticky", "ignores-signals", "loud", "thread", "processes",
        "guard-killed", "template-killed",
    },
    **{phase: set() for phase in MEASURING},
    WRITING: {*OF_THE_MODEL, "guard-killed", "template-killed"},
}  # fmt: skip


@pytest.mark.parametrize("phase", PHASES)
def test_only_these_faults_cannot_occur(phase):
    assert {kind for kind in KINDS if impossible(kind, phase)} == CANNOT_OCCUR[phase]


def test_the_matrix_has_no_unexplained_blank():
    tried = [*IN_A_MODEL, *IN_PREFLIGHT, *OF_ALL]
    assert len(tried) == len(set(tried))
    cells = {(kind, phase) for kind in KINDS for phase in PHASES}
    assert set(tried) == {(kind, phase) for kind, phase in cells if kind not in CANNOT_OCCUR[phase]}
