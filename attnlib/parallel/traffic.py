"""How many bytes this process has sent to others."""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import suppress

__all__ = ["bytes_sent"]

# Where `tcpi_bytes_sent` and `tcpi_bytes_retrans` stand in the kernel's `struct tcp_info`, since Linux 4.19.
_PLACE, _END = 200, 216


def bytes_sent() -> int | None:
    """Bytes that went out by this process's open TCP connections since they were made, as the kernel counts them.

    What gloo adds to say what is coming is counted too; what had to be sent again on a busy machine is not. The
    difference of two calls is what was sent between them, if all that was sent has been handed to the kernel:
    `torch.distributed.barrier` before each. None where the operating system is not Linux.

    >>> before = bytes_sent()
    >>> before is None or bytes_sent() >= before
    True
    """
    return sum(map(_sent_by, os.listdir("/proc/self/fd"))) if sys.platform == "linux" else None


def _sent_by(descriptor: str) -> int:
    with suppress(OSError):  # not a socket, or closed by now
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
            with socket.socket(fileno=os.dup(int(descriptor))) as connection:
                kinds = connection.family in (socket.AF_INET, socket.AF_INET6), connection.type == socket.SOCK_STREAM
                if all(kinds):
                    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _END)
                    sent, again = struct.unpack_from("=QQ", info.ljust(_END, b"\0"), _PLACE)
                    return sent - again
    return 0
