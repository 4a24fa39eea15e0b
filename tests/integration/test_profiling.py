"""Profiles of real training loops and models: Lightning, transformers' Trainer, a live transformers model."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import speechmeter  # noqa: E402

BOTH = {"forward", "backward"}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.last = torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def directions(profile):
    return {
        m.scope.removeprefix("module:"): {way for way in ("forward", "backward") if any(m.notes.get(way, ()))}
        for m in profile.record.measurements
        if m.metric == "time_module.v1" and m.scope.startswith("module:")
    }


def check_tables(profile):
    """The tables of every way to profile: a tree of modules, operators, kinds of work."""
    assert "| module | class |" in profile.table("modules")
    assert "| unattributed |" in profile.table("modules")
    assert "aten::addmm" in profile.table("operators")
    assert "CPU" in profile.table("split")


def left_clean(model):
    assert not torch.autograd._profiler_enabled()
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def lightning():
    try:
        import lightning.pytorch as found
    except ImportError:
        found = pytest.importorskip("pytorch_lightning", reason="needs lightning or pytorch-lightning")
    return found


def lightning_run(tmp_path, *, steps, fail=False, **options):
    pl = lightning()
    from speechmeter.integrations.lightning import ProfileCallback

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, number):
            if fail and number == 1:
                raise RuntimeError("as ever")
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.TensorDataset(torch.randn(4 * steps, 8))
    callback, module = ProfileCallback(**options), Module()
    trainer = pl.Trainer(
        max_steps=steps, callbacks=[callback], logger=False, enable_checkpointing=False, accelerator="cpu",
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    return trainer, module, torch.utils.data.DataLoader(data, batch_size=4), callback.profile


def test_two_steps_of_lightning(tmp_path):
    trainer, module, loader, profile = lightning_run(tmp_path, steps=2)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    trainer.fit(module, loader)
    assert trainer.global_step == 2
    assert any(not value.equal(before[name]) for name, value in module.state_dict().items())
    assert profile.steps == 1  # the first is the warm-up
    assert {path: directions(profile)[path] for path in ("Module.net.first", "Module.net.last")} == {
        "Module.net.first": BOTH,
        "Module.net.last": BOTH,
    }
    check_tables(profile)
    left_clean(module)


def test_a_lightning_run_that_breaks_off_keeps_what_was_recorded(tmp_path):
    trainer, module, loader, profile = lightning_run(tmp_path, steps=3, fail=True, warmup=0)
    with pytest.raises(RuntimeError, match="as ever"):
        trainer.fit(module, loader)
    assert profile.steps == 1
    assert str(profile.failed) == "as ever"
    left_clean(module)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, number):
        return {"input_values": torch.randn(400), "labels": torch.tensor([1, 2])}


def tiny_ctc():
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    config = transformers.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=8,
        conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8), num_feat_extract_layers=2,
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, mask_time_prob=0.0, ctc_loss_reduction="mean",
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers, transformers.Wav2Vec2ForCTC(config)


def test_two_steps_of_the_trainer(tmp_path):
    pytest.importorskip("accelerate", reason="transformers' Trainer needs accelerate")
    transformers, model = tiny_ctc()
    from speechmeter.integrations.transformers import ProfileCallback

    callback = ProfileCallback(memory=True, folder=tmp_path / "profile")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=2, report_to=[], save_strategy="no",
        use_cpu=True, disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Rows(), callbacks=[callback])
    trainer.train()
    profile = callback.profile
    assert trainer.state.global_step == 2
    assert profile.steps == 1
    found = directions(profile)
    assert found["Wav2Vec2ForCTC.lm_head"] == BOTH
    assert found["Wav2Vec2ForCTC.wav2vec2.encoder.layers.1.feed_forward.intermediate_dense"] == BOTH
    check_tables(profile)
    assert "Wav2Vec2ForCTC" in profile.table("timeline")
    assert (tmp_path / "profile" / "memory.json").is_file()
    left_clean(model)


def test_a_live_transformers_model():
    _, model = tiny_ctc()
    model.eval()
    profiled, sound = speechmeter.profile(model), torch.randn(1, 800)
    with torch.no_grad():
        assert profiled(sound).logits.equal(model(sound).logits)
    assert directions(profiled.profile)["Wav2Vec2ForCTC.lm_head"] == {"forward"}
    assert "encoder" in profiled.profile.table("modules")
    check_tables(profiled.profile)
    left_clean(model)


def test_speechbrains_own_brain():
    from speechmeter.subjects.torchaudio_stand_in import torchaudio_or_stand_in

    with torchaudio_or_stand_in():
        speechbrain = pytest.importorskip("speechbrain", reason="needs speechbrain")

    class Plain(speechbrain.Brain):
        def compute_forward(self, batch, stage):
            return self.modules.net(batch)

        def compute_objectives(self, predictions, batch, stage):
            return predictions.square().mean()

    def made(kind):
        torch.manual_seed(0)
        return kind(
            modules={"net": Net()}, opt_class=lambda own: torch.optim.SGD(own, lr=0.1), run_opts={"device": "cpu"}
        )

    batches = [torch.full((4, 8), float(number)) for number in range(4)]
    plain, profiled = made(Plain), made(speechmeter.profile(Plain))
    for brain in (plain, profiled):
        brain.fit(range(1), batches, progressbar=False)
    assert profiled.profile.steps == 3
    assert directions(profiled.profile)["net.first"] == BOTH
    assert profiled.evaluate(batches, progressbar=False) == plain.evaluate(batches, progressbar=False)
    assert {name: one.steps for name, one in profiled.profile.methods.items()} == {"fit": 3, "evaluate": 3}
    assert directions(profiled.profile.methods["evaluate"])["net.first"] == {"forward"}
    check_tables(profiled.profile)
    left_clean(profiled.modules)


def test_speechbrains_own_pretrained_interface(tmp_path):
    pytest.importorskip("hyperpyyaml", reason="needs speechbrain")
    from speechbrain_models import MODELS, speechbrain_case

    from speechmeter.subjects.speechbrain.loading import load

    model = load(speechbrain_case(MODELS / "SpectralMaskEnhancement", type="SpectralMaskEnhancement"), "cpu").model
    sound, lengths = torch.randn(2, 16000), torch.ones(2)
    hooked = speechmeter.profile(
        model, class_hooks=["enhance_batch"], on_trace_ready=speechmeter.export(dir_name=tmp_path / "log")
    )
    everything = speechmeter.profile(model)
    for one in (hooked, everything):
        for _ in range(3):
            assert one.enhance_batch(sound, lengths).equal(model.enhance_batch(sound, lengths))
        one.compute_features(sound)
    assert {name: one.steps for name, one in hooked.profile.methods.items()} == {"enhance_batch": 2}
    assert {name: one.steps for name, one in everything.profile.methods.items()} == {
        "enhance_batch": 2,
        "compute_features": 1,
    }
    assert any(path.startswith("SpectralMaskEnhancement.mods.") for path in directions(hooked.profile))
    assert (tmp_path / "log" / "enhance_batch" / "operators.txt").is_file()
