"""Whether the installed CRDs are those that this operator was written for."""

from tandem_api import GROUP, SCHEMA_VERSION
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.access import Access, Call

__all__ = ["schema_problem"]

_ANNOTATION = f"{GROUP}/schema-version"


async def schema_problem(access: Access) -> str | None:
    """Return what is wrong with the CRDs in one sentence, or None.

    Raises:
        ApiError: the API server could not be asked.
    """
    for kind in (kinds.INFERENCE_SERVICE, kinds.WORKER_POOL):
        name = f"{kind.plural}.{kind.group}"
        try:
            crd = await access.call(Call("get", kinds.CUSTOM_RESOURCE_DEFINITION, name=name))
        except errors.NotFoundError:
            return f"the CustomResourceDefinition {name} is not installed: install the chart's CRDs"
        found = crd["metadata"].get("annotations", {}).get(_ANNOTATION, "0")
        if not found.isdecimal() or int(found) < SCHEMA_VERSION:
            return (
                f"the CustomResourceDefinition {name} has schema version {found}, this operator needs {SCHEMA_VERSION}: "
                "upgrade the CRDs"
            )
        if not _is_established(crd):
            return f"the CustomResourceDefinition {name} is not established yet"
    return None


def _is_established(crd: dict[str, object]) -> bool:
    status = crd.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions or ())
