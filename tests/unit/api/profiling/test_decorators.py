"""Profiling functions, classes, objects and loops: the same tables, results and exceptions passed on, nothing left."""

import json
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


def test_with_no_warm_up_only_the_first_calls_are_recorded():
    calls = []

    @speechmeter.profile(warmup=0, active=2)
    def count(x):
        calls.append(torch.autograd._profiler_enabled())
        return x + 1

    assert [int(count(torch.tensor(n))) for n in range(4)] == [1, 2, 3, 4]
    assert calls == [True, True, False, False]
    assert count.profile.steps == 2


def parts(profile):
    return {m.scope.removeprefix("label:") for m in profile.record.measurements if m.scope.startswith("label:")}


def test_the_first_cold_step_is_there_only_until_another_one_is():
    @speechmeter.profile(active=2)
    def work(number):
        with speechmeter.label(f"part-{number}"):
            return torch.ones(8).sum()

    work(0)
    assert (work.profile.steps, work.profile.cold, parts(work.profile)) == (1, True, {"part-0"})
    assert "work: only the first step ran" in work.profile.table("modules")
    for number in (1, 2, 3):
        work(number)
    assert (work.profile.steps, work.profile.cold, parts(work.profile)) == (2, False, {"part-1", "part-2"})
    assert "only the first step ran" not in work.profile.table("modules")


def test_the_cold_step_of_a_loop_is_left_out_too():
    with speechmeter.profile() as p:
        for number in range(3):
            with speechmeter.label(f"part-{number}"):
                torch.ones(8).sum()
            p.step()
    assert parts(p) == {"part-1", "part-2"}
    assert [recording.steps for recording in p.recordings] == [2]


def test_a_profile_and_its_modules_can_be_named():
    encoder, decoder = Net(), torch.nn.Linear(1, 1)

    @speechmeter.profile(modules={"encoder": encoder}, name="mystep")
    def work(net, x):
        return decoder(net(x))

    work(encoder, torch.randn(4, 8))
    assert work.profile.name == work.profile.record.case.subject.name == "mystep"
    assert set(paths(work.profile)) == {"encoder", "encoder.first", "encoder.last", "Linear"}


def test_a_named_module_keeps_its_name_inside_another_one():
    net = Net()

    @speechmeter.profile(modules={"inner": net.first})
    def work(x):
        return net(x).sum().backward()

    work(torch.randn(4, 8))
    assert set(paths(work.profile)) == {"inner", "Net", "Net.last"}
    assert paths(work.profile)["inner"] == BOTH
    calls = {m.scope: m.notes["calls"] for m in work.profile.record.measurements if m.metric == "time_module.v1"}
    assert calls["module:inner"] == calls["module:Net"] == 1


def test_classes_and_objects_can_be_named_with_their_modules():
    net = Net()
    brain = speechmeter.profile(Brain, name="mine", modules={"mine": net})()
    brain.modules["encoder"] = net
    brain.fit(batches(2))
    live = speechmeter.profile(net, name="live", modules={"own": net})
    live(torch.randn(4, 8))
    assert (brain.profile.name, live.profile.name) == ("mine", "live")
    assert set(paths(brain.profile)) == {"mine", "mine.first", "mine.last"}
    assert set(paths(live.profile)) == {"own", "own.first", "own.last"}


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
    assert profiled.profile.methods["fit"].seen == 4
    assert set(paths(profiled.profile)) == {"encoder", "encoder.first", "encoder.last"}
    assert paths(profiled.profile)["encoder.last"] == BOTH
    assert "fit_batch" not in vars(profiled)
    torch.testing.assert_close(profiled.evaluate(given), plain.evaluate(given))


class Trained(Brain):
    """Validates at the end of `fit`, as SpeechBrain's does."""

    def fit(self, batches, valid=()):
        super().fit(batches)
        return [self.evaluate_batch(batch) for batch in valid]


def test_evaluate_after_fit_is_recorded_apart(tmp_path):
    brain = speechmeter.profile(Trained)()
    brain.fit(batches(6), batches(2))
    brain.evaluate(batches(3))
    found = brain.profile.methods
    assert {name: (one.seen, one.steps) for name, one in found.items()} == {
        "fit": (6, 3),
        "fit.evaluate_batch": (2, 1),
        "evaluate": (3, 2),
    }
    assert brain.profile.steps == 6
    assert [record.case.subject.name for record in brain.profile.records] == [f"Trained.{name}" for name in found]
    assert paths(found["fit"])["encoder"] == BOTH
    assert paths(found["evaluate"])["encoder"] == paths(found["fit.evaluate_batch"])["encoder"] == {"forward"}
    shown = brain.profile.table("modules")
    assert all(f"### modules · {one.name} · cpu" in shown for one in found.values())
    with pytest.raises(InputError, match=r"profiles: fit, .*methods\['fit'\]"):
        _ = brain.profile.record
    brain.profile.export(tmp_path)
    assert {path.parent.name for path in tmp_path.rglob("tables.md")} == {"fit", "fit-evaluate_batch", "evaluate"}


