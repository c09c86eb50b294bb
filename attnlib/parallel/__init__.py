"""One model over several processes: rows of a batch, parameters, heads or positions, and what each way sends.

It uses `torch.distributed` for what that has (`DistributedDataParallel`, `fully_shard`, tensor parallel) and adds what
it lacks on a CPU: a ring of positions. It may use `attnlib.nn` and `attnlib.training`.
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.parallel.heads import gather_heads, shard_heads
from attnlib.parallel.ring import ring_attention, shard_positions
from attnlib.parallel.traffic import bytes_sent
from attnlib.parallel.workers import run

__all__ = ["bytes_sent", "gather_heads", "ring_attention", "run", "shard_heads", "shard_positions"]
