"""Applies what was rendered and removes what no longer is. Objects of others are never touched."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from tandem_api import labels
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.reconcile import plans, pools
from tandem_operator.reconcile.rolling import Rolling
from tandem_operator.reconcile.router_rollouts import RouterRollouts
from tandem_operator.render.service import Rendered

__all__ = ["Children"]

_logger = logging.getLogger(__name__)


class Children:
    """The children of one service during one pass."""

    def __init__(
        self,
        *,
        store: Store,
        writer: Writer,
        service: Observed,
        spec: InferenceServiceSpec,
        rolling: Callable[[Rendered], Rolling],
        routers: RouterRollouts,
    ) -> None:
        """Work on the children of `service`; `rolling` looks where its rollout stands once its WorkerPools are there."""
        self._store = store
        self._writer = writer
        self._service = service
        self._spec = spec
        self._rolling = rolling
        self._routers = routers
        self._key: ServiceKey = (service.namespace, service.name)
        self.problems: list[str] = []
        """One line for each child that was refused."""

    async def bring_about(self, rendered: Rendered) -> Rolling:
        """Make the cluster hold exactly what was rendered; return where its rollout stood before.

        Nothing is made any more once the service is deleted meanwhile.

        A child that the API server refuses is noted in `problems`, and nothing is removed then.

        Raises:
            ApiError: the API server could not be asked; the pass is to be tried again.
        """
        await self._apply_all(rendered.objects)
        rolling = self._rolling(rendered)
        counts = rolling.plan()
        later = plans.supports(rendered, counts) + plans.workers(rendered, counts)
        await self._apply_all(later)
        if not self.problems:
            unplanned = [each.role for each in (*rendered.roles, *rendered.previous) if each.role not in counts]
            await self._prune(plans.identities((*rendered.objects, *later)), spared=unplanned)
        return rolling

    async def _apply_all(self, trees: Iterable[dict[str, Any]]) -> None:
        for tree in trees:
            if self._is_going():
                return
            kind = kinds.of(tree)
            try:
                if kind == kinds.WORKER_POOL:
                    await pools.apply(tree, store=self._store, writer=self._writer, service=self._service, spec=self._spec)
                elif not self._routers.hold(self._service, tree):
                    await self._writer.apply(tree, owner=self._service.uid)
            except (errors.InvalidError, errors.ForbiddenError, errors.NameTakenError) as error:
                self.problems.append(f"{kind.kind} '{tree['metadata']['name']}': {error}")

    def _is_going(self) -> bool:
        """Whether the service was deleted during this pass: what garbage collection takes is not made again."""
        live = self._store.service(self._key)
        return live is None or live.deleting or live.uid != self._service.uid

    async def _prune(self, wanted: set[plans.Identity], *, spared: list[Role]) -> None:
        roles = {role.value for role in spared}
        for kind in reversed(kinds.CHILDREN):
            for found in self._store.children(self._key, kind):
                ours = found.owner == self._service.uid and not found.deleting
                if ours and (kind, found.name) not in wanted and found.labels.get(labels.ROLE) not in roles:
                    _logger.info(
                        "Removed a child that is no longer wanted",
                        extra={"namespace": found.namespace, "service": self._service.name, kind.kind: found.name},
                    )
                    await self._writer.delete(found)
