"""What set-up says and mends, without a network: no test here installs anything. And what the versions serve."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import setup_environment as setup
import solve_constraints
from attnlib.course import environment

ROOT = Path(__file__).parents[1]
HERE = "{}.{}".format(*sys.version_info)

# What pip 23.0 wrote to stderr, shortened.
NO_NETWORK = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None)) after connection broken by 'NewConnectionError(\
'Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/torch/
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
ERROR: No matching distribution found for torch==2.13.0
"""
NO_SPACE = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
NO_TORCH = """\
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: 2.2.2)
ERROR: No matching distribution found for torch==2.13.0
"""
UNKNOWN = "ERROR: ResolutionImpossible: for help visit ...\n"
# uv 0.13.9, where pip goes on.
UV_OFFLINE = "error: Failed to fetch: `https://pypi.org/simple/torch/`\n  Caused by: dns error\n"
UV = ["get uv", "config", "uv"]  # what an installation calls when all is well


class Commands:
    """Stands in for ``python -m venv``, pip and uv: writes the files that set-up looks at, and remembers the calls."""

    def __init__(self):
        self.calls, self.commands, self.says = [], [], {}

    def __call__(self, command, folder):
        kind = "uv" if command[0].endswith("/uv") else "get uv" if command[-1] == setup.UV else command[2]
        kind = "config" if command[3] == "config" else kind
        self.calls.append(kind)
        self.commands.append(command)
        if kind == "venv":
            assert command[3] == "--clear"
            venv = Path(command[4])
            shutil.rmtree(venv, ignore_errors=True)
            (venv / "bin").mkdir(parents=True)
            (venv / "bin" / "python").symlink_to(sys.executable)
            if "venv" not in self.says:
                installed(venv, "pip", RECORD="pip-1.0.dist-info/INSTALLER")
                (venv / "bin" / "pip").write_text(f"#!{venv}/bin/python{HERE}\nfrom pip import main\n")
                (packages(venv) / "__editable__.attnlib.pth").write_text(f"{folder}\n")
        said = self.says.pop(kind, "")
        if isinstance(said, BaseException):
            raise said
        return bool(said) and kind != "config", said


def packages(venv):
    return venv / "lib" / f"python{HERE}" / "site-packages"


def installed(venv, name, **files):
    info = packages(venv) / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    for file, text in files.items():
        (info / file).write_text(text)
    return info


@pytest.fixture
def run():
    return Commands()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "course"
    root.mkdir()
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    return root


def only_python(root, oldest, newest):
    """Let the course in ``root`` support Python 3.``oldest`` to 3.``newest``, whatever runs this test."""
    project = root / "pyproject.toml"
    allowed = f'requires-python = ">=3.{oldest},<3.{newest + 1}"'
    project.write_text(re.sub(r'requires-python = "[^"]*"', allowed, project.read_text()))


# Set-up.


def test_the_script_runs_under_the_pythons_it_has_to_refuse():
    ast.parse(Path(setup.__file__).read_text(), feature_version=(3, 6))


def test_slides_are_set_up_on_what_a_learner_needs_in_a_line_each(root, run, capsys):
    setup.set_up("slides", root, run)
    assert run.calls == ["venv", *UV, *UV]
    assert [(root / ".venv" / stage).is_file() for stage in ("learner", "tester", "slides")] == [True, False, True]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["Setting", "Installing", "Installing"]
    assert [line.endswith(" done.") for line in lines] == [False, True, True]


def test_a_set_up_is_made_once_and_again_when_its_versions_change(root, run):
    setup.set_up("tester", root, run)
    assert run.calls == ["venv", *UV, *UV]
    setup.set_up("tester", root, run)
    assert len(run.calls) == 7
    with (root / "constraints.txt").open("a") as file:
        file.write("new==1.0\n")
    setup.set_up("learner", root, run)
    assert run.calls[7:] == UV


@pytest.mark.parametrize(
    ("said", "calls"),
    [({"get uv": "ERROR: No matching distribution found for uv"}, ["get uv"]), ({"uv": UV_OFFLINE}, UV)],
)
def test_where_uv_cannot_be_had_or_fails_pip_installs_the_same(root, run, capsys, said, calls):
    run.says = said
    setup.set_up("learner", root, run)
    assert run.calls == ["venv", *calls, "pip"]
    assert run.commands[-1][1:] == ["-m", "pip", "install", "-r", "requirements.txt"]
    assert capsys.readouterr().out.endswith(" uv cannot; pip takes some minutes  done.\n")