def test_evaluate_called_by_fit_is_recorded_as_evaluate():
    class Both(Brain):
        def fit(self, given):
            super().fit(given)
            return self.evaluate(given)

    brain = speechmeter.profile(Both)()
    brain.fit(batches(3))
    assert {name: one.steps for name, one in brain.profile.methods.items()} == {"fit": 2, "evaluate": 2}


def test_a_fit_without_its_batches_says_so():
    class Own(Brain):
        def fit(self, given):
            return len(given)

    brain = speechmeter.profile(Own)()
    assert brain.fit(batches(2)) == 2
    with pytest.raises(InputError, match="fit: no step was recorded: fit did not call fit_batch"):
        brain.profile.export("nowhere")
    assert "fit did not call fit_batch or evaluate_batch" in brain.profile.table("modules")


def test_what_a_method_raised_is_in_its_own_record():
    class Fails(Brain):
        def evaluate_batch(self, batch):
            raise KeyError("as ever")

    brain = speechmeter.profile(Fails)()
    brain.fit(batches(2))
    with pytest.raises(KeyError):
        brain.evaluate(batches(1))
    assert [record.status for record in brain.profile.records] == ["ok", "error"]


def test_hooks_choose_the_methods_of_a_class():
    brain = speechmeter.profile(Brain, class_hooks=["evaluate"])()
    brain.fit(batches(2))
    assert brain.profile.steps == 0
    brain.evaluate(batches(2))
    assert list(brain.profile.methods) == ["evaluate"]
    with pytest.raises(InputError, match=r"Brain has no method 'evalute'; did you mean 'evaluate'\?"):
        speechmeter.profile(Brain, class_hooks=["fit", "evalute"])


class Pretrained(torch.nn.Module):
    """As SpeechBrain's interfaces: a module with methods of its own, and neither `fit` nor `evaluate`."""

    def __init__(self):
        super().__init__()
        self.mods = torch.nn.ModuleDict({"encoder": Net()})
        self.sample_rate = 16000

    @property
    def costly(self):
        raise AssertionError("a property is not evaluated")

    def encode_batch(self, sound):
        return self.mods.encoder(sound)

    def transcribe_batch(self, sound):
        return self.encode_batch(sound).argmax(-1)

    def describe(self):
        return f"{self.sample_rate} Hz"

    async def listen(self):
        return 1


def test_every_public_method_of_a_live_object_is_recorded():
    asr, x = Pretrained().eval(), torch.randn(4, 8)
    profiled = speechmeter.profile(asr)
    for _ in range(3):
        assert profiled.transcribe_batch(x).equal(asr.transcribe_batch(x))
    profiled.encode_batch(x)
    assert profiled.describe() == "16000 Hz"
    assert profiled.state_dict().keys() == asr.state_dict().keys()
    profiled.listen().close()
    found = profiled.profile.methods
    assert {name: (one.steps, one.cold) for name, one in found.items()} == {
        "transcribe_batch": (2, False),
        "encode_batch": (1, True),
    }
    assert "Pretrained.mods.encoder.first" in paths(found["transcribe_batch"])


def test_hooks_choose_the_methods_of_a_live_object():
    profiled = speechmeter.profile(Pretrained(), class_hooks=["encode_batch"])
    profiled.transcribe_batch(torch.randn(4, 8))
    profiled.encode_batch(torch.randn(4, 8))
    assert list(profiled.profile.methods) == ["encode_batch"]
    with pytest.raises(InputError, match="no method 'transcribe'; did you mean 'transcribe_batch'"):
        speechmeter.profile(Pretrained(), class_hooks=["transcribe"])
    with pytest.raises(InputError, match="listen returns before its work is done"):
        speechmeter.profile(Pretrained(), class_hooks=["listen"])


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
    brain.evaluate(batches(3))
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


