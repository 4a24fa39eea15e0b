"""Profiling functions, classes, objects and loops: the same tables, results and exceptions passed on, nothing left."""

import threading

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from torch.nn.modules import module as torch_module  # noqa: E402
from trace_rules import breaches  # noqa: E402

import speechmeter  # noqa: E402
from speechmeter.core.errors import InputError  # noqa: E402
from speechmeter.core.memory_timeline import read_timeline  # noqa: E402
from speechmeter.core.traces import find_trace, read_trace  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.last = torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


class Brain:
    """As SpeechBrain's: `fit` and `evaluate` over loaders, each batch by a method of its own."""

    def __init__(self):
        self.modules = torch.nn.ModuleDict({"encoder": Net()})
        self.losses = []

    def fit_batch(self, batch):
        loss = self.modules.encoder(batch).square().mean()
        loss.backward()
        self.losses.append(loss.item())
        return loss.detach()

    def evaluate_batch(self, batch):
        with torch.no_grad():
            return self.modules.encoder(batch).mean()

    def fit(self, batches):
        for batch in batches:
            self.fit_batch(batch)
        return len(self.losses)

    def evaluate(self, batches):
        return [self.evaluate_batch(batch) for batch in batches]


def batches(count=1):
    return [torch.randn(4, 8) for _ in range(count)]


def step(net, x):
    loss = net(x).sum()
    loss.backward()
    return loss.detach()


def paths(profile):
    """Modules that have a time, with the directions they have it in."""
    return {
        m.scope.removeprefix("module:"): {way for way in ("forward", "backward") if any(m.notes.get(way, ()))}
        for m in profile.record.measurements
        if m.metric == "time_module.v1" and m.scope.startswith("module:")
    }


BOTH = {"forward", "backward"}


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not torch.autograd._profiler_enabled()
    assert not torch_module._global_forward_pre_hooks
    assert not torch_module._global_forward_hooks


def hooks(model):
    return [(m._forward_hooks, m._forward_pre_hooks) for m in model.modules()] + [
        p._post_accumulate_grad_hooks for p in model.parameters()
    ]


def test_a_function_returns_what_it_always_did_and_has_a_profile():
    net, x = Net(), torch.randn(4, 8)
    profiled = speechmeter.profile(step)
    before = str(hooks(net))
    assert profiled(net, x).equal(step(net, x))
    assert str(hooks(net)) == before
    assert (profiled.__name__, profiled.__wrapped__) == ("step", step)
    assert profiled.profile.steps == 1
    assert paths(profiled.profile) == {"net": BOTH, "net.first": BOTH, "net.last": BOTH}  # of the root, the relu


def test_modules_that_nobody_named_are_found_when_they_are_called():
    net, other = Net(), torch.nn.Linear(8, 1)

    @speechmeter.profile
    def both():
        x = torch.randn(4, 8)
        return (net(x) + other(x)).sum().backward()

    both()
    assert set(paths(both.profile)) == {"Net", "Net.first", "Net.last", "Linear"}
    assert paths(both.profile)["Net.first"] == BOTH
    calls = {m.scope: m.notes["calls"] for m in both.profile.record.measurements if m.metric == "time_module.v1"}
    assert calls["module:Net"] == calls["module:Net.first"] == calls["module:Linear"] == 1


def test_a_method_names_the_modules_of_its_object():
    class Owner:
        def __init__(self):
            self.encoder = Net()

        @speechmeter.profile
        def run(self, x):
            return self.encoder(x)

    owner = Owner()
    assert owner.run(torch.zeros(1, 8)).equal(owner.encoder(torch.zeros(1, 8)))
    assert set(paths(Owner.run.profile)) == {"encoder", "encoder.first", "encoder.last"}


def test_only_the_first_calls_are_recorded():
    calls = []

    @speechmeter.profile(active=2)
    def count(x):
        calls.append(torch.autograd._profiler_enabled())
        return x + 1

    assert [int(count(torch.tensor(n))) for n in range(4)] == [1, 2, 3, 4]
    assert calls == [True, True, False, False]
    assert count.profile.steps == 2


@pytest.mark.parametrize("above", [True, False])
def test_a_schedule_stands_above_or_below(above):
    def add(x):
        return x + 1

    chosen = speechmeter.schedule(wait=1, warmup=1, active=1)
    add = chosen(speechmeter.profile(add)) if above else speechmeter.profile(chosen(add))
    for count in range(3):
        assert add.profile.steps == 0
        add(torch.tensor(count))
    assert add.profile.steps == 1
    add(torch.tensor(4))
    assert add.profile.steps == 1


def test_an_exception_passes_through_and_what_ran_is_kept():
    net = Net()

    @speechmeter.profile
    def fails(x):
        net(x)
        raise KeyError("as ever")

    with pytest.raises(KeyError, match="as ever") as raised:
        fails(torch.randn(4, 8))
    assert fails.profile.failed is raised.value
    assert (fails.profile.record.status, fails.profile.record.reason) == ("error", "KeyError: 'as ever'")
    assert "Net.first" in paths(fails.profile)


