"""Keys, certificates and kubeconfigs of a local cluster."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from zerolayer_dev.cluster.layout import Addresses, State

_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True)
class Identity:
    """A certificate to issue: who it names and where it serves.

    Attributes:
        file: name of the `.crt` and `.key` files.
        user: common name; for a client, the user that the API server sees.
        groups: organisations; the user's groups.
        hosts: addresses and names it serves under; empty for a client.
    """

    file: str
    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class Authority:
    """A certificate authority with its key in memory."""

    def __init__(self, common_name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, ())
        self.certificate = (
            _builder(name, name, self.key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_AUTHORITY_USAGE, critical=True)
            .sign(self.key, hashes.SHA256())
        )

    def issue(self, identity: Identity) -> tuple[bytes, bytes]:
        """Return certificate and key of an identity, both as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(identity.user, identity.groups), self.certificate.subject, key.public_key())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if identity.hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if identity.hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in identity.hosts]), critical=False
            )
        return _pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key)

    def write(self, path: Path) -> None:
        """Write `<path>.crt` and `<path>.key`."""
        path.with_suffix(".crt").write_bytes(_pem(self.certificate))
        _write_secret(path.with_suffix(".key"), _key_pem(self.key))


def identities(name: str, addresses: Addresses) -> tuple[Identity, ...]:
    """Return every certificate that the cluster's own authority issues."""
    api_hosts = (
        str(addresses.node),
        str(addresses.kubernetes),
        "127.0.0.1",
        "localhost",
        *("kubernetes" + suffix for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")),
    )
    return (
        Identity("apiserver", "kube-apiserver", hosts=api_hosts),
        Identity("kubelet-server", name, hosts=(str(addresses.node), name)),
        Identity("apiserver-kubelet-client", "kube-apiserver-kubelet-client", ("system:masters",)),
        Identity("admin", "kubernetes-admin", ("system:masters",)),
        Identity("controller-manager", "system:kube-controller-manager"),
        Identity("scheduler", "system:kube-scheduler"),
        Identity("kubelet", f"system:node:{name}", ("system:nodes",)),
        Identity("kube-proxy", "system:kube-proxy"),
    )


def write_pki(state: State, name: str, addresses: Addresses) -> None:
    """Write all keys and certificates below `state.pki`, and a kubeconfig for each client."""
    state.pki.mkdir(parents=True)
    state.config.mkdir(parents=True, exist_ok=True)
    authority = Authority("kubernetes")
    authority.write(state.pki / "ca")
    issued = {identity.file: authority.issue(identity) for identity in identities(name, addresses)}
    # The API server trusts the headers of whoever shows a certificate of this second authority.
    front_proxy = Authority("front-proxy")
    front_proxy.write(state.pki / "front-proxy-ca")
    issued["front-proxy-client"] = front_proxy.issue(Identity("front-proxy-client", "front-proxy-client"))
    for file, (certificate, key) in issued.items():
        (state.pki / f"{file}.crt").write_bytes(certificate)
        _write_secret(state.pki / f"{file}.key", key)
    _write_service_account_keys(state.pki)
    ca = _pem(authority.certificate)
    for file in ("admin", "controller-manager", "scheduler", "kubelet", "kube-proxy"):
        target = state.kubeconfig if file == "admin" else state.config / f"{file}.kubeconfig"
        content = kubeconfig(name, addresses.api_url, ca, *issued[file])
        _write_secret(target, json.dumps(content, indent=2).encode())


def kubeconfig(name: str, url: str, ca: bytes, certificate: bytes, key: bytes) -> dict[str, object]:
    """Return a kubeconfig with one context, named like the cluster.

    Args:
        name: of the cluster.
        url: of its API server.
        ca: PEM of the authority that signed the API server's certificate.
        certificate: PEM of the client.
        key: PEM of the client.
    """
    context = f"zerolayer-{name}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [
            {"name": context, "cluster": {"server": url, "certificate-authority-data": _base64(ca)}}
        ],
        "users": [
            {
                "name": context,
                "user": {
                    "client-certificate-data": _base64(certificate),
                    "client-key-data": _base64(key),
                },
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
    }


def _write_service_account_keys(pki: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    _write_secret(pki / "service-account.key", _key_pem(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (pki / "service-account.pub").write_bytes(public)


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


_AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _name(common_name: str, organisations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organisations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(IPv4Address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
