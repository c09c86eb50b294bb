"""Does everything work that the course needs? Asked by lesson 00, answered in words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic

__all__ = ["check_environment"]

# What requirements.txt installs for the lessons, and what they import of it. JupyterLab no lesson imports: it takes
# seconds, and whoever reads this in it knows that it works.
PACKAGES = {
    "numpy": "numpy",
    "torch": "torch",
    "matplotlib": "matplotlib.figure",
    "scikit-learn": "sklearn.linear_model",
    "statsmodels": "statsmodels.nonparametric.kernel_regression",
    "array-api-compat": "array_api_compat",
    "ipykernel": "ipykernel",
    "ipywidgets": "ipywidgets",
    "einops": "einops",
    "safetensors": "safetensors.torch",
    "tokenizers": "tokenizers",
    "num2words": "num2words",
    "sacrebleu": "sacrebleu",
    "tqdm": "tqdm.auto",
    "jupyterlab": "",
}
TORCH = ("torch", "safetensors")  # as slow as all others together, so they are tried at the same time

PINS = Path(__file__).parents[2] / "requirements.txt"  # of the course's folder; a wheel has none
INSTALL = (
    "In the folder of the course: pip install -r requirements.txt"
    if PINS.exists()
    else "To get it: pip install '.[course]' ipykernel jupyterlab, in the folder of the course"
)
THREADS = (
    "Beside other work lessons will crawl here, since torch's threads wait for each other. Start what you open them "
    "with so: OMP_NUM_THREADS=1 code . (`make lab` does it for you)"
)
REPAIR = "If it stays: delete .venv, and set it up again as README.md says."

# The child imports one after the other, and answers each in a line: empty, or what went wrong. What a package
# prints while it is imported goes elsewhere.
CHILD = """
import importlib, os, sys
answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8", errors="replace")
os.dup2(2, 1)
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        if name == "torch":
            x = module.ones(2, requires_grad=True)
            (x @ x).backward()
            assert x.grad.numpy().tolist() == [2, 2], "1 + 1 is not 2 here"
        print(file=answers)
    except BaseException as error:
        print(" ".join(f"{type(error).__name__}: {error}".split()), file=answers)
"""


def check_environment(seconds: float = 120) -> None:
    """Print what is missing, does not import, has another version than the course was tested with, or slows it down.

    Imports everything, in another Python, so that this one loads nothing; waits for it for ``seconds`` at most.
    Never raises.
    """
    found = {name: _version(name) for name in PACKAGES}
    notes = [f"{name} is missing. {INSTALL}" for name, has in found.items() if not has]
    there = [name for name, has in found.items() if has and PACKAGES[name]]
    halves = [[name for name in there if (name in TORCH) == half] for half in (True, False)]
    with ThreadPoolExecutor() as pool:
        torch, others = pool.map(_failures, halves, [seconds, seconds])
    failed = torch | others
    notes += [f"{name} is installed and does not work. {why} {REPAIR}" for name, why in failed.items()]
    tested = _tested()
    notes += [
        f"{name} is {has}; the course was tested with {tested[name]}. Most of it will work; numbers may differ."
        for name, has in found.items()
        if has and has != tested.get(name, has)
    ]
    print("\n".join(notes) if notes else "Everything is there, in the versions that the course was tested with.")
    if "OMP_NUM_THREADS" not in os.environ:
        print(THREADS)


def _version(name: str) -> str:
    try:
        return version(name).split("+")[0]
    except PackageNotFoundError:
        return ""


def _failures(names: list[str], seconds: float) -> dict[str, str]:
    """What keeps packages from being imported; one that ends the child does not keep the others from being tried."""
    failed: dict[str, str] = {}
    end = monotonic() + seconds
    while names:
        answers, ended = _imported([PACKAGES[name] for name in names], end - monotonic())
        failed |= {name: f"{why}." for name, why in zip(names, answers, strict=False) if why}
        if len(answers) == len(names):
            break
        failed[names[len(answers)]] = ended or f"Its import was not over after {seconds:g} seconds."
        names = names[len(answers) + 1 :] if ended else []
    return failed


def _imported(modules: list[str], seconds: float) -> tuple[list[str], str]:
    """One answer for each import that was tried, and how the child ended: nothing if it was stopped by the clock."""
    try:
        child = subprocess.run([sys.executable, "-c", CHILD, *modules], capture_output=True, timeout=seconds)
        out, ended = child.stdout, f"Its import ends Python, with status {child.returncode}."
    except subprocess.TimeoutExpired as stopped:
        out, ended = stopped.stdout or b"", ""
    except (OSError, TypeError) as error:
        out, ended = b"", f"Not even Python could be started: {error}."
    return out.decode("utf-8", "replace").splitlines(), ended


def _tested() -> dict[str, str]:
    text = PINS.read_text(encoding="utf-8") if PINS.exists() else ""
    return dict(re.findall(r"^([\w-]+)==([\w.]+)", text, flags=re.MULTILINE))