def test_uv_looks_where_pip_is_told_to_look(root, run):
    run.says["config"] = (
        ":env:.find-links='/wheels'\n:env:.timeout='180'\nWARNING: config\nglobal.extra-index-url='\\nfile:///a\\nb'\n"
        "global.find-links='/old'\nglobal.index-url='https://c/simple'\nlist.index-url='d'\n"
    )
    setup.set_up("learner", root, run)
    assert run.commands[-1][3:] == [
        *("--python", f"{root}/.venv/bin/python", "--index-strategy", "unsafe-best-match"),
        *(
            "--index-url=https://c/simple",
            "--extra-index-url=file:///a",
            "--extra-index-url=b",
            "--find-links=/wheels",
        ),
        *("-r", "requirements.txt"),
    ]


@pytest.mark.parametrize("kind", ["get uv", "pip"])
@pytest.mark.parametrize(
    ("said", "line"),
    [
        (NO_NETWORK, "No network: "),
        (NO_SPACE, "No space left. "),
        (NO_TORCH, "torch is not made for this machine"),
        (UNKNOWN, "pip could not install this; its reason is above."),
    ],
)
def test_what_pip_says_becomes_one_line_and_the_next_run_goes_on(root, run, capsys, kind, said, line):
    run.says = {"uv": UV_OFFLINE, "pip": said} | {kind: said}
    with pytest.raises(setup.SetupError, match=re.escape(line)) as trouble:
        setup.set_up("learner", root, run)
    assert "\n" not in str(trouble.value)
    assert said in capsys.readouterr().err
    run.calls, run.says = [], {}
    setup.set_up("learner", root, run)
    assert run.calls == UV


def test_a_connection_that_came_back_is_not_blamed():
    assert setup.explained("WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by\n") == ""


@pytest.mark.parametrize("said", [KeyboardInterrupt(), NO_SPACE])
def test_a_venv_that_was_cut_off_is_made_anew(root, run, capsys, said):
    run.says["venv"] = said
    with pytest.raises((KeyboardInterrupt, setup.SetupError)):
        setup.set_up("learner", root, run)
    setup.set_up("learner", root, run)
    assert run.calls == ["venv", "venv", *UV]
    assert ".venv is half-made" in capsys.readouterr().out


