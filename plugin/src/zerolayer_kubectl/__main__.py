"""`python -m zerolayer_kubectl`."""

from zerolayer_kubectl.cli import run

run()
