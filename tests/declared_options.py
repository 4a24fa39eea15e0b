"""A workload is asked as preflight asks it: its declared options first, then its own check."""

from speechmeter.core.errors import InputError


def check_as_in_a_plan(workload, case):
    given = case.workload.options
    for option in workload.options:
        if option.name in given and (wrong := option.check(given[option.name])) is not None:
            raise InputError(wrong)
    workload.check(case)
