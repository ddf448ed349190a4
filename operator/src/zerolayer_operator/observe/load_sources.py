"""Finds out who is to be asked about a pool's load: its workers, or a Prometheus with its credentials."""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from zerolayer_operator.api.model import SecretKeyReference
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.first_tokens import Waits
from zerolayer_operator.observe.load import ObservedLoad, Requests
from zerolayer_operator.observe.load_source import LoadSource, LoadTarget
from zerolayer_operator.observe.prometheus import Access, PrometheusLoad
from zerolayer_operator.observe.prometheus_address import allowed_address
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.scraped_load import ScrapedLoad
from zerolayer_operator.observe.secrets import SecretValueError, secret_text
from zerolayer_operator.observe.state import Problem

_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class Unusable:
    """A Prometheus that is not to be asked, and why."""

    reason: str


class UnusableLoad:
    """What the workers themselves tell, marked unknown: the figures that are to count can't be asked for."""

    def __init__(self, own: ScrapedLoad, reason: str) -> None:
        self._own = own
        self._reason = reason

    async def refresh(self, target: LoadTarget) -> None:
        """Asks the workers."""
        await self._own.refresh(target)

    def load(self, target: LoadTarget) -> ObservedLoad:
        """Theirs."""
        return replace(self._own.load(target), unknown=self._reason, pending=False)

    def forget(self, namespace: str, pool: str) -> None:
        """Forgets a pool; nothing happens if it was not known."""
        self._own.forget(namespace, pool)


Choice = Access | Unusable | None
"""Who is asked: a Prometheus, nobody for a reason, or the workers."""


class LoadSources:
    """The sources of all pools; pools with the same choice share one.

    Args:
        kube: The API server, for credentials.
        ops_port: The workers' operations port.
        addresses: Addresses of Prometheus that pools may name; the first is for those that don't.

    Attributes:
        threads: Where clients of Prometheus run.
    """

    def __init__(self, kube: Kube, ops_port: int, addresses: Sequence[str]) -> None:
        self._kube = kube
        self._addresses = addresses
        self._scraper = Scraper(ops_port)
        self._own = ScrapedLoad(self._scraper)
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="prometheus")
        self._made: dict[Access | Unusable, LoadSource] = {}

    async def choose(self, namespace: str, named: PrometheusSpec | None) -> Choice:
        """Who is asked about the load of a pool that names this Prometheus, or none.

        Raises:
            ApiServerError: The API server refuses to tell credentials, or can't be reached.
        """
        if named is None and not self._addresses:
            return None
        address = allowed_address(named, self._addresses)
        if isinstance(address, Problem):
            return Unusable(address.message)
        try:
            return await self._access(namespace, address, named)
        except SecretValueError as error:
            return Unusable(str(error))

    def source(self, choice: Choice) -> LoadSource:
        """The source of a choice."""
        if choice is None:
            return self._own
        if choice not in self._made:
            self._made[choice] = (
                PrometheusLoad(choice, self._own, self.threads)
                if isinstance(choice, Access)
                else UnusableLoad(self._own, choice.reason)
            )
        return self._made[choice]

    def requests(self, target: LoadTarget) -> dict[str, Requests] | None:
        """What each of a target's workers has to do, as it said last; ``None`` before any was asked."""
        return self._own.requests(target)

    def waits(self, target: LoadTarget) -> Waits | None:
        """How long requests of late waited for their first token; ``None`` where that is not known.

        It is the workers who tell, whoever is asked about the load: they are asked beside a Prometheus too.
        """
        return self._own.waits(target)

    def keep(self, choices: Collection[Choice]) -> None:
        """Forgets sources of other choices, such as tokens that have been replaced."""
        self._made = {choice: source for choice, source in self._made.items() if choice in choices}

    async def close(self) -> None:
        """Asks nobody any more."""
        await self._scraper.close()
        self.threads.shutdown(wait=False, cancel_futures=True)

    async def _access(self, namespace: str, address: str, named: PrometheusSpec | None) -> Access:
        if named is None:
            return Access(address)
        field = "spec.autoscaling.prometheus"
        token, ca = named.bearer_token_secret_ref, named.tls.ca_secret_ref if named.tls is not None else None
        return Access(
            address,
            token=_sendable(
                await secret_text(self._kube, namespace, token, f"{field}.bearerTokenSecretRef"), token
            )
            if token is not None
            else None,
            ca=await secret_text(self._kube, namespace, ca, f"{field}.tls.caSecretRef")
            if ca is not None
            else None,
        )


def _sendable(token: str, reference: SecretKeyReference) -> str:
    """A token as it can be sent.

    Raises:
        SecretValueError: It is none, such as a file of several lines.
    """
    if token and token.isascii() and token.isprintable():
        return token
    raise SecretValueError(f"key {reference.key} of Secret {reference.name} is no bearer token; correct it")
