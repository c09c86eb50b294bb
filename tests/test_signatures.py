"""Shapes in signatures, checked while examples and tests run: see the plugin, ``shapes.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
EXAMPLES = ["core", "masks.py", "models", "nn", "patterns.py", "positions.py", "scores.py", "variants"]
TESTS = ["test_linear.py", "test_segments.py"]  # but for bad input, which is to reach its own error

WRONG = """
import shapes
import numpy as np, torch
from jaxtyping import TypeCheckError
from attnlib import MultiHeadAttention, scores

layer = MultiHeadAttention(4, 2)
for function, *wrong in [(scores.dot.__wrapped__, np.eye(3), np.zeros((2, 2))), (layer, torch.zeros(4))]:
    try:
        function(*wrong)
    except TypeCheckError as error:
        print(str(error).splitlines()[0])
"""


def _python(*arguments):
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)


def test_examples_and_tests_keep_to_the_shapes_of_signatures():
    files = [*(f"attnlib/{part}" for part in EXAMPLES), *(f"tests/{name}" for name in TESTS)]
    options = ["-p", "shapes", "-p", "no:cacheprovider", "-q", "--doctest-modules", "-k", "not bad"]
    left_out = (
        "nn/__init__.py::attnlib.nn",  # a graph is made of what no checker wraps
        "models/detecting.py::attnlib.models.detecting.train",  # takes long, and its parts have examples
    )
    options += [f"--deselect=attnlib/{example}" for example in left_out]
    done = _python("-m", "pytest", *options, *files)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


def test_a_shape_that_a_signature_does_not_say_is_found():
    done = _python("-c", WRONG)
    assert done.stdout.splitlines() == [
        "Type-check error whilst checking the parameters of attnlib.scores.dot.",
        "Type-check error whilst checking the parameters of attnlib.nn.heads.MultiHeadAttention.forward.",
    ], done.stderr