def test_a_module_that_raises_leaves_no_range_open():
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("inside")

    net = torch.nn.Sequential(torch.nn.Linear(8, 8), Fails())
    before = str(hooks(net))
    with pytest.raises(ValueError, match="inside"), speechmeter.profile() as p:
        net(torch.randn(4, 8))
    assert str(hooks(net)) == before
    assert "Sequential.0" in paths(p)
    assert breaches(p.trace.events) == []


def test_a_class_with_fit_and_evaluate_is_recorded_batch_by_batch():
    given = batches(4)
    plain, profiled = Brain(), speechmeter.profile(Brain)()
    profiled.modules.load_state_dict(plain.modules.state_dict())
    assert profiled.fit(given) == plain.fit(given) == 4
    assert profiled.losses == plain.losses
    assert profiled.profile.steps == 3
    assert set(paths(profiled.profile)) == {"encoder", "encoder.first", "encoder.last"}
    assert paths(profiled.profile)["encoder.last"] == BOTH
    assert "fit_batch" not in vars(profiled)
    torch.testing.assert_close(profiled.evaluate(given), plain.evaluate(given))


def test_a_decorated_class_is_the_class_it_was():
    profiled = speechmeter.profile(Brain)
    assert issubclass(profiled, Brain)
    assert (profiled.__name__, profiled.__qualname__, profiled.__module__) == ("Brain", "Brain", Brain.__module__)
    assert not hasattr(Brain, "profile")
    assert "fit" in vars(Brain)
    assert vars(Brain)["fit"].__qualname__ == "Brain.fit"
    assert not hasattr(vars(Brain)["fit"], "__wrapped__")


def test_evaluate_alone_has_no_backward():
    brain = speechmeter.profile_optimiser(Brain)()
    brain.evaluate(batches(2))
    assert brain.profile.steps == 2
    assert paths(brain.profile)["encoder"] == {"forward"}
    assert brain.profile.timeline is not None


def test_a_module_class_is_recorded_call_by_call():
    @speechmeter.profile
    class Own(Net):
        pass

    own, x = Own(), torch.randn(4, 8)
    assert own(x).equal(own.last(torch.relu(own.first(x))))
    assert set(paths(own.profile)) == {"Own", "Own.first", "Own.last"}
    assert own.profile.steps == 1


def test_a_live_object_is_recorded_and_left_as_it_is():
    net, x = Net(), torch.randn(4, 8)
    profiled = speechmeter.profile(net)
    before, methods = str(hooks(net)), dict(vars(net))
    assert profiled(x).equal(net(x))
    assert profiled.forward(x).equal(net(x))
    assert list(profiled.parameters()) == list(net.parameters())
    assert (str(hooks(net)), dict(vars(net))) == (before, methods)
    assert profiled.profile.steps == 2
    assert set(paths(profiled.profile)) == {"Net", "Net.first", "Net.last"}
    profiled.eval()
    assert not net.training


def test_a_live_brain_is_recorded_batch_by_batch():
    brain = Brain()
    profiled = speechmeter.profile(brain, active=1)
    assert profiled.fit(batches(2)) == 2
    assert profiled.profile.steps == 1
    assert set(vars(brain)) == {"modules", "losses"}


def test_a_block_is_one_step():
    net = Net()
    with speechmeter.profile() as p:
        step(net, torch.randn(4, 8))
    assert p.steps == 1
    assert paths(p)["Net.first"] == BOTH


def test_steps_of_a_loop_are_told_apart_and_what_follows_is_none():
    net = Net()
    with speechmeter.profile(modules=net, warmup=1, active=2) as p:
        for x in batches(3):
            step(net, x)
            p.step()
    assert p.steps == 2
    total = next(m for m in p.record.measurements if m.metric == "time_module.v1" and m.scope == "total")
    assert len(total.values) == 2
    marks = [e for e in p.trace.events if e["name"].startswith("ProfilerStep") and e["cat"] == "user_annotation"]
    assert len(marks) == 2
    p.step()  # outside of the block: nothing happens
    assert p.steps == 2


def test_every_way_gives_the_same_tables():
    net, x = Net(), torch.randn(4, 8)
    with speechmeter.profile(modules={"net": net}) as p:
        step(net, x)
    decorated = speechmeter.profile(step)
    decorated(net, x)
    for metric in ("modules", "operators", "split"):
        one, other = (found.table(metric).splitlines() for found in (p, decorated.profile))
        assert one[2] == other[2]  # the heading
        assert len(one) > 5
    assert set(paths(p)) == set(paths(decorated.profile))


def test_labels_are_rows():
    with speechmeter.profile(modules={}) as p, speechmeter.label("mine"):
        torch.ones(8).sum()
    assert "label:mine" in {m.scope for m in p.record.measurements}


