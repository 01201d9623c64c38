"""Events as the API server takes them."""

import datetime as dt

from kubernetes.aio.client.configuration import Configuration

from support.api_stub import Answer, stub
from support.objects import service
from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.events import Announcer, Notice
from tandem_operator.cluster.observed import observe

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)


async def test_an_event_is_about_the_service_and_its_note_has_an_end() -> None:
    async with stub() as api:
        api.answers["POST /apis/events.k8s.io/v1/namespaces/team/events"] = [Answer({}, status=201)]
        access = Access(Configuration(host=api.url), observe=lambda _call, _code: None, may_write=lambda: True)
        announcer = Announcer(access, instance="operator-0", now=lambda: NOW, new_id=lambda: "abc")
        await announcer.announce(observe(kinds.INFERENCE_SERVICE, service()), Notice("Available", "x" * 2000, warning=True))
        await access.close()
    body = api.asked[0].body
    assert (body["metadata"], body["eventTime"]) == (
        {"namespace": "team", "name": "chat.abc"},
        "2026-01-02T03:04:05.000678Z",
    )
    assert (body["type"], body["reason"], len(body["note"])) == ("Warning", "Available", 1024)
    assert body["regarding"]["uid"] == "uid-chat"
