"""TLS contexts: the server's certificate is verified, unless the kubeconfig says otherwise.

Contract: a client key is never left on disk; Python loads keys only from files, so it exists there for a moment, in a
file that only this user can read.
"""

from __future__ import annotations

import ssl
import tempfile

from tutti.client.access.cluster_access import ClusterAccess
from tutti.exceptions import InputError


def tls_context(access: ClusterAccess, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Return the context of connections to a server, with a client certificate if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if access.is_insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif access.authority or access.authority_file is not None:
        _trust(context, access)  # these authorities and no others, as kubectl does
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if certificate:
        _load_certificate(context, certificate, key, access.name)
    return context


def _trust(context: ssl.SSLContext, access: ClusterAccess) -> None:
    file = str(access.authority_file) if access.authority_file is not None else access.name
    try:
        data = access.authority or (access.authority_file.read_bytes() if access.authority_file is not None else b"")
        # Certificates are ASCII; comments between them may not be.
        context.load_verify_locations(cadata=data.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise InputError("has no certificate in PEM format", file=file, field="certificate-authority") from None
    except OSError as error:
        problem = (error.strerror or "cannot be read").lower()
        raise InputError(problem, file=file, field="certificate-authority") from None


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes, name: str) -> None:
    def refuse() -> str:
        raise InputError("the key of the client certificate is encrypted: store it without a password", file=name)

    with tempfile.NamedTemporaryFile(prefix="tutti-", suffix=".pem") as file:  # mode 0600
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=refuse)
        except ssl.SSLError:
            problem = "the client certificate and its key cannot be used: not PEM, or not a pair"
            raise InputError(problem, file=name) from None
