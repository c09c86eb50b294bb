"""First weights moved by next to nothing when an optimizer takes them, as if another processor had rounded.

Python reads this file when it starts with this folder on its path; ``tools/machines.py`` sees to that. It imports
no torch: it waits for a program that does. ``ATTNLIB_MOVED`` seeds the moves; ``ATTNLIB_MOVED_BY`` is how far
weights move, of their size: without it about ten units in the last place of their type.

A parameter moves once, when an optimizer first takes it, whatever other optimizers come later; and every time
one takes parameters the draws are the same, so that models that were equal stay so. What a checkpoint then loads
stays as it was saved.
"""

import os
import sys
import weakref
from importlib.machinery import PathFinder

OPTIMIZER = "torch.optim.optimizer"


class Finder:
    """Finds torch's optimizer where it lies, and has `move_first` look after it."""

    def find_spec(self, name, path=None, target=None):
        """Leave every other module to the next finder."""
        if name != OPTIMIZER:
            return None
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), move_first(module.Optimizer))
        return spec


def move_first(optimizer):
    """Let this class of optimizers move parameters when it takes them."""
    import torch

    sizes = {torch.float64: 1e-14, torch.float32: 1e-6}
    take, seen = optimizer.add_param_group, {}

    @torch.no_grad()
    def moving(self, group):
        take(self, group)
        generator = torch.Generator().manual_seed(int(os.environ["ATTNLIB_MOVED"]))
        for parameter in self.param_groups[-1]["params"]:
            if parameter.dtype in sizes:
                by = float(os.environ.get("ATTNLIB_MOVED_BY") or sizes[parameter.dtype])
                normal = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                if seen.get(id(parameter), lambda: None)() is not parameter:  # an id may be another's by now
                    seen[id(parameter)] = weakref.ref(parameter)
                    parameter.mul_(1 + by * normal.to(parameter.device))

    optimizer.add_param_group = moving


if "ATTNLIB_MOVED" in os.environ:
    sys.meta_path.insert(0, Finder())
