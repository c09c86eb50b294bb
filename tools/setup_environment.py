"""Set up .venv, or say in one line why that cannot be: ``python3 tools/setup_environment.py learner``.

``make`` runs this before everything that needs .venv. Where nothing changed it does nothing, in a moment; what was
interrupted, moved or made with another Python it mends. uv installs, in a fraction of the time that pip takes; where
uv cannot be had, pip does. It has to say that a Python is too old, so it runs under any from 3.6 on.
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

UV = "uv==0.13.9"

# What each set-up builds on, what it installs, and what a reader hears of it.
STAGES = {
    "learner": (None, ["-r", "requirements.txt"], "what lessons need: a minute, if the network is fast"),
    "tester": ("learner", ["-c", "constraints.txt", "-e", ".[test,book,slides]"], "what tests need: half a minute"),
    "bench": ("tester", ["-c", "constraints.txt", "-e", ".[bench]"], "what it is compared with: seconds"),
    "book": ("learner", ["-c", "constraints.txt", "-e", ".[book]"], "what makes the book: seconds"),
    "slides": ("learner", ["-c", "constraints.txt", "-e", ".[slides]"], "what makes the decks: seconds"),
}

# What uv has to be told of pip's configuration, which it does not read. Both have options of these names.
PLACES = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "constraint")

SIZES = "1.7 GB, or 5.8 GB where torch comes with support for a GPU"
NEEDED = 2.2  # GB, and for a moment, with torch for the CPU; as much on the disk of uv's cache, where that is another
CACHE = os.environ.get("UV_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")

AGAIN = "Then run the same command again: it goes on from here."
ROOM = f"Make room, or name another place for uv's cache with UV_CACHE_DIR. {AGAIN}"
TROUBLES = (
    (r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b", f"No space left. {ROOM}"),
    (
        r"Retry\(total=0|Max retries exceeded|Read timed out|ReadTimeoutError|IncompleteRead|incomplete-download",
        "No network: the package index could not be reached, or was lost. Look at the network or the proxy. " + AGAIN,
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
    run = run or quietly
    before, wanted, what = STAGES[stage]
    if before:
        set_up(before, root, run)
    else:
        ensure_python(root, run)
    stamp, current = root / ".venv" / stage, fingerprint(root)
    if stamp.is_file() and stamp.read_text() == current:
        return
    print(f"Installing {what} ", end="", flush=True)
    install(wanted, root, run)
    print(" done.", flush=True)
    stamp.write_text(current)


def fingerprint(root: Path) -> str:
    """What a finished set-up was made from: it is done again when one of these has changed."""
    files = [root / name for name in ("requirements.txt", "constraints.txt", "pyproject.toml")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest() + "\n"


def supported(root: Path) -> List[str]:
    """The Pythons that pyproject.toml allows, from the oldest on: 3.11, 3.12 and so on."""
    found = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', (root / "pyproject.toml").read_text("utf-8"))
    return [f"3.{minor}" for minor in range(int(found.group(1)), int(found.group(2)))]


def ensure_python(root: Path, run: Run) -> None:
    """Leave a .venv whose Python the course supports and whose pip works, where need be with the Python of this."""
    venv = root / ".venv"
    python = version_of(str(venv / "bin" / "python"))
    whole = list(venv.glob(f"lib/python{python}/site-packages/pip-*.dist-info/RECORD"))
    if whole and python in supported(root):
        return follow(venv, str(root))
    old = f".venv has Python {python}. " if whole else ".venv is half-made, or its Python is gone. "
    trouble = trouble_here(root)
    if trouble:
        raise SetupError(old + trouble if venv.exists() else trouble)
    if venv.exists():
        print(old + "It is made anew.", flush=True)
    print("Setting up .venv with Python {}.{}.{}, once: {} ".format(*sys.version_info[:3], SIZES), end="", flush=True)
    code, said = run([sys.executable, "-m", "venv", "--clear", str(venv)], root)
    print()
    if code:
        refuse(said, "Python could not make .venv")
    return None


def trouble_here(root: Path) -> str:
    """What keeps the Python that runs this from making .venv, seen before a minute is spent; or nothing."""
    here, served = "{}.{}".format(*sys.version_info), supported(root)
    if here not in served:
        found = next((version for version in reversed(served) if version_of(f"python{version}") == version), None)
        remedy = ("" if found else "Install one. ") + f"Run: make lab PYTHON=python{found or served[-1]}"
        return f"The course needs Python {served[0]} to {served[-1]}, and {sys.executable} is {here}. {remedy}"
    if not find_spec("venv") or not find_spec("ensurepip"):
        return f"{sys.executable} comes without venv. On Debian and Ubuntu: apt install python{here}-venv. {AGAIN}"
    for folder in filter(os.path.isdir, (str(root), CACHE)):
        free = shutil.disk_usage(folder).free / 1e9
        if free < NEEDED:
            return f"No space: {NEEDED} GB are needed in {folder}, {free:.1f} are free. {ROOM}"
    return ""


def version_of(python: str) -> str:
    """Which Python that command is, as 3.11, or nothing where it does not start."""
    ask = [python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().strip()
    except OSError:
        return ""


def follow(venv: Path, new: str) -> None:
    """Where the folder was moved, write its place wherever .venv has the old one: a new .venv would need a network."""
    pip = venv / "bin" / "pip"
    found = re.search(rb'(/[^\n"]*)/\.venv/bin/python', pip.read_bytes()[:2000] if pip.is_file() else b"")
    old = os.fsdecode(found.group(1)) if found else new
    if os.path.exists(old) and os.path.samefile(old, new):
        return
    print(f"The folder was at {old}. Its .venv follows.", flush=True)
    packages = "lib/python*/site-packages/"
    for pattern in ("*", "bin/*", packages + "*.pth", packages + "__editable__*", "share/jupyter/kernels/*/*.json"):
        for file in venv.glob(pattern):
            text = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
            moved = re.sub(re.escape(os.fsencode(old)) + rb"(?![\w.-])", lambda _: os.fsencode(new), text)
            if moved != text and b"\0" not in text:
                copy = shutil.copy2(str(file), str(file) + "~")  # the file may be one with that in uv's cache
                Path(copy).write_bytes(moved)
                os.replace(copy, str(file))


def install(wanted: List[str], root: Path, run: Run) -> None:
    """Install that with uv, or with pip where uv cannot be had or fails."""
    forget_half_installed(root / ".venv")
    python = str(root / ".venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install"]
    code, said = run([*pip, UV], root)
    if not code:
        uv = [str(root / ".venv" / "bin" / "uv"), "pip", "install", "--python", python]
        code, said = run([*uv, *places(run([python, "-m", "pip", "config", "list"], root)[1]), *wanted], root)
    if code and not explained(said):
        print(" uv cannot; pip takes some minutes ", end="", flush=True)
        code, more = run([*pip, *wanted], root)
        said += more
    if code:
        refuse(said, "pip could not install this")


def forget_half_installed(venv: Path) -> None:
    """Let what was being unpacked be installed again: that they did it is what uv and pip write last, into RECORD."""
    for record in (info / "RECORD" for info in venv.glob("lib/python*/site-packages/*.dist-info")):
        if not record.exists() or b"INSTALLER" not in record.read_bytes():
            shutil.rmtree(str(record.parent))


def places(settings: str) -> List[str]:
    """Where ``pip config list`` says that packages are, as options; of all places take the best, as pip does."""
    found = dict(reversed(re.findall(r"^(?:global|install|:env:)\.([a-z-]+)='(.*)'$", settings, re.MULTILINE)))
    pairs = [(name, place) for name in PLACES for place in found.get(name, "").replace("\\n", " ").split()]
    return ["--index-strategy", "unsafe-best-match", *(f"--{name}={place}" for name, place in pairs)]


def explained(said: str) -> str:
    """The line for what a command said, or nothing where that is not known."""
    return next((line for pattern, line in TROUBLES if re.search(pattern, said)), "")


def refuse(said: str, what: str) -> None:
    """Show what a command said, and end with the line for it."""
    sys.stderr.write("\n" + said)
    raise SetupError(explained(said) or f"{what}; its reason is above. {AGAIN}")


def quietly(command: List[str], folder: Path) -> Tuple[int, str]:
    """Run, with a dot every few seconds for whoever waits; what is said is kept, for it may say what is wrong."""
    with subprocess.Popen(command, cwd=str(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        while True:
            try:
                said = child.communicate(timeout=3)[0].decode(errors="replace")
                return child.returncode, said
            except subprocess.TimeoutExpired:
                print(".", end="", flush=True)


if __name__ == "__main__":
    main()
