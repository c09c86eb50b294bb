"""What every number here depends on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import torch


def described(*packages: str) -> str:
    """The processor, and the versions of Python, torch, NumPy and ``packages``; no name of the machine."""
    model = platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    versions = {"Python": platform.python_version(), "torch": torch.__version__, "NumPy": version("numpy")}
    said = ", ".join(f"{name} {v}" for name, v in (versions | {name: version(name) for name in packages}).items())
    capability = torch.backends.cpu.get_cpu_capability()
    n_threads = torch.get_num_threads()
    used = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    return f"{model} ({capability}), {os.cpu_count()} cores, {used}; {said}"
