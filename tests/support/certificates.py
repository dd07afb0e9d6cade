"""Certificates for servers and clients of tests; openssl makes them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path, name: str, *, host: str = "api.internal") -> tuple[Path, Path]:
    """Make a self-signed certificate and its key."""
    made, key = folder / f"{name}.crt", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName=DNS:{host}", "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key
