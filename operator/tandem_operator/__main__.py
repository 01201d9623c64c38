"""`python -m tandem_operator`: reads the environment, logs in, runs until SIGTERM."""

import asyncio
import datetime as dt
import gc
import logging
import os
import signal
import sys
import uuid

from tandem_operator import __version__
from tandem_operator.cluster.access import Access, load_configuration
from tandem_operator.cluster.election import Terms
from tandem_operator.cluster.lease import Lease
from tandem_operator.handlers.leadership import Leadership
from tandem_operator.handlers.operator import Operator
from tandem_operator.logs import configure_logging
from tandem_operator.metrics import Metrics
from tandem_operator.queue.clock import SystemClock
from tandem_operator.settings import Settings, SettingsError, read_settings

_logger = logging.getLogger("tandem_operator")
_ALLOCATIONS = 20_000
"""Objects made, less those freed, after which young ones are looked through."""


def main() -> int:
    """Run the operator; return the exit status: 0 after a signal, 1 when a restart is needed, 2 for a wrong environment."""
    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    configure_logging(settings.log_level)
    # What was imported lives as long as the process, and what is known of the cluster nearly so: it is not looked through for
    # cycles after every few hundred objects.
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 10, 10)
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> int:
    metrics, clock = Metrics(), SystemClock()
    configuration = await load_configuration(os.environ.get("KUBECONFIG"))
    # A way to the API server of its own, so that no other call can keep a renewal waiting.
    election = Access(configuration, observe=metrics.observe_call, may_write=lambda: True)
    leadership = Leadership(
        Lease(election, namespace=settings.namespace, name=settings.lease, now=lambda: dt.datetime.now(dt.UTC)),
        identity=f"{settings.pod_name}_{uuid.uuid4()}",
        terms=Terms(settings.lease_duration),
        clock=clock,
        changed=metrics.observe_transition,
    )
    access = Access(configuration, observe=metrics.observe_call, may_write=leadership.works)
    _logger.info("Operator started", extra={"version": __version__, "namespaces": settings.watch_namespaces or "all"})
    _cancel_on(signal.SIGTERM, signal.SIGINT)
    try:
        await Operator(settings, access, leadership, metrics=metrics, clock=clock).run()
    except asyncio.CancelledError:
        pass  # a signal, before the watches had started
    except Exception:
        _logger.exception("Operator ended, because something was lost that only a restart can mend")
        return 1
    finally:
        await access.close()
        await election.close()
    _logger.info("Operator stopped")
    return 0


def _cancel_on(*signals: signal.Signals) -> None:
    """End this task on a signal; once the watches run, kopf takes the signals over and ends them in order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for each in signals:
        loop.add_signal_handler(each, task.cancel if task is not None else loop.stop)


if __name__ == "__main__":
    sys.exit(main())
