"""Faults of a worker, for tests of what becomes of a canary that is worse; no worker has a switch for them.

One revision alone gets this folder as PYTHONPATH, and the fault in FAULT:

    errors:0.05     one request in twenty fails
    slow:3          each step of the model takes three times as long
    different:0.05  one token in twenty is another one

Nothing is wrong before clients may come: a worker that can't warm up is another matter.
"""

import dataclasses
import os
import random
import sys
import time


def _fails(share, is_open):
    from zerolayer_worker.engine.api import Failed
    from zerolayer_worker.engine.loop import EngineLoop

    submit = EngineLoop.submit

    def failing(self, sequence):
        if is_open() and random.random() < share:
            sequence.deliver(Failed("a fault of a test"))
        else:
            submit(self, sequence)

    EngineLoop.submit = failing


def _wraps_steps(change, is_open):
    from zerolayer_worker.engine.runner import Runner

    run = Runner.run

    def changed(self, plan, sequences):
        began = time.monotonic()
        choices = run(self, plan, sequences)
        return change(choices, time.monotonic() - began) if is_open() else choices

    Runner.run = changed


def _is_slow(factor, is_open):
    def slower(choices, took_s):
        time.sleep((factor - 1) * took_s)
        return choices

    _wraps_steps(slower, is_open)


def _differs(share, is_open):
    def other(choice):
        changed = random.random() < share
        return dataclasses.replace(choice, token_id=choice.token_id ^ 1) if changed else choice

    _wraps_steps(lambda choices, _took_s: {name: other(choice) for name, choice in choices.items()}, is_open)


def _opened():
    """Whether the engine is ready for clients; asked again and again."""
    from zerolayer_worker.engine.loop import EngineLoop

    forget_load, opened = EngineLoop.forget_load, []

    def opening(self):
        forget_load(self)
        opened.append(self)

    EngineLoop.forget_load = opening
    return lambda: bool(opened)


if "serve" in sys.orig_argv and "FAULT" in os.environ:
    _kind, _, _size = os.environ["FAULT"].partition(":")
    {"errors": _fails, "slow": _is_slow, "different": _differs}[_kind](float(_size), _opened())
