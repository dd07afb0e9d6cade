"""Errors in the files of a TLS certificate and its key.

Contract: OpenSSL refuses a certificate or a key without naming the file; `tls_error` then finds the file and the
problem.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path

from tutti.exceptions import InputError

_CERTIFICATE = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----")
_KEY = re.compile(rb"-----BEGIN (?:\w+ )*PRIVATE KEY-----")
_MISMATCH = "KEY_VALUES_MISMATCH"


def tls_error(cert: str, key: str, error: OSError) -> InputError:
    """Return the error that names the wrong file; `error` is OpenSSL's."""
    texts = []
    for path in (cert, key):
        try:
            texts.append(Path(path).read_bytes())
        except OSError as unread:
            return InputError(f"cannot be read: {(unread.strerror or str(unread)).lower()}", file=path)
    chain, secret = texts
    if not _CERTIFICATE.search(chain):
        swapped = _KEY.search(chain) and _CERTIFICATE.search(secret)
        hint = ", but a private key: are --tls-cert and --tls-key swapped?" if swapped else ""
        return InputError(f"not a certificate (PEM){hint}", file=cert)
    if not _KEY.search(secret):
        return InputError("not a private key (PEM)", file=key)
    if isinstance(error, ssl.SSLError) and error.reason == _MISMATCH:
        return InputError(f"not the private key of the certificate in {cert}", file=key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=chain.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError):
        return InputError("not a valid certificate (PEM)", file=cert)
    return InputError(
        "not a valid private key (PEM), or its passphrase is wrong" if b"ENCRYPTED" in secret
        else "not a valid private key (PEM)",
        file=key,
    )  # fmt: skip
