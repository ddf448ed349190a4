"""The Prometheus that a pool is measured by."""

from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.model import SecretKeyReference
from zerolayer_operator.api.types import SPACE, ObjectName


class CertificateReference(ApiModel):
    """A Secret of type `kubernetes.io/tls`."""

    name: Annotated[
        ObjectName,
        Field(
            description="Secret in the pool's namespace that holds a certificate as tls.crt and its key as "
            "tls.key."
        ),
    ]


class PrometheusTls(ApiModel):
    """How the server is known, and how it knows its client."""

    rules = (
        Rule(
            cel="has(self.caSecretRef) || has(self.certificateSecretRef)",
            message="spec.autoscaling.prometheus.tls must name caSecretRef or certificateSecretRef; leave it "
            "out for a server whose certificate everybody trusts",
            holds=lambda tls: tls.ca_secret_ref is not None or tls.certificate_secret_ref is not None,
        ),
    )

    ca_secret_ref: Annotated[
        SecretKeyReference | None,
        Field(description="Certificates, in PEM, of the authorities that the server's may come from."),
    ] = None
    certificate_secret_ref: Annotated[
        CertificateReference | None,
        Field(description="Certificate that the client shows."),
    ] = None


class PrometheusSpec(ApiModel):
    """Where the metrics of a pool are asked for, and with which credentials."""

    rules = (
        Rule(
            cel="!has(self.tls) || !has(self.address) || self.address.startsWith('https://')",
            message="spec.autoscaling.prometheus.tls needs an https:// address",
            holds=lambda prometheus: (
                prometheus.tls is None
                or prometheus.address is None
                or prometheus.address.startswith("https://")
            ),
        ),
    )

    address: Annotated[
        str | None,
        Field(
            description="Address of Prometheus, or of what answers as it does: one of those that the "
            "operator's installation allows (chart value prometheus.addresses), the first of them if absent.",
            min_length=8,
            max_length=512,
            pattern=rf"^https?://[^{SPACE}/?#@,]+(/[^{SPACE}?#,]*)?$",
        ),
    ] = None
    tls: Annotated[
        PrometheusTls | None,
        Field(description="Certificates, for an https:// address that needs some."),
    ] = None
    bearer_token_secret_ref: Annotated[
        SecretKeyReference | None,
        Field(description="Bearer token to send along; its Secret is in the pool's namespace."),
    ] = None

    @property
    def has_credentials(self) -> bool:
        """Whether it names any Secret."""
        return self.tls is not None or self.bearer_token_secret_ref is not None
