"""The package as strangers install it: a wheel, away from the repository, with the core alone or with everything."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import attnlib

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The folder in which the wheel is unpacked."""
    pytest.importorskip("setuptools", reason="what builds the wheel is not installed")
    root = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "attnlib", root / "attnlib", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q", "-w", "made"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    [made] = (root / "made").glob("attnlib-*.whl")
    zipfile.ZipFile(made).extractall(root / "unpacked")
    return root / "unpacked"


def requirements(name, found=()):
    """The distributions that one needs without extras, itself included."""
    if name in found:
        return found
    found = (*found, name)
    for line in distribution(name).requires or ():
        if "extra ==" not in line:
            found = requirements(re.match(r"[\w.-]+", line)[0], found)
    return found


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    """A folder with what the wheel asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("core")
    [info] = wheel.glob("attnlib-*.dist-info")
    asked = re.findall(r"^Requires-Dist: ([\w.-]+)(?!.*extra)", (info / "METADATA").read_text("utf-8"), re.MULTILINE)
    assert sorted(asked) == ["array-api-compat", "numpy", "scikit-learn"]
    for name in {name for one in asked for name in requirements(one)}:
        for top in {Path(file).parts[0] for file in distribution(name).files} - {"..", "__pycache__"}:
            (folder / top).symlink_to(distribution(name).locate_file(top))
    return folder


def run(code, *folders, site=False):
    """Run code where only these folders, and Python's own, can be imported from."""
    code = f"import sys; sys.path[:0] = {list(map(str, folders))}\n{code}"
    command = [sys.executable, "-I", *([] if site else ["-S"]), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folders[0])
    assert not done.returncode, done.stderr
    return done.stdout


def test_all_places_name_one_version():
    assert f"\nversion: {attnlib.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {attnlib.__version__}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_core_works_alone(wheel, core):
    code = """
import numpy as np, attnlib
from attnlib import NadarayaWatson, attention, data, masks
from attnlib.variants import linear_attention
assert attnlib.__file__.startswith(sys.path[0])
q = np.arange(6.0).reshape(3, 2)
print(attnlib.__version__, attention(q, q, q, mask=masks.causal(3)).out.shape, linear_attention(q, q, q).out.shape)
x = np.linspace(0, 1, 20)
print(NadarayaWatson(bandwidth=0.1).fit(x[:, None], x**2).predict([[0.5]]).round(2), data.digits()[0].shape)
print([name for name in ("torch", "matplotlib", "IPython") if name in sys.modules])
"""
    said = run(code, wheel, core).splitlines()
    assert said == [f"{attnlib.__version__} (3, 2) (3, 2)", "[0.26] (1797, 8, 8)", "[]"]


@pytest.mark.parametrize(
    ("line", "package", "extra"),
    [
        ("from attnlib import MultiHeadAttention", "torch", "torch"),
        ("import attnlib; attnlib.probes", "torch", "torch"),
        ("from attnlib.nn import Encoder", "torch", "torch"),
        ("from attnlib.data.tasks import sorting", "torch", "torch"),
        ("from attnlib.interventions import cut", "torch", "torch"),
        ("from attnlib.variants import hard_attention", "torch", "torch"),
        ("from attnlib.plotting import lines", "matplotlib", "plot"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(wheel, core, line, package, extra):
    code = f"try:\n    {line}\nexcept ModuleNotFoundError as error:\n    print(error.name, error)"
    said = run(code, wheel, core).strip()
    line = f"pip install '.[{extra}]', in the folder of the course"
    assert said == f"{package} this part of attnlib needs {package}: {line}"


def test_models_data_and_exercises_are_inside(wheel):
    code = """
import attnlib
from attnlib import check, data
from attnlib.models import pretrained
assert attnlib.__file__.startswith(sys.path[0])
model, tokenizer = pretrained("technical-english")
print(len(data.interface_texts().train) > 1000, len(data.reactions()) > 10, model.config.n_tokens)
from attnlib.course.grading import registry
print(sorted(registry.lessons())[:3])
"""
    assert run(code, wheel, site=True).splitlines() == ["True True 4096", "['00', '01', '02']"]
    assert (wheel / "attnlib" / "py.typed").exists()
