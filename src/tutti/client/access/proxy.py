"""The proxy that the environment names for a server, as kubectl (Go's httpproxy) reads it.

HTTPS_PROXY and HTTP_PROXY name the proxy for servers of that scheme; names in capitals take precedence. NO_PROXY lists
servers that are reached directly, separated by commas: `*` (all), an address, a range such as 10.0.0.0/8, a domain with
its subdomains (`example.com`), or only the subdomains (`.example.com`, `*.example.com`); each but a range may end with
a port. `localhost` and loopback addresses are always reached directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from tutti.exceptions import InputError

_Address = IPv4Address | IPv6Address
_PORTS = {"http": 80, "https": 443}


def environment_proxy(server: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy for a server; empty if it is reached directly."""
    parts = urlsplit(server)
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = _variable(environment, name)
    if not proxy:
        return ""
    port = parts.port or _PORTS[parts.scheme]
    if _is_direct(parts.hostname or "", port, _variable(environment, "NO_PROXY")):
        return ""
    url = proxy if "://" in proxy else f"http://{proxy}"
    if not url.startswith(("http://", "https://")):
        raise InputError("only http:// and https:// proxies are supported", obj=name)
    return url


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.lower()) or "").strip()


def _is_direct(host: str, port: int, no_proxy: str) -> bool:
    """Return whether a server is reached without a proxy."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, address, port) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, address: _Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_in_range(address, entry)
    name, entry_port = _split_port(entry)
    if not name or entry_port not in ("", str(port)):
        return False
    listed = _address(name)
    if listed is not None:
        return listed == address
    if address is not None:
        return False
    domain = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(domain) if domain.startswith(".") else host == domain or host.endswith(f".{domain}")


def _split_port(entry: str) -> tuple[str, str]:
    """Return the host and the port of an entry; an IPv6 address has brackets if a port follows."""
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":")
    name, colon, port = entry.rpartition(":")
    return (name, port) if colon and ":" not in name else (entry, "")


def _is_in_range(address: _Address, entry: str) -> bool:
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:
        return False


def _address(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
