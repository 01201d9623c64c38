"""Renders a service, and keeps the result while nothing that it is made from has changed.

Rendering is the most expensive part of a pass, and most passes are about pods and figures, not about the spec.
"""

from tandem_api import labels
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.cluster import kinds
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.packing import Packed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.render.context import Owner, Settings
from tandem_operator.render.history import Past
from tandem_operator.render.labels import HISTORY
from tandem_operator.render.service import Rendered, render_service

__all__ = ["Renderings"]

_Inputs = tuple[str, int, tuple[tuple[str, int], ...]]


class Renderings:
    """The newest rendering of each service."""

    def __init__(self, store: Store, settings: Settings) -> None:
        """Render with `settings` what is in `store`."""
        self._store = store
        self._settings = settings
        self._known: dict[ServiceKey, tuple[_Inputs, Packed[Rendered]]] = {}

    def of(self, service: Observed, spec: InferenceServiceSpec) -> Rendered:
        """Return the rendering of a service.

        Raises:
            ValueError: a frozen revision cannot be read.
        """
        key = (service.namespace, service.name)
        revisions = self._revisions(service)
        inputs = (service.uid, service.generation, tuple((each.name, each.version) for each in revisions))
        known = self._known.get(key)
        if known is not None and known[0] == inputs:
            return known[1].unpack()
        frozen = {each.name: each.body["data"].unpack() for each in revisions if not _is_past(each)}
        past = [
            Past(name=each.name, number=each.body["revision"], data=each.body["data"].unpack())
            for each in revisions
            if _is_past(each)
        ]
        owner = Owner(name=service.name, namespace=service.namespace, uid=service.uid)
        rendered = render_service(owner=owner, spec=spec, settings=self._settings, revisions=frozen, past=past)
        self._known[key] = (inputs, Packed(rendered))
        return rendered

    def forget(self, key: ServiceKey) -> None:
        """Drop a service that is gone."""
        self._known.pop(key, None)

    def _revisions(self, service: Observed) -> list[Observed]:
        found = self._store.children((service.namespace, service.name), kinds.CONTROLLER_REVISION)
        return [each for each in found if each.owner == service.uid]


def _is_past(revision: Observed) -> bool:
    return revision.labels.get(labels.ROLE) == HISTORY
