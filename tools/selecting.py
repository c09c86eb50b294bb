"""For pytest, in `make check` and `make build`: only what is about some lessons, and only while there is time.

``-p selecting --lesson 06`` leaves out each test that is made for other lessons, or for their exercises, claims,
terms. With ``--until``, a moment as `time.time` counts, what has not ended by then is left to `make test`.
"""

import re
import signal
import time

import pytest

from attnlib.course.claims import CLAIMS

NUMBER = re.compile(r"(\d\d)(?:$|[._])")
CLAIM = re.compile(r"::test_claim_(\d+)_")
IN = {claim.number: set(claim.lessons) for claim in CLAIMS}
LATE = "the time is up: make test runs it"


def pytest_addoption(parser):
    """Add the two options."""
    parser.addoption("--lesson", action="append", help="a lesson, 06: leave out what is made for other lessons")
    parser.addoption("--until", type=float, default=float("inf"), help="when to stop, in seconds since 1970")


def pytest_collection_modifyitems(config, items):
    """Leave out what is about other lessons."""
    wanted = set(config.option.lesson or ())
    if wanted:
        kept = [item for item in items if not (about := lessons_of(item)) or about & wanted]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def lessons_of(item):
    """The lessons that a test is made for; of one that is for all of them, none."""
    if claim := CLAIM.search(item.nodeid):
        return IN[int(claim.group(1))]
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {number.group(1) for value in values for number in map(NUMBER.match, names_of(value)) if number}


def names_of(value):
    """What may say of which lesson a test's parameter is: itself, its number, its name."""
    parts = value if isinstance(value, tuple) else (value,)
    found = [getattr(part, name, None) for part in parts for name in ("number", "lesson", "id")]
    return [text for text in (*parts, *found) if isinstance(text, str)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Break off what is running when the time is up."""
    left = item.config.option.until - time.time()
    if 0 < left < float("inf") and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: pytest.skip(LATE))
        signal.setitimer(signal.ITIMER_REAL, left)
    try:
        return (yield)
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_runtest_setup(item):
    """Begin nothing when the time is up."""
    if time.time() > item.config.option.until:
        pytest.skip(LATE)


def pytest_terminal_summary(terminalreporter):
    """Say how many had no time."""
    late = [report for report in terminalreporter.getreports("skipped") if LATE in str(report.longrepr)]
    if late:
        terminalreporter.write_line(f"{len(late)} of these had no time: make test runs them.")
