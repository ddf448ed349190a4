from base64 import b64decode
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from zerolayer_dev.cluster.layout import Addresses, State
from zerolayer_dev.cluster.pki import identities, write_pki

ADDRESSES = Addresses.of_slot(3)


@pytest.fixture
def state(tmp_path: Path) -> State:
    written = State(tmp_path / "cluster")
    write_pki(written, "x", ADDRESSES)
    return written


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_every_certificate_is_signed_by_the_clusters_authority(state: State) -> None:
    authority = certificate(state.pki / "ca.crt")
    for identity in identities("x", ADDRESSES):
        issued = certificate(state.pki / f"{identity.file}.crt")
        issued.verify_directly_issued_by(authority)
        key = load_pem_private_key((state.pki / f"{identity.file}.key").read_bytes(), None)
        assert key.public_key() == issued.public_key()


def test_the_front_proxy_has_an_authority_of_its_own(state: State) -> None:
    client = certificate(state.pki / "front-proxy-client.crt")
    client.verify_directly_issued_by(certificate(state.pki / "front-proxy-ca.crt"))
    with pytest.raises(ValueError, match="Issuer"):
        client.verify_directly_issued_by(certificate(state.pki / "ca.crt"))


def test_the_api_server_answers_under_its_addresses_and_names(state: State) -> None:
    names = certificate(state.pki / "apiserver.crt").extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert ADDRESSES.node in names.value.get_values_for_type(x509.IPAddress)
    assert ADDRESSES.kubernetes in names.value.get_values_for_type(x509.IPAddress)
    assert "kubernetes.default.svc" in names.value.get_values_for_type(x509.DNSName)


def test_clients_cannot_serve_and_servers_cannot_pose_as_clients(state: State) -> None:
    for identity in identities("x", ADDRESSES):
        usage = certificate(state.pki / f"{identity.file}.crt").extensions.get_extension_for_class(
            x509.ExtendedKeyUsage
        )
        expected = ExtendedKeyUsageOID.SERVER_AUTH if identity.hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        assert list(usage.value) == [expected]


def test_the_kubelet_is_a_node_to_the_api_server(state: State) -> None:
    subject = certificate(state.pki / "kubelet.crt").subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:x"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"


def test_the_kubeconfig_leads_to_the_api_server_with_the_administrators_certificate(state: State) -> None:
    content = yaml.safe_load(state.kubeconfig.read_text())
    assert content["current-context"] == "zerolayer-x"
    assert content["clusters"][0]["cluster"]["server"] == f"https://{ADDRESSES.node}:6443"
    embedded = b64decode(content["users"][0]["user"]["client-certificate-data"])
    assert embedded == (state.pki / "admin.crt").read_bytes()


def test_nobody_else_can_read_keys(state: State) -> None:
    secrets = [*state.pki.glob("*.key"), state.kubeconfig, *state.config.glob("*.kubeconfig")]
    assert len(secrets) > 10
    assert {path.stat().st_mode & 0o077 for path in secrets} == {0}
