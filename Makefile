# Everything happens in .venv, which every target that needs it sets up, or mends.
PYTHON ?= python3
PY := .venv/bin/python
LESSONS = $(wildcard notebooks/[0-9][0-9]_*.ipynb)
STUDIES = $(patsubst studies/%.md,%,$(wildcard studies/*.md))
# As many as the course asks for cores. A third on the same two saves nothing: nearly all of it is computing.
WORKERS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help lab reset test check lint format build pull answers mutants progress times machines targets parity book slides bench studies pretrain constraints always

help: ## say what can be made
	@awk -F ':.*## ' '/^###/ {print "\n" substr($$0, 5)} /^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

### To learn

lab: .venv/learner ## open the course in JupyterLab, as your own copy, not yet run (OUTPUTS=1 as it was run; LAB_ARGS="--port 9000" is passed on)
	$(if $(EDIT),ATTNLIB_EDIT=1) $(if $(OUTPUTS),ATTNLIB_OUTPUTS=1) $(PY) -m jupyterlab --config=notebooks/lab/config.py $(LAB_ARGS)

reset: ## give a lesson back as it was, and keep your copy (NB=06)
	@$(PYTHON) notebooks/lab/copies.py --reset "$(NB)"

book: .venv/book ## make the book, as web pages in book/_build/html (PDF=1 prints it instead, with Chromium)
	$(PY) -m publish book book/_build $(if $(PDF),--pdf)
	@echo 'Open it with: $(PY) -m http.server --bind 127.0.0.1 --directory book/_build/html'

### To teach

slides: .venv/slides ## make the decks from slides/*.md, in slides/_build (PDF=1 prints them too, with Chromium)
	$(PY) -m publish slides $(if $(PDF),--pdf)

answers: .venv/learner ## write exercises with hints, solutions and mistakes, and lessons with solutions, into answers/ (RUN=1 runs them)
	@$(PY) tools/answers.py $(if $(RUN),--run)

progress: .venv/learner ## print what a class has solved, as CSV (FROM=folder with their progress files)
	@$(PY) tools/collect_progress.py "$(FROM)"

### To change it

build: .venv/tester ## source -> notebook, for changed lessons (NB=01 runs that one, ALL=1 all, FORCE=1 discards edits in it)
	$(PY) -m publish lessons $(NB) $(if $(ALL),--all) $(if $(FORCE),--force)
	@$(PY) tools/check.py --said

pull: .venv/tester ## notebook -> source, to keep an edit made in JupyterLab (NB=01; FORCE=1 discards the source's)
	$(PY) -m publish lessons --pull $(NB) $(if $(FORCE),--force)

check: .venv/tester ## check what changed since the last commit and what that touches, in a minute (NB=06: all of that lesson)
	@$(PY) tools/check.py $(NB)

format: .venv/tester ## put the code in style
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

lint: .venv/tester ## check the style of the code, and the workflow
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	.venv/bin/lint-imports --no-logo
	$(PY) -m check_jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

test: lint ## check everything: style, tests, examples, every lesson (WORKERS=2 at once; PYTEST_ARGS is passed on)
	$(PY) -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --doctest-modules \
	  --nbval --nbval-current-env --nbval-cell-timeout=400 $(PYTEST_ARGS) $(LESSONS) tests attnlib  # the longest first

### To measure it, or make it anew

studies: .venv/tester ## train what the lessons quote from several seeds each, and write studies/*.md (NAME="blocks parts" some of them)
	set -e; for name in $(or $(NAME),$(STUDIES)); do OMP_NUM_THREADS=1 $(PY) -m studies $$name; done

pretrain: .venv/learner ## train the GPT that the course ships, in an hour or two; killed, it goes on (ARGS="--steps 100")
	$(PY) -m attnlib.pretraining.train --checkpoint pretraining $(ARGS)

bench: .venv/bench ## compare with other implementations, in about five minutes, and write benchmarks/RESULTS.md
	PYTHONPATH=. KINETO_LOG_LEVEL=99 $(PY) benchmarks/run.py

parity: .venv/tester ## measure how far the library is from others, and write notebooks/PARITY.md
	$(PY) tests/parity.py

times: .venv/tester ## measure how long Run All takes, lesson by lesson (NB=01 one), and write it down
	PYTHONPATH=. $(PY) tools/time_lessons.py $(NB)

machines: .venv/tester ## run lessons as other processors would, and say how far numbers move (NB="18 21" WORLDS="avx2 moved-1")
	PYTHONPATH=. $(PY) tools/machines.py $(NB) --worlds "$(WORLDS)" --workers $(WORKERS) $(if $(MOVED_BY),--moved-by $(MOVED_BY))

mutants: .venv/tester ## change every solution in every place, and see whether check notices (NB="06 07.2")
	@$(PY) tools/mutants.py $(NB)

targets: ## try every target in a fresh clone with only its own packages, in half an hour (NAME="book slides")
	@$(PYTHON) tools/targets.py $(NAME)

constraints: .venv/learner ## solve for one version of everything, on all Pythons at once (UPGRADE=1 the newest)
	PATH=".venv/bin:$$PATH" $(PY) tools/solve_constraints.py $(if $(UPGRADE),--upgrade)

# The script knows what is there and what has changed; asked again, it does nothing.
.venv/learner .venv/tester .venv/bench .venv/book .venv/slides: always
	@command -v '$(PYTHON)' >/dev/null || { \
	  echo 'There is no "$(PYTHON)" here. Name a Python that the course supports: make lab PYTHON=python3.12' >&2; exit 1; }
	@'$(PYTHON)' tools/setup_environment.py $(@F)

always:
