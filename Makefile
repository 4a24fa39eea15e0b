# Every target makes what it needs: a fresh clone and `make bench` or `make test` are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ALONE := tests/campaign/test_selftest_broken.py tests/campaign/test_cluster.py
INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt

.PHONY: bench test campaign lint docs pictures wheels clean

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[torch,transformers,silero-vad,query,report,ray,test,lint]'
	$(INSTALL) --no-deps speechbrain  # it asks for torchaudio, which has no build for a torch without CUDA
	$(INSTALL) --no-deps torch-tb-profiler  # its reader, for a test; it asks for TensorBoard, which the reader needs not
	touch $@

bench: $(VENV)/ready  ## the built-in tour: tables on the screen, a run directory under runs/ with report.html in it
	$(BIN)/speechmeter run

test: $(VENV)/ready  ## 6 minutes on 2 idle cores
	$(BIN)/python -m pytest -m 'not campaign' -n 2 --dist loadfile

campaign: $(VENV)/ready wheels  ## the long versions, 20 minutes on 2 idle cores
	$(BIN)/python -m pytest -m campaign -n 2 --dist loadfile $(addprefix --ignore=,$(ALONE))
	$(BIN)/python -m pytest -m campaign $(ALONE)  # these compare times or kill processes: nothing runs beside them

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/ready  ## this documentation; its tables are made from the code
	$(INSTALL) --editable '.[docs]'
	$(BIN)/python docs/tables.py
	$(BIN)/mkdocs build --strict

pictures: $(VENV)/ready  ## those of README and docs, from examples/runs; the page's own needs chromium
	$(BIN)/python docs/pictures.py

wheels: $(VENV)/ready  ## the core must install from wheels alone on aarch64, Python 3.10 (Jetson)
	rm -rf build/aarch64 && mkdir -p build/aarch64
	$(BIN)/python tests/core_requirements.py > build/aarch64/requirements.txt
	$(BIN)/pip download --quiet --only-binary=:all: --python-version 3.10 --dest build/aarch64 \
	  --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
	  --requirement build/aarch64/requirements.txt
	@ls build/aarch64/*.whl | wc -l | xargs printf 'the core resolves from %s wheels on aarch64\n'

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
