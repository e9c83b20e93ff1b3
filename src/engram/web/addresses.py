"""Under which names and addresses the server is reached: what requests may call it, and what a person is told."""

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class PublicUrl:
    """The address that a proxy gives the page: its origin, the host name in it, and the path, which ends in /."""

    origin: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "PublicUrl":
        """From what was typed; ValueError if it is no such address."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError(f"{text!r} is not the address of a page; write https://NAME or https://NAME/PATH")
        shown = f"[{host}]" if ":" in host else host
        if port is not None and port != {"http": 80, "https": 443}[parts.scheme]:
            shown += f":{port}"
        return cls(f"{parts.scheme}://{shown}", host, parts.path.rstrip("/") + "/")

    @property
    def secure(self) -> bool:
        """Whether it is encrypted."""
        return self.origin.startswith("https:")

    def __str__(self) -> str:
        return self.origin + self.path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def host_check(bound: str, public: PublicUrl | None = None) -> Callable[[str], bool]:
    """A test of the Host header for a server bound to this address.

    DNS rebinding needs a name that somebody else controls: addresses are safe, and of names only our own.
    """
    own = {"localhost", bound.lower(), *(() if is_loopback(bound) else own_names())}
    if public is not None:
        own.add(public.host)

    def accepted(host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        address = _address(name)
        if address is not None and is_loopback(bound):
            return address.is_loopback or name in own
        return address is not None or name in own

    return accepted


def own_names() -> list[str]:
    """What this machine is called in its network: by multicast DNS (NAME.local), and by its own account."""
    name = socket.gethostname().lower()
    return list(dict.fromkeys([name.partition(".")[0] + ".local", name]))


def page_addresses(bound: str, port: int) -> list[str]:
    """Where the page of a server bound to this address is opened; the best first, for other devices where they can."""
    address = _address(bound)
    if address is None or not address.is_unspecified:
        hosts = [bound]
    else:
        families = [socket.AF_INET] if address.version == 4 else [socket.AF_INET, socket.AF_INET6]
        found = [outward for family in families if (outward := _outward_address(family))]
        hosts = [*(found or ["127.0.0.1" if address.version == 4 else "::1"]), own_names()[0]]
    return [f"http://{f'[{host}]' if ':' in host else host}:{port}/" for host in hosts]


def _outward_address(family: socket.AddressFamily) -> str | None:
    """The address under which this machine talks to others; None if it does not. Connecting UDP sends nothing."""
    anywhere = "192.0.2.1" if family == socket.AF_INET else "2001:db8::1"  # addresses for documentation
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((anywhere, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