@pytest.mark.parametrize("record", [{}, {"RECORD": "half/__init__.py,sha256=1,2\n"}], ids=["pip", "uv"])
def test_a_package_that_was_cut_off_is_installed_again(root, run, record):
    run.says["uv"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        setup.set_up("learner", root, run)
    half = installed(root / ".venv", "half", METADATA="", **record)
    whole = installed(root / ".venv", "whole", METADATA="", RECORD="whole-1.0.dist-info/INSTALLER,sha256=1,2\n")
    setup.set_up("learner", root, run)
    assert run.calls == ["venv", *UV, *UV]
    assert whole.exists()
    assert not half.exists()


def test_an_old_venv_of_another_python_is_made_anew(root, run, capsys):
    setup.set_up("learner", root, run)
    python = root / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\necho 3.9\n")
    python.chmod(0o755)
    installed_for_39 = root / ".venv" / "lib" / "python3.9" / "site-packages" / "pip-1.0.dist-info"
    installed_for_39.mkdir(parents=True)
    (installed_for_39 / "RECORD").touch()
    setup.set_up("learner", root, run)
    assert run.calls == ["venv", *UV] * 2
    assert ".venv has Python 3.9. It is made anew." in capsys.readouterr().out


def test_a_venv_whose_python_is_gone_or_was_replaced_is_made_anew(root, run):
    setup.set_up("learner", root, run)
    python = root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/no/such/python")
    setup.set_up("learner", root, run)
    packages(root / ".venv").parent.rename(root / ".venv" / "lib" / "python3.10")
    setup.set_up("learner", root, run)
    assert run.calls == ["venv", *UV] * 3


@pytest.mark.parametrize(("oldest", "newest"), [(97, 98), (5, 6)])
def test_a_python_that_torch_does_not_serve_is_refused(root, run, monkeypatch, oldest, newest):
    only_python(root, oldest, newest)
    asked = f"The course needs Python 3.{oldest} to 3.{newest}, and {sys.executable} is {HERE}. "
    monkeypatch.setattr(setup, "version_of", lambda python: "")
    with pytest.raises(
        setup.SetupError, match=re.escape(f"{asked}Install one. Run: make lab PYTHON=python3.{newest}")
    ):
        setup.set_up("learner", root, run)
    monkeypatch.setattr(setup, "version_of", lambda python: python.replace("python", ""))
    with pytest.raises(setup.SetupError, match=re.escape(f"{asked}Run: make lab PYTHON=python3.{newest}")):
        setup.set_up("learner", root, run)
    assert run.calls == []


def test_an_old_venv_is_kept_until_another_can_be_made(root, run):
    setup.set_up("learner", root, run)
    only_python(root, 97, 98)
    with pytest.raises(setup.SetupError, match=rf"^\.venv has Python {HERE}\. The course needs Python 3\.97 to 3\.98"):
        setup.set_up("learner", root, run)
    assert (root / ".venv" / "learner").exists()


def test_a_finished_venv_does_not_ask_which_python_runs_make(root, run, monkeypatch):
    setup.set_up("learner", root, run)
    monkeypatch.setattr(setup, "trouble_here", lambda root: "wrong")
    setup.set_up("learner", root, run)


def test_debians_python_without_venv_is_told_what_to_install(root, run, monkeypatch):
    monkeypatch.setattr(setup, "find_spec", lambda name: None if name == "ensurepip" else name)
    with pytest.raises(setup.SetupError, match=f"comes without venv.*apt install python{HERE}-venv"):
        setup.set_up("learner", root, run)


@pytest.mark.parametrize("full", ["course", "elsewhere"])
def test_a_full_disk_is_seen_beforehand(root, run, tmp_path, monkeypatch, full):
    monkeypatch.setattr(setup, "CACHE", str(tmp_path))
    usage = {True: SimpleNamespace(free=0.4e9), False: SimpleNamespace(free=90e9)}
    monkeypatch.setattr(setup.shutil, "disk_usage", lambda folder: usage[(folder == str(root)) == (full == "course")])
    folder = root if full == "course" else tmp_path
    with pytest.raises(setup.SetupError, match=rf"No space: 2\.2 GB are needed in {folder}, 0\.4 are free"):
        setup.set_up("learner", root, run)
    assert run.calls == []


def test_a_moved_folder_takes_its_venv_along(root, run, capsys):
    setup.set_up("learner", root, run)
    moved = root.rename(root.with_name("course-2"))
    other = moved / ".venv" / "bin" / "other"
    other.write_text(f"{root}-old/.venv/bin {root}/.venv/bin")
    other.chmod(0o755)
    os.link(other, cached := root.with_name("cached"))
    setup.set_up("learner", moved, run)
    assert run.calls == ["venv", *UV]  # nothing that needs a network
    assert f"The folder was at {root}. Its .venv follows." in capsys.readouterr().out
    assert (packages(moved / ".venv") / "__editable__.attnlib.pth").read_text() == f"{moved}\n"
    assert other.read_text() == f"{root}-old/.venv/bin {moved}/.venv/bin"
    assert other.stat().st_mode & 0o777 == 0o755
    assert cached.read_text() == f"{root}-old/.venv/bin {root}/.venv/bin"
    setup.set_up("learner", moved, run)
    assert capsys.readouterr().out == ""


def test_the_folder_under_another_name_was_not_moved(root, run, capsys):
    setup.set_up("learner", root, run)
    capsys.readouterr()
    pip = root / ".venv" / "bin" / "pip"
    root.with_name("link").symlink_to(root)
    pip.write_text(f'#!/bin/sh\n\'\'\'exec\' "{root.with_name("link")}/.venv/bin/python" "$0" "$@"\n')
    setup.set_up("learner", root, run)
    assert capsys.readouterr().out == ""
    root.with_name("link").unlink()
    setup.set_up("learner", root, run)
    assert f"The folder was at {root.with_name('link')}. Its .venv follows." in capsys.readouterr().out


def test_what_a_command_says_is_kept_and_dots_tell_that_it_runs(capfd):
    code = "import sys, time; print('why', file=sys.stderr); time.sleep(3.5); print('out'); sys.exit(3)"
    assert setup.quietly([sys.executable, "-uc", code], ROOT) == (3, "why\nout\n")
    assert capfd.readouterr() == (".", "")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyboardInterrupt(), "Interrupted. The same command again goes on from here."),
        (OSError(28, "No space left on device"), "No space left. Make room, or name another place for uv's cache"),
        (
            PermissionError(13, "Permission denied", ".venv"),
            "Permission denied: '.venv'. Is the folder yours to write",
        ),
        (setup.SetupError("Try this."), "Try this."),
    ],
)
def test_every_trouble_ends_in_a_line(monkeypatch, error, line):
    def fail(*_):
        raise error

    monkeypatch.setattr(setup, "set_up", fail)
    monkeypatch.setattr(sys, "argv", ["setup_environment.py", "learner"])
    with pytest.raises(SystemExit, match=re.escape(line)) as end:
        setup.main()
    assert len(str(end.value).splitlines()) == 2  # the first is empty, to stand apart from pip's


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_make_names_a_python_that_is_not_there(root):
    shutil.copy(ROOT / "Makefile", root)
    command = ["make", "lab", "PYTHON=python3.999"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ | {"MAKEFLAGS": ""})
    assert done.returncode == 2
    assert done.stderr.startswith('There is no "python3.999" here.')


