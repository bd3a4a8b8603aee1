# make run: the app · make test: every behaviour once · make test-unit: seconds of it · make test-all: everything multiplied · make check: style, types, walls · make bench: speed · make docs: the documentation · make site: a page that reads by itself · make space: the folder of a Space · make dist: wheel, sdist and bill of materials
SHELL := /bin/sh
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8501
VENV := .venv
PY := $(VENV)/bin/python
NODE := $(PY) tools/node.py
# Python compiles a module when it is first imported. Compiling every module of PyTorch and transformers while they are
# installed takes as long as installing them.
PIP := $(PY) -m pip install --disable-pip-version-check --quiet --no-compile
# Where Linux has no NVIDIA GPU, PyTorch comes from here; TORCH_INDEX= takes the default index all the same.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# The package itself as it stands here, so that .venv/bin/mha-viz works.
THIS := $(PIP) --no-deps --editable .
# A worker begins with its share of the files, so that what a file shares is made once, and takes from others at the
# end. Three keep two cores busy: pages, servers and other processes are waited for a quarter of the time.
WORKERS := --dist worksteal -n
PYTEST_ARGS ?= $(WORKERS) 3
RECORDED := -p tools.recorded_tests --record tests/results/runs.jsonl

export TOKENIZERS_PARALLELISM := false
export PYTHONUTF8 := 1
# The tests start dozens of Pythons. Without compiled files each would compile PyTorch and transformers, for 15 seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-unit test-all test-runs test-deploy test-newest test-browsers nginx engines coverage check check-types check-style check-python check-javascript check-workflows bench docs site space dist clean help

run: $(VENV)/.run-installed
	@exec $(PY) -m mha_viz.cli serve --host "$(HOST)" --port "$(PORT)"

test: $(VENV)/.dev-installed node_modules/.installed
	@CHROMIUM="$$($(PY) tools/browser.py --install)" || exit 1; export CHROMIUM; \
	$(PY) -m pytest $(PYTEST_ARGS) && $(NODE) --disable-warning=ExperimentalWarning --test tests/js/*.test.mjs

# The lane for every save: the modules of tests/lanes.py that import neither torch nor Streamlit.
test-unit: $(VENV)/.dev-installed
	@$(PY) -m pytest $(WORKERS) 2 -m "unit and not slow and not deploy"

# Before a release: every case of what is multiplied, what takes minutes, and the deployment; half an hour or more. The
# result is written to tests/results/all.json, if the tests in JavaScript passed before. Other engines: test-browsers.
test-all: $(VENV)/.dev-installed $(VENV)/.docs-installed node_modules/.installed nginx
	@CHROMIUM="$$($(PY) tools/browser.py --install)" || exit 1; export CHROMIUM; PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	$(NODE) --disable-warning=ExperimentalWarning --test tests/js/*.test.mjs && \
	$(PY) -m pytest -p tools.recorded_tests --record tests/results/all.json $(WORKERS) 3 --all --timeout 3600 -m "not browsers"

# Whether the tests pass by chance: eight runs, each in another order, four of them beside two processes that keep two
# cores busy. Each writes a line to tests/results/runs.jsonl.
test-runs: $(VENV)/.dev-installed
	@for seed in 1 2 3 4; do \
	  $(MAKE) test PYTEST_ARGS="$(WORKERS) 3 --shuffle $$seed $(RECORDED)"; \
	  BESIDE="two busy processes" $(PY) tools/busy.py 2 $(MAKE) test PYTEST_ARGS="$(WORKERS) 3 --shuffle 1$$seed $(RECORDED)"; \
	done

# The deployment of deploy/: a real nginx before two server processes. nginx is the distribution's. The result is written
# to tests/results/deploy.json.
test-deploy: $(VENV)/.dev-installed $(VENV)/.docs-installed nginx
	@CHROMIUM="$$($(PY) tools/browser.py --install)" || exit 1; export CHROMIUM; PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	$(PY) -m pytest -p tools.recorded_tests --record tests/results/deploy.json -m deploy tests/deploy tests/test_pins.py

nginx:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; command -v nginx >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update >&2 && \
	  DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends nginx >&2; } || { \
	  echo "nginx is needed and could not be installed. Install it, then run this again." >&2; exit 1; }

# All dependencies at the newest versions that pyproject.toml allows, in build/newest: a visit of each page, and models.
# The result is written to tests/results/newest.json. (tests/test_wheel.py has the lowest versions.)
test-newest: | $(PY)
	@rm -rf build/newest && $(PY) -m venv build/newest && sed '/^-r/d' requirements-dev.txt > build/newest/tools.txt
	@build/newest/bin/python tools/cpu_torch.py "$(TORCH_INDEX)" "$$(sed -n 's/^ *"\(torch[^"]*\)".*/\1/p' pyproject.toml)"
	@$(subst $(PY),build/newest/bin/python,$(PIP)) --upgrade -r build/newest/tools.txt --editable .
	@build/newest/bin/python -m pytest -q tests/test_learner_path.py tests/test_hosts.py tests/test_streamlit_parts.py
	@build/newest/bin/python -m pytest -p tools.recorded_tests --record tests/results/newest.json $(WORKERS) 3 \
	  -m "models and not slow and not deploy" --ignore tests/test_deploy.py

