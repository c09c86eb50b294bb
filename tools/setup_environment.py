"""Set up .venv, or say in one line why that cannot be: ``python3 tools/setup_environment.py learner``.

``make`` runs this before everything that needs .venv. Where nothing changed it does nothing, in a moment; what
was interrupted, moved or made with another Python it mends. It has to say that a Python is too old, so it runs
under any from 3.6 on, with nothing installed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Callable, List, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[[List[str], Path], Tuple[int, str]]  # a command and a folder; its status and what it said

# What each set-up builds on, and what it asks pip for.
STAGES = {
    "learner": (None, ["-r", "requirements.txt"]),
    "tester": ("learner", ["--quiet", "-c", "constraints.txt", "-e", ".[test,book,slides]"]),
    "bench": ("tester", ["--quiet", "-c", "constraints.txt", "-e", ".[bench]"]),
    "book": ("learner", ["--quiet", "-c", "constraints.txt", "-e", ".[book]"]),
    "slides": ("learner", ["--quiet", "-c", "constraints.txt", "-e", ".[slides]"]),
}

# In GB, with torch for the CPU: what stays in .venv, and what pip unpacks or keeps elsewhere meanwhile.
STAYS = 1.7
PASSES = 0.5
SIZES = "1.7 GB, or 5.8 GB where torch comes with support for a GPU"

SCRATCH = os.environ.get("TMPDIR", "/tmp")
AGAIN = "Then run the same command again: it goes on from here."
TROUBLES = (
    (
        r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b",
        f"No space left. pip needs it in the folder of the course, in {SCRATCH} (TMPDIR names another place) and in "
        f"its cache (`pip cache purge` empties that). Make room. {AGAIN}",
    ),
    (
        r"Retry\(total=0|Max retries exceeded|Read timed out|ReadTimeoutError|IncompleteRead|incomplete-download",
        "No network: pip could not reach the package index, or lost it. Look at the network or the proxy. " + AGAIN,
    ),
    (
        r"No matching distribution found for torch\b",
        "torch is not made for this machine: it needs Linux with glibc 2.28, macOS 14 on Apple silicon, or Windows, "
        "and a Python of 64 bits. On another machine the course runs.",
    ),
)


class SetupError(Exception):
    """What is wrong and what to do about it, in one line."""


def main() -> None:
    """Set up what the command line names, and put every trouble that is known into one line."""
    try:
        set_up(sys.argv[1], ROOT)
    except SetupError as trouble:
        sys.exit("\n" + str(trouble))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. The same command again goes on from here.")
    except OSError as error:
        sys.exit("\n" + (explained(str(error)) or f"{error}. Is the folder yours to write in?"))


def set_up(stage: str, root: Path, run: Optional[Run] = None) -> None:
    """Bring .venv to ``stage``, from wherever it is."""
    run = run or shown
    before, wanted = STAGES[stage]
    if before:
        set_up(before, root, run)
    else:
        ensure_python(root, run)
    venv = root / ".venv"
    stamp, current = venv / stage, fingerprint(root)
    if stamp.is_file() and stamp.read_text() == current:
        return
    forget_half_installed(venv)
    code, said = run([str(venv / "bin" / "python"), "-m", "pip", "install", *wanted], root)
    if code:
        raise SetupError(explained(said) or "pip could not install this; its reason is above. " + AGAIN)
    stamp.write_text(current)


def fingerprint(root: Path) -> str:
    """What a finished set-up was made from: it is done again when one of these has changed."""
    files = [root / name for name in ("requirements.txt", "constraints.txt", "pyproject.toml")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest() + "\n"


def supported(root: Path) -> List[str]:
    """The Pythons that pyproject.toml allows, from the oldest on: 3.11, 3.12 and so on."""
    found = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', (root / "pyproject.toml").read_text("utf-8"))
    return [f"3.{minor}" for minor in range(int(found.group(1)), int(found.group(2)))]


# Python and .venv.


def ensure_python(root: Path, run: Run) -> None:
    """Leave a .venv whose Python the course supports and whose pip works."""
    venv = root / ".venv"
    if not venv.exists():
        return make_venv(root, run)
    python = version_of(str(venv / "bin" / "python"))
    if not python or not list(venv.glob(f"lib/python{python}/site-packages/pip-*.dist-info/RECORD")):
        return make_venv(root, run, "is half-made, or its Python is gone")
    if python not in supported(root):
        return make_venv(root, run, f"has Python {python}")
    old = made_in(venv)
    if old and not (os.path.exists(old) and os.path.samefile(old, str(root))):
        print(f"The folder was at {old}. Its .venv follows.", flush=True)
        follow(venv, old, str(root))
    return None


def make_venv(root: Path, run: Run, reason: str = "") -> None:
    """Make .venv with the Python that runs this, in place of what is there."""
    trouble = trouble_with_python(root) or trouble_with_space(root)
    if trouble:
        raise SetupError(f".venv {reason}. {trouble}" if reason else trouble)
    if reason:
        print(f".venv {reason}. It is made anew.", flush=True)
    print("Setting up .venv with Python {}.{}.{}, once: {}.".format(*sys.version_info[:3], SIZES), flush=True)
    code, said = run([sys.executable, "-m", "venv", "--clear", str(root / ".venv")], root)
    if code:
        raise SetupError(explained(said) or "Python could not make .venv; its reason is above. " + AGAIN)


def trouble_with_python(root: Path) -> str:
    """What keeps the Python that runs this from making .venv, or nothing."""
    here, served = "{}.{}".format(*sys.version_info), supported(root)
    if here not in served:
        found = next((version for version in reversed(served) if version_of(f"python{version}") == version), None)
        remedy = f"Run: make lab PYTHON=python{found or served[-1]}"
        return (
            f"The course needs Python {served[0]} to {served[-1]}, and {sys.executable} is {here}. "
            f"{remedy if found else 'Install one. ' + remedy}"
        )
    if not find_spec("venv") or not find_spec("ensurepip"):
        return f"{sys.executable} comes without venv. On Debian and Ubuntu: apt install python{here}-venv. {AGAIN}"
    return ""


def trouble_with_space(root: Path) -> str:
    """Which disk has no room for it, seen before minutes are spent."""
    for folder, needed in ((str(root), STAYS + PASSES), (SCRATCH, PASSES)):
        free = shutil.disk_usage(folder).free / 1e9
        if free < needed:
            another = "" if folder == str(root) else " or name another place with TMPDIR"
            return (
                f"No space: {needed:.1f} GB are needed in {folder}, {free:.1f} are free. Make room{another}. {AGAIN}"
            )
    return ""


def version_of(python: str) -> str:
    """Which Python that command is, as 3.11, or nothing where it does not start."""
    ask = [python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().strip()
    except OSError:
        return ""


def made_in(venv: Path) -> str:
    """The folder in which .venv was made, as its pip has it on its first lines."""
    pip = venv / "bin" / "pip"
    head = pip.read_bytes()[:2000] if pip.is_file() else b""
    found = re.search(rb'(/[^\n"]*)/\.venv/bin/python', head)
    return os.fsdecode(found.group(1)) if found else ""


def follow(venv: Path, old: str, new: str) -> None:
    """Write the new folder wherever .venv has the old one: that needs no network, and a new .venv would."""
    packages = "lib/python*/site-packages/"
    for pattern in ("*", "bin/*", packages + "*.pth", packages + "__editable__*", "share/jupyter/kernels/*/*.json"):
        for file in venv.glob(pattern):
            text = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
            moved = re.sub(re.escape(os.fsencode(old)) + rb"(?![\w.-])", lambda _: os.fsencode(new), text)
            if moved != text and b"\0" not in text:
                file.write_bytes(moved)


# pip.


def forget_half_installed(venv: Path) -> None:
    """Let pip install again what it was unpacking when it was stopped: RECORD is what it writes last."""
    for info in venv.glob("lib/python*/site-packages/*.dist-info"):
        if not (info / "RECORD").exists():
            shutil.rmtree(str(info))


def explained(said: str) -> str:
    """The line for what a command said, or nothing where that is not known."""
    return next((line for pattern, line in TROUBLES if re.search(pattern, said)), "")


def shown(command: List[str], folder: Path) -> Tuple[int, str]:
    """Run, let everything be seen as it comes, and keep what went to stderr: pip says there what is wrong."""
    child = subprocess.Popen(command, cwd=str(folder), stderr=subprocess.PIPE)
    said = []
    try:
        for line in child.stderr:
            text = line.decode(errors="replace")
            said.append(text)
            sys.stderr.write(text)
            sys.stderr.flush()
    finally:
        code = child.wait()
    return code, "".join(said)


if __name__ == "__main__":
    main()
