"""Sockets that notice a dead network: the kernel asks an idle peer whether it is still there.

A watch may be silent for minutes. Without keep-alive packets a peer that vanished without closing the connection would
look the same as a cluster in which nothing happens.
"""

from __future__ import annotations

import socket

import aiohttp

_IDLE, _INTERVAL, _PROBES = 15, 5, 3
"""Seconds before the first probe and between probes; failed probes until the connection is dead."""


def keep_alive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket with keep-alive for an address."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (("TCP_KEEPIDLE", _IDLE), ("TCP_KEEPINTVL", _INTERVAL), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
