from __future__ import annotations

from copy import copy

import pytest

torch = pytest.importorskip("torch")

from speechmeter.meters.recording.attribution import attribute  # noqa: E402
from speechmeter.meters.recording.events import events_of  # noqa: E402
from speechmeter.meters.recording.profiler import module_ranges, named_modules  # noqa: E402


def hook_tables(model):
    modules = [
        {name: copy(table) for name, table in vars(module).items() if name.endswith(("hooks", "with_kwargs", "called"))}
        for module in model.modules()
    ]
    return modules, [parameter._post_accumulate_grad_hooks for parameter in model.parameters()]


def rows(call, roots):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiled, module_ranges(roots):
        call()
    return attribute(events_of(profiled))[0].rows


class Raises(torch.nn.Module):
    def forward(self, value):
        raise ValueError("as asked")


def test_hook_tables_are_as_before_after_use_and_after_an_error():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), Raises())
    model[0].register_forward_hook(lambda module, args, output: None)
    model[0].register_full_backward_hook(lambda module, before, after: None)
    model[0].weight.register_post_accumulate_grad_hook(lambda parameter: None)
    before = hook_tables(model)

    with pytest.raises(ValueError, match="as asked"), module_ranges({"model": model}):
        model(torch.ones(1, 2))

    assert hook_tables(model) == before


def test_hooks_that_are_there_keep_working_and_what_they_change_counts():
    seen = []
    model = torch.nn.Linear(2, 2)
    model.register_forward_pre_hook(lambda module, args: seen.append("before"))
    model.register_forward_hook(lambda module, args, output: output + 1)
    value = torch.ones(1, 2)
    plain = model(value)

    with module_ranges({"model": model}):
        hooked = model(value)

    assert torch.equal(plain, hooked)
    assert seen == ["before", "before"]


def test_a_module_that_raises_closes_its_range_and_the_caller_goes_on():
    class Tries(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bad, self.good = Raises(), torch.nn.Linear(2, 2)

        def forward(self, value):
            with pytest.raises(ValueError, match="as asked"):
                self.bad(value)
            return self.good(value)

    model = Tries()
    found = {row.owner.module: row.calls for row in rows(lambda: model(torch.ones(1, 2)), {"model": model})}

    assert found["model"] == found["model.bad"] == found["model.good"] == 1


def test_a_prehook_that_raises_leaves_later_ranges_in_order():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))

    def refuse(module, args):
        raise ValueError("not now")

    model[0].register_forward_pre_hook(refuse)

    def call():
        with pytest.raises(ValueError, match="not now"):
            model(torch.ones(1, 2))
        model[1](torch.ones(1, 2))

    found = {row.owner.module: row.calls for row in rows(call, {"model": model})}
    assert found["model.1"] == 1


def test_shared_module_has_its_first_path_and_all_its_calls():
    shared = torch.nn.Linear(2, 2)
    model = torch.nn.Sequential(shared, torch.nn.Sequential(shared))

    assert [*named_modules({"model": model})] == ["model", "model.0", "model.1"]
    found = {row.owner.module: row.calls for row in rows(lambda: model(torch.ones(1, 2)), {"model": model})}
    assert found["model.0"] == 2


def test_compiled_block_is_one_path_and_its_inside_has_none():
    block = torch.nn.Sequential(torch.nn.Linear(2, 2))
    told = torch.nn.Sequential(torch.nn.Linear(2, 2))
    told.compile(backend="eager")
    model = torch.nn.Sequential(torch.compile(block, backend="eager"), told)
    call = told._compiled_call_impl

    with module_ranges({"model": model}) as classes:
        assert classes == {"model": "Sequential", "model.0": "Sequential", "model.1": "Sequential"}
    assert told._compiled_call_impl is call


def test_blocks_compiled_one_by_one_have_rows_forward_and_backward():
    told = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
    told.compile(backend="aot_eager")
    model = torch.nn.Sequential(torch.compile(torch.nn.Linear(8, 8), backend="aot_eager"), told, torch.nn.Linear(8, 8))
    value = torch.rand(4, 8)
    model(value).sum().backward()  # compiles

    found = {
        (row.owner.module, row.owner.label, row.direction)
        for row in rows(lambda: model(value).sum().backward(), {"model": model})
    }

    blocks = {(f"model.{n}", "", direction) for n in range(3) for direction in ("forward", "backward")}
    assert blocks <= found
    assert not {label for _, label, _ in found if label}


def test_what_is_no_torch_module_is_left_alone():
    assert named_modules({"session": object()}) == {}