def test_tab_completion_of_a_live_object_finds_its_own_names_and_the_profile():
    assert {"fit", "evaluate_batch", "losses", "profile"} <= set(dir(speechmeter.profile(Brain())))


def test_a_live_object_is_recorded_and_left_as_it_is():
    net, x = Net(), torch.randn(4, 8)
    profiled = speechmeter.profile(net)
    before, methods = str(hooks(net)), dict(vars(net))
    assert profiled(x).equal(net(x))
    assert profiled.forward(x).equal(net(x))
    assert list(profiled.parameters()) == list(net.parameters())
    assert (str(hooks(net)), dict(vars(net))) == (before, methods)
    assert profiled.profile.seen_by_kind == {"": 0, "forward": 2}
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


def test_an_analyst_has_flops_from_the_second_step_on():
    net = speechmeter.profile_analyst(Net())
    flops = []
    for _ in range(3):
        net(torch.randn(4, 8))
        flops.append(net.profile.record.find("flops.v1").values)
    assert flops == [(), (2 * 4 * 8 * 8 + 2 * 4 * 8 * 1,), (2 * 4 * 8 * 8 + 2 * 4 * 8 * 1,)]
    assert (net.profile.steps, net.profile.methods["forward"].cold) == (1, False)


def test_flops_are_reported_where_no_step_was_recorded():
    with speechmeter.profile(flops=True, warmup=1) as p:
        torch.ones(4, 4) @ torch.ones(4, 4)
    assert p.record.find("flops.v1").values == (2 * 4 * 4 * 4,)
    assert p.record.reason == (
        "no step was recorded: only 1 step ran, one of them to count FLOPs, and the schedule records later steps"
    )


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


def test_all_files_of_a_profile_describe_the_same_steps(tmp_path):
    @speechmeter.profile(warmup=0)
    def work(number):
        with speechmeter.label(f"part-{number}"):
            return torch.ones(64, 64).sum()

    for number in range(3):
        work(number)
    work.profile.export(tmp_path)
    assert find_trace(tmp_path).name == "work.pt.trace.json.gz"
    named = {event["name"] for event in read_trace(find_trace(tmp_path)).events}
    texts = {
        name: (tmp_path / name).read_text() for name in ("ranges.txt", "operators-by-stack.txt", "trace/stacks.txt")
    }
    for number in range(3):
        assert {f"part-{number}", f"ProfilerStep#{number}"} <= named
        assert [name for name, text in texts.items() if f"part-{number}" not in text] == []
    (made,) = [line for line in (tmp_path / "operators.txt").read_text().splitlines() if line.endswith("aten::ones")]
    assert "3" in made.split()
    assert breaches(work.profile.trace.events) == []
    assert sum(event["name"] == "aten::ones" for event in work.profile.trace.events) == 3


def test_shares_and_times_of_modules_are_of_the_same_calls():
    first, last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)

    @speechmeter.profile(warmup=0)
    def work(x):
        return last(first(x))

    for size in (4, 4096, 16):  # so that the mean is far from the median
        work(torch.randn(size, 8))
    (table, *_) = json.loads(work.profile.table("modules", "json"))
    cells = {row["labels"][0]: [cell.get("value") for cell in row["cells"]] for row in table["rows"]}
    share, time = (table["columns"].index(name) for name in ("share", "forward"))
    whole_s = cells["call"][time]
    values = next(m.values for m in work.profile.record.measurements if m.metric == "time_module.v1")
    assert whole_s == pytest.approx(sum(values) / 3)
    assert len(cells) > 2  # which rows are long enough to be listed is chance
    for figures in cells.values():
        assert figures[share] == pytest.approx(100 * figures[time] / whole_s)


def test_torchs_own_profiler_can_be_had():
    @speechmeter.profile(profile_memory=True)
    def work(x):
        return (x @ x).relu()

    for size in (8, 8, 16, 16):
        work(torch.ones(size, size))
    assert all(isinstance(one, torch.profiler.profile) for one in work.profile.profilers)
    averages = {event.key: event for event in work.profile.key_averages()}
    assert averages["aten::mm"].count == 3
    assert averages["aten::mm"].self_cpu_memory_usage == 4 * (8 * 8 + 2 * 16 * 16)
    shown = work.profile.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=2)
    assert "aten::mm" in shown
    assert "CPU Mem" in shown
    by_shape = [e for e in work.profile.key_averages(group_by_input_shape=True) if e.key == "aten::mm"]
    assert sorted(event.count for event in by_shape) == [1, 2]