# The versions.

PYTHONS = [f"{version}.{patch}" for version in setup.supported(ROOT) for patch in (0, 2, 4, 5, 99)]


def pins():
    """What both files pin, as requirements."""
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("requirements.txt", "constraints.txt"))
    return [Requirement(line) for line in solve_constraints.pins(text)]


def refused(pin, requires):
    """The supported Pythons for which ``pin`` is meant, and whose version ``requires`` excludes."""
    meant = [v for v in PYTHONS if pin.marker is None or pin.marker.evaluate(as_python(v))]
    return [version for version in meant if version not in SpecifierSet(requires or "")]


def as_python(version):
    return {"python_full_version": version, "python_version": version.rpartition(".")[0]}


def required_python(pin):
    """Requires-Python of what is installed, or why that cannot be read."""
    if pin.marker and not pin.marker.evaluate():
        return None, "for another Python or system"
    try:
        found = metadata(pin.name)
    except PackageNotFoundError:
        return None, "not installed"
    if not pin.specifier.contains(found["Version"]):
        return None, f"installed as {found['Version']}"
    return found["Requires-Python"] or "", None


def test_no_pinned_version_excludes_a_supported_python():
    wrong, unread = {}, {}
    for pin in pins():
        requires, reason = required_python(pin)
        if reason:
            unread.setdefault(reason, []).append(str(pin).partition(";")[0])
        elif bad := refused(pin, requires):
            wrong[str(pin)] = f"needs Python {requires}, which excludes {', '.join(bad)}"
    assert not wrong
    if unread:
        pytest.skip(
            "the others serve all; not read: "
            + "; ".join(f"{k} ({len(v)}): {', '.join(v)}" for k, v in unread.items())
        )


def test_a_version_that_excludes_a_supported_python_is_found():
    everywhere = Requirement("soupsieve==4.1.1")
    assert refused(everywhere, ">=3.11.5") == ["3.11.0", "3.11.2", "3.11.4"]
    assert refused(Requirement('soupsieve==4.1.1; python_full_version >= "3.11.5"'), ">=3.11.5") == []
    assert refused(everywhere, "<3.14") == [f"3.14.{patch}" for patch in (0, 2, 4, 5, 99)]
    assert refused(everywhere, None) == refused(everywhere, ">=3.9") == []


def test_versions_that_cannot_be_read_are_not_passed():
    assert required_python(Requirement("no-such-package==1.0"))[1] == "not installed"
    assert required_python(Requirement("numpy==0.1"))[1].startswith("installed as ")
    assert required_python(Requirement('numpy==2.0; python_version < "3"'))[1] == "for another Python or system"