def test_an_analyst_sees_memory_and_counts_in_the_warm_up():
    net = Net()
    with speechmeter.profile_analyst(modules={"net": net}, warmup=1, active=1) as p:
        for x in batches(2):
            net(x)
            p.step()
    found = {(m.metric, m.scope): m for m in p.record.measurements}
    assert found["flops.v1", "total"].values == (2 * 4 * 8 * 8 + 2 * 4 * 8 * 1,)
    assert found["flops.v1", "module:net.first"].values == (2 * 4 * 8 * 8,)
    assert found["memory_tensors_peak.v1", "total"].values[0] >= 4 * 8 * 4
    assert any(event.get("cat") == "python_function" for event in p.trace.events)


def test_without_a_warm_up_flops_are_not_guessed():
    with speechmeter.profile_analyst() as p:
        torch.ones(4, 4) @ torch.ones(4, 4)
    found = next(m for m in p.record.measurements if m.metric == "flops.v1")
    assert "warm-up" in found.unavailable


@pytest.mark.parametrize("above", [True, False])
def test_export_writes_everything(tmp_path, above):
    def work(net, x):
        return step(net, x)

    kept = speechmeter.export(tmp_path / "made")
    made = kept(speechmeter.profile_optimiser(work)) if above else speechmeter.profile_optimiser(kept(work))
    made(Net(), torch.randn(4, 8))
    names = {str(path.relative_to(tmp_path / "made")) for path in (tmp_path / "made").rglob("*") if path.is_file()}
    assert names == {
        "trace/work.pt.trace.json.gz", "trace/stacks.txt", "memory.json", "operators.txt", "ranges.txt",
        "operators-by-module.txt", "operators-by-stack.txt", "tables.md",
    }  # fmt: skip
    assert breaches(read_trace(find_trace(tmp_path / "made")).events) == []
    assert read_timeline(tmp_path / "made" / "memory.json").growth_bytes > 0
    assert "net.first" in (tmp_path / "made" / "operators-by-module.txt").read_text()


def test_a_bare_export_goes_below_profiles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @speechmeter.export
    @speechmeter.profile
    def work():
        return torch.ones(4).sum()

    work()
    assert (tmp_path / "profiles" / "work" / "tables.md").is_file()


def test_a_function_inside_a_profiled_one_is_part_of_it():
    inner = speechmeter.profile(lambda x: x + 1)

    @speechmeter.profile
    def outer(x):
        return inner(x) * 2

    assert int(outer(torch.tensor(1))) == 4
    assert outer.profile.steps == 1
    assert inner.profile.steps == 0
    assert "another profiler" in inner.profile.record.reason
    assert "another profiler" in inner.profile.table("modules")


def test_a_recursive_function_is_one_step():
    @speechmeter.profile
    def down(n):
        return torch.ones(1) if n == 0 else down(n - 1) + 1

    assert int(down(3)) == 4
    assert down.profile.steps == 1


def test_somebody_elses_profiler_goes_on():
    work = speechmeter.profile(lambda: torch.ones(4) + 1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        work()
    assert any(event.name == "aten::add" for event in theirs.events())
    assert work.profile.steps == 0


def test_nothing_recorded_says_so():
    net = speechmeter.profile(Net())
    assert "no step was recorded" in net.profile.table("modules")
    with pytest.raises(InputError, match="no step was recorded"):
        net.profile.export("nowhere")


def test_code_without_torch_runs_as_ever():
    plain = speechmeter.profile(lambda text: text.upper())
    assert plain("a") == "A"
    assert "no torch module was called" in plain.profile.table("modules")


def test_another_thread_may_call_meanwhile():
    net, x, results = Net(), torch.randn(4, 8), []
    profiled = speechmeter.profile(net)
    thread = threading.Thread(target=lambda: results.append(profiled(x)))
    with speechmeter.profile():
        thread.start()
        thread.join()
    assert results[0].equal(net(x))


def test_what_cannot_be_profiled_is_refused():
    async def later():
        return 1

    def items():
        yield 1

    class Taken:
        profile = 3

        def fit(self):
            return 1

    for wrong, why in ((later, "before its work"), (items, "before its work"), (Taken, "of its own"), (3, "nothing")):
        with pytest.raises(InputError, match=why):
            speechmeter.profile(wrong)
    with pytest.raises(InputError, match="has none of fit"):
        speechmeter.profile(type("Empty", (), {}))
    with pytest.raises(InputError, match="no option 'warm'"):
        speechmeter.profile(warm=1)


def test_torchs_settings_are_as_before():
    def settings():
        return (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype(), torch.initial_seed())

    before, state = settings(), torch.get_rng_state()
    work = speechmeter.profile_analyst(lambda: torch.ones(4).sum())
    work()
    assert settings() == before
    assert torch.get_rng_state().equal(state)