def test_handlers_get_torchs_profiler_of_each_recording(tmp_path):
    seen = []
    handlers = [lambda given: seen.append(given), torch.profiler.tensorboard_trace_handler(str(tmp_path), "mine")]

    @speechmeter.profile(on_trace_ready=handlers, warmup=0, active=2, folder=tmp_path / "ours")
    def work():
        return torch.ones(8).sum()

    for _ in range(3):
        work()
    assert seen == work.profile.profilers
    assert len(seen) == 2
    theirs = sorted(tmp_path.glob("mine.*.pt.trace.json"))
    assert len(theirs) == 2
    assert any(event["name"] == "aten::ones" for event in read_trace(theirs[0]).events)
    assert breaches(read_trace(find_trace(tmp_path / "ours")).events) == []


def test_keywords_of_the_classic_decorators_act(tmp_path):
    @speechmeter.export(dir_name=tmp_path / "log", worker_name="host one", use_gzip=False)
    @speechmeter.schedule(skip_first=1, wait=1, warmup=1, active=1)
    @speechmeter.profile(profile_memory=True, record_shapes=True, with_stack=True)
    def work(number):
        with speechmeter.label(f"part-{number}"):
            return torch.ones(8).sum()

    for number in range(6):
        work(number)
    assert parts(work.profile) == {"part-3"}
    assert work.profile.timeline is not None
    trace = read_trace(tmp_path / "log" / "trace" / "host-one.pt.trace.json")
    assert any(event.get("cat") == "python_function" for event in trace.events)
    assert any("Input Dims" in event.get("args", {}) for event in trace.events)


def test_schedule_and_export_are_also_values(tmp_path):
    chosen = speechmeter.schedule(wait=1, warmup=0, active=1)
    written = speechmeter.export(dir_name=tmp_path / "log")
    live = speechmeter.profile(Pretrained(), schedule=chosen, on_trace_ready=written, class_hooks=["encode_batch"])
    for _ in range(3):
        live.encode_batch(torch.randn(4, 8))
    assert (live.profile.steps, live.profile.methods["encode_batch"].seen) == (1, 3)
    assert find_trace(tmp_path / "log").name == "Pretrained-encode_batch.pt.trace.json.gz"

    @speechmeter.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1))
    def work(number):
        with speechmeter.label(f"part-{number}"):
            return torch.ones(8).sum()

    for number in range(6):
        work(number)
    assert parts(work.profile) == {"part-2", "part-3"}


def test_what_cannot_carry_a_schedule_says_what_to_do():
    with pytest.raises(InputError, match="apply `profile` first"):
        speechmeter.schedule(Pretrained().encode_batch)
    work = speechmeter.schedule(speechmeter.profile(Pretrained().encode_batch), warmup=0, active=1)
    work(torch.randn(4, 8))
    assert (work.profile.name, work.profile.steps, work.profile.cold) == ("Pretrained.encode_batch", 1, False)


def test_tensorboards_own_reader_takes_the_steps_of_a_function(tmp_path):
    data = pytest.importorskip("torch_tb_profiler.profiler.data", reason="needs torch-tb-profiler and pandas")
    work = speechmeter.profile(lambda: torch.ones(4, 4) @ torch.ones(4, 4), name="work", folder=tmp_path)
    for _ in range(4):
        work()
    path = find_trace(tmp_path)
    seen = data.RunProfileData.parse("work", None, str(path), str(path.parent))
    assert seen.steps_names == ["1", "2", "3"]
    assert {one.name: one.calls for one in seen.op_list_groupby_name}["aten::mm"] == 3


def test_unknown_keywords_are_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"schedule has no option 'skip_fist'; did you mean 'skip_first'\?"):
        speechmeter.schedule(skip_fist=1)
    with pytest.raises(InputError, match=r"export has no option 'dirname'; did you mean 'dir_name'\?"):
        speechmeter.export(dirname="x")
    with pytest.raises(InputError, match=r"profile has no option 'with_stacks'; did you mean 'with_stack'\?"):
        speechmeter.profile_analyst(Net(), with_stacks=True)


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
    assert "another torch profiler" in inner.profile.record.reason
    assert "another torch profiler" in inner.profile.table("modules")


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

    for wrong, why in (
        (later, "before its work"),
        (items, "before its work"),
        (Taken, "already has"),
        (3, "is not callable"),
    ):
        with pytest.raises(InputError, match=why):
            speechmeter.profile(wrong)
    with pytest.raises(InputError, match="has none of the methods fit"):
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
