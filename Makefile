# The two commands of the README are `make demo` and `make test`; each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS := pretrained heic browser tensorboard wandb mlflow onnx avalanche ray slurm kernels
SLURM := slurm-wlm slurmdbd munge mariadb-server
comma := ,
space := $() $()
SECONDS := 600
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint check reference docs release fuzz test-extras test-oldest clean

demo: .venv/installed
	$(BIN)/jioc demo

test: .venv/tested
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not extras and not slow"

lint: .venv/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint test

# the page of all settings, from their declarations
reference: .venv/installed
	$(BIN)/python -m jioc.cli.reference > docs/settings.md

# the site, into build/site; a warning, a wrong link or anything loaded from elsewhere is an error. To read it with its
# search: python -m http.server -d build/site
docs: .venv/documented
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# sdist and wheel into dist/, checked, installed and used where there is no checkout; nothing is uploaded
release: .venv/released
	$(BIN)/python .ci/release.py

# attacks on every command, for so long, on every core; what failed is kept in fuzz-failures/
fuzz: .venv/tested
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS)

# the tests with the oldest versions that pyproject.toml allows, in an environment of their own
test-oldest: .venv-oldest/tested
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n 2 -m "not extras and not slow"

# what needs a browser, a Slurm or another heavy extra, which is installed here where it may be; and what is slow
test-extras: .venv/extras
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "extras or slow"

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

.venv/tested: .venv/installed
	$(INSTALL) -e '.[dev]'
	touch $@

.venv-oldest/tested: pyproject.toml constraints-oldest.txt
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e '.[dev]'
	touch $@

.venv/documented: .venv/installed
	$(INSTALL) -e '.[docs]'
	touch $@

.venv/released: .venv/installed
	$(INSTALL) -e '.[release]'
	touch $@

.venv/extras: .venv/tested
	$(INSTALL) -e '.[dev,$(subst $(space),$(comma),$(EXTRAS))]' || for extra in $(EXTRAS); do \
	  $(INSTALL) -e ".[$$extra]" || echo "$$extra cannot be installed here: its tests will skip"; done
	command -v chromedriver >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } \
	  || echo "no browser could be installed: its tests will skip"
	command -v sacctmgr >/dev/null || { apt-get update -qq && apt-get install -y -qq $(SLURM); } \
	  || echo "no Slurm could be installed: its tests will skip"
	touch $@

clean:
	rm -rf .venv .venv-oldest build dist .pytest_cache .ruff_cache .mypy_cache