# The main job in Firefox, the newest ESR and an older one, and in WebKit, each by its own driver, one after the other.
# The result is written to tests/results/browsers.json.
test-browsers: $(VENV)/.dev-installed engines
	@CHROMIUM="$$($(PY) tools/browser.py --install)" || exit 1; export CHROMIUM; \
	$(PY) -m pytest -p tools.recorded_tests --record tests/results/browsers.json -m browsers tests/browsers

# The distribution's. The older Firefox, which no package may replace, is unpacked below build/.
OLDER_FIREFOX := build/firefox-140
engines:
	@command -v firefox-esr >/dev/null && command -v WebKitWebDriver >/dev/null && command -v Xvfb >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update >&2 && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y --no-install-recommends firefox-esr webkit2gtk-driver xvfb >&2; } || { \
	  echo "Firefox, WebKitWebDriver and Xvfb are needed and could not be installed. Install them, then run this again." >&2; \
	  exit 1; }
	@test -d $(OLDER_FIREFOX)/usr || { mkdir -p $(OLDER_FIREFOX) && cd $(OLDER_FIREFOX) && \
	  apt-get download "firefox-esr=140*" >&2 && dpkg -x firefox-esr_*.deb . && rm firefox-esr_*.deb; } || \
	  echo "No Firefox 140 could be unpacked below $(OLDER_FIREFOX): its tests will fail." >&2

# What `make test` runs of the product, in this process and in all that it starts, and how long each test takes:
# build/coverage and build/times.*, which tools/mutants.py reads.
coverage: $(VENV)/.bench-installed node_modules/.installed
	@rm -rf build/coverage* build/times.*; mkdir -p build
	@CHROMIUM="$$($(PY) tools/browser.py --install)" || exit 1; export CHROMIUM; TIMES=build/times \
	$(PY) -m pytest -p tools.timed_tests --cov --cov-config=tools/coverage.ini --cov-context=test --cov-report= $(PYTEST_ARGS)
	@$(PY) -m coverage report --rcfile=tools/coverage.ini --format=total

# Four parts that need nothing of each other: make -j2 check runs two at a time.
check: check-types check-python check-javascript check-workflows

check-types: $(VENV)/.dev-installed
	$(PY) -m mypy --strict mha_viz app.py pages tools benchmarks tests

check-style: $(VENV)/.dev-installed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

check-python: check-style
	$(PY) -m pytest -q tests/test_house.py tests/test_glossary.py