def test_everything_that_is_asked_for_is_pinned_and_nothing_for_a_gpu():
    pinned = {pin.name.lower() for pin in pins()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = sum(project["optional-dependencies"].values(), project["dependencies"])
    assert {Requirement(line).name.lower() for line in asked} - {project["name"]} <= pinned
    assert not [name for name in pinned if re.match("cuda|nvidia|triton", name)]
    constrained = [Requirement(line).name for line in solve_constraints.pins((ROOT / "constraints.txt").read_text())]
    assert "torch" not in constrained
    assert "lark" not in constrained, "a parser that takes seconds to import: see HELD_BACK in solve_constraints.py"


def test_the_header_and_the_readme_name_the_supported_pythons():
    oldest, *_, newest = setup.supported(ROOT)
    assert f"solved for Python {oldest} to {newest} at once" in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"Python {oldest} to {newest}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_constraints_hold_neither_what_is_asked_for_nor_what_a_gpu_needs():
    solved = "numpy==2.4.6\nnvidia-cublas==13.1 ; sys_platform == 'linux'\nscipy==1.17.1\ntriton==3.7.1\n"
    assert solve_constraints.constraints(solved, ["numpy==2.4.6"]) == "scipy==1.17.1\n"


# What the reader is told in lesson 00.


def test_the_check_knows_what_the_course_asks_for():
    asked = {pin.partition("==")[0] for pin in solve_constraints.pins((ROOT / "requirements.txt").read_text())}
    assert set(environment.PACKAGES) == asked - {"jaxtyping", "nbval"}  # for annotations and for tests only


@pytest.fixture
def packages_there(tmp_path, monkeypatch):
    """Only two packages are asked for, and the test says what is in them."""

    def write(**modules):
        for name, code in modules.items():
            (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(environment, "PACKAGES", {"einops": "fake_einops", "tqdm": "fake_tqdm"})

    return write


def test_a_package_that_imports_is_not_named_whatever_it_prints(packages_there, capsys):
    packages_there(fake_einops="print('hello'); import os; os.write(1, b'hello')", fake_tqdm="")
    environment.check_environment()
    assert capsys.readouterr().out.startswith("Everything is there, in the versions")


def test_an_editor_whose_kernels_have_many_threads_is_told(packages_there, capsys, monkeypatch):
    packages_there(fake_einops="", fake_tqdm="")
    monkeypatch.delenv("OMP_NUM_THREADS")
    environment.check_environment()
    assert capsys.readouterr().out.splitlines()[1:] == [environment.THREADS]


def test_a_broken_package_is_named_with_its_error(packages_there, capsys):
    packages_there(fake_einops="raise ImportError('libgomp.so.1:\\n no such file')", fake_tqdm="")
    environment.check_environment()
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "einops is installed and does not work. ImportError: libgomp.so.1: no such file. " + environment.REPAIR
    ]


def test_a_package_that_ends_python_does_not_hide_the_next(packages_there, capsys):
    packages_there(fake_einops="import os; os.abort()", fake_tqdm="1 / 0")
    environment.check_environment()
    said = capsys.readouterr().out
    assert "einops is installed and does not work. Its import ends Python, with status " in said
    assert "tqdm is installed and does not work. ZeroDivisionError: division by zero." in said


def test_a_package_that_never_ends_is_named(packages_there, capsys):
    packages_there(fake_einops="", fake_tqdm="import time; time.sleep(60)")
    environment.check_environment(seconds=1)
    said = capsys.readouterr().out
    assert "tqdm is installed and does not work. Its import was not over after 1 seconds." in said


def test_the_check_never_raises(packages_there, capsys, monkeypatch):
    packages_there()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    environment.check_environment()
    assert "Not even Python could be started" in capsys.readouterr().out


def test_a_torch_that_computes_nonsense_is_found(tmp_path, monkeypatch, capsys):
    code = "class T:\n backward = lambda s: 0\n __matmul__ = lambda a, b: a\n grad = property(lambda s: 1 / 0)\n"
    (tmp_path / "torch.py").write_text(code + "def ones(*a, **k): return T()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(environment, "PACKAGES", {"torch": "torch"})
    environment.check_environment()
    assert "torch is installed and does not work. ZeroDivisionError: division by zero." in capsys.readouterr().out
