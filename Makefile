# Thin on purpose: what a target does stands in scripts/.
# Variables: PYTHON=/path/to/python3.12 (for .venv), CHROMIUM=/path/to/chromium (for the tests in VS Code).

.DEFAULT_GOAL := help
.PHONY: help setup setup-node setup-vscode demo demo-vscode check test test-fast test-python test-client e2e package bench-mapping bench-published bench-latency bench-speed clean
.NOTPARALLEL:

PY := .venv/bin/python
NPM := npm --silent run
E2E := $(PY) -m pytest -c tests/e2e/pytest.ini tests/e2e

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv: server, engine, TensorFlow, tools (quick when nothing changed)
	@scripts/setup-python.sh

setup-node: # Install the packages of the VS Code client
	@scripts/setup-node.sh

setup-vscode: setup setup-node ## Add a VS Code in the browser to .tools, for e2e and demo-vscode
	@scripts/setup-vscode.sh

demo: setup ## Train a small program with a real fault, then localize it
	@scripts/demo.sh digits

demo-vscode: setup-vscode package ## The same in VS Code, in your browser
	@$(PY) scripts/demo_vscode.py digits

check: setup setup-node ## Lint, format and types, Python and TypeScript
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	$(NPM) types
	$(NPM) lint

test: check test-python test-client e2e ## Everything

test-fast: setup setup-node ## The tests that need neither TensorFlow nor VS Code
	$(PY) -m pytest tests/unit tests/contract tests/protocol
	$(NPM) test

test-python: setup
	$(PY) -m pytest tests/unit tests/contract tests/engine tests/process tests/protocol

test-client: setup-node
	$(NPM) test

e2e: setup-vscode package ## The extension in a real VS Code
	$(E2E)

package: setup setup-node ## dist/: the extension (VSIX) and the server (wheel)
	@scripts/package.sh

bench-mapping: setup ## How often the line of a layer is right; GUIDER=, HALVES=, KERAS_IO= add more programs
	$(PY) -m benchmarks.mapping $(if $(GUIDER),--guider "$(GUIDER)") $(if $(HALVES),--halves "$(HALVES)") \
		$(if $(KERAS_IO),--keras-io $(KERAS_IO))

bench-published: setup ## What GUIDER's published scores are worth; DATA=folder of its replication data
	$(PY) benchmarks/published.py "$(DATA)"

bench-latency: setup ## How long an editor waits: reading, keystroke to lens, other requests meanwhile, start, memory
	$(PY) -m benchmarks.latency

bench-speed: setup ## What a localization costs against running the model; GUIDER=, DEEPFAULT=, DEEPMUFL= add their code
	$(PY) -m benchmarks.speed $(if $(GUIDER),--guider "$(GUIDER)") $(if $(DEEPFAULT),--deepfault "$(DEEPFAULT)") \
		$(if $(DEEPMUFL),--deepmufl "$(DEEPMUFL)") $(PARTS)

clean: ## Remove what was built; .venv, .tools and node_modules stay
	rm -rf build dist vscode-client/out .pytest_cache .mypy_cache .ruff_cache .hypothesis