check-javascript: $(VENV)/.dev-installed node_modules/.installed
	$(NODE) node_modules/prettier/bin/prettier.cjs --check --log-level warn mha_viz tests benchmarks *.js
	$(NODE) node_modules/eslint/bin/eslint.js .
	$(NODE) node_modules/typescript/bin/tsc

# The workflows of .github, without a network.
check-workflows: $(VENV)/.dev-installed
	$(VENV)/bin/zizmor --offline --quiet --persona pedantic .github

bench: $(VENV)/.bench-installed
	@CHROMIUM="$$($(PY) tools/browser.py --install)" || exit 1; export CHROMIUM; \
	$(PY) -m benchmarks

# The documentation, offline: figures are drawn from the code beside them, and a warning is an error.
docs: $(VENV)/.docs-installed
	@PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "build/docs/index.html; its search works where it is served: python -m http.server -d build/docs"

# A page of four questions on which readers type sentences of their own, for any static host (deploy/pages): build/site.
# SITE: its address, for the picture that is shown with a link to it.
site: $(VENV)/.dev-installed
	@$(PY) tools/four_questions.py build/site $(SITE)

# The folder of a Space on Hugging Face, from the last commit: build/space.
space:
	@rm -rf build/space && mkdir -p build/space
	@git archive HEAD Dockerfile .dockerignore $$(sed -n 's/^!//p' .dockerignore) | tar -x -C build/space
	@cat deploy/space/heading.md README.md > build/space/README.md
	@cat deploy/space/settings >> build/space/Dockerfile
	@echo "build/space"

# Wheel, source distribution and bill of materials (CycloneDX) of the version in mha_viz/version.py, in dist/.
dist: $(VENV)/.docs-installed
	@$(PY) -m build --outdir dist .
	@PYTHONPATH=. $(PY) tools/sbom.py dist

clean:
	rm -rf $(VENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis test-results

help:
	@head -1 Makefile

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or later is needed; “$(PYTHON)” is: $$($(PYTHON) --version 2>&1 | head -1)" >&2; \
	  echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# A stamp for each list: the second call installs nothing, a changed list installs again.
$(VENV)/.run-installed: requirements.txt pyproject.toml | $(PY)
	@echo "Installing requirements.txt (PyTorch is the large one; this happens once)"
	@$(PY) tools/cpu_torch.py "$(TORCH_INDEX)"
	@$(PIP) -r requirements.txt
	@$(THIS)
	@touch $@

$(VENV)/.dev-installed: requirements-dev.txt requirements.txt pyproject.toml | $(PY)
	@echo "Installing requirements-dev.txt"
	@$(PY) tools/cpu_torch.py "$(TORCH_INDEX)"
	@$(PIP) -r requirements-dev.txt
	@$(THIS)
	@touch $@ $(VENV)/.run-installed

$(VENV)/.bench-installed: requirements-bench.txt requirements-dev.txt requirements.txt pyproject.toml | $(PY)
	@echo "Installing requirements-bench.txt"
	@$(PY) tools/cpu_torch.py "$(TORCH_INDEX)"
	@$(PIP) -r requirements-bench.txt -r requirements-dev.txt
	@$(THIS)
	@touch $@ $(VENV)/.dev-installed $(VENV)/.run-installed

$(VENV)/.docs-installed: requirements-docs.txt $(VENV)/.run-installed
	@echo "Installing requirements-docs.txt"
	@$(PIP) -r requirements-docs.txt
	@touch $@

# What checks JavaScript: ESLint, Prettier and TypeScript, in the versions of package-lock.json.
node_modules/.installed: package.json package-lock.json .npmrc | $(VENV)/.dev-installed
	@echo "Installing package.json"
	@$(NODE) --npm ci --loglevel=error || { \
	  echo "npm could not install what checks the JavaScript (package.json). Is the npm registry reachable?" >&2; exit 1; }
	@touch $@
