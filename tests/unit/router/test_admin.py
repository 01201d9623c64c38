"""The admin port: what operator, monitoring and probes read, apart from the public port."""

from support.fake_engine import FakeEngine
from support.router import ask, get, running
from tandem_api.wire import RouterSignals


async def test_signals_metrics_state_and_probes_are_served():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router, stream=False)
        status, text = await get(router, "/signals")
        message = RouterSignals.model_validate_json(text)
        assert (status, message.completed, len(message.workers)) == (200, 1, 2)
        assert 'tandem_router_requests_total{outcome="completed"} 1.0' in (await get(router, "/metrics"))[1]
        assert '"model": "m"' in (await get(router, "/state"))[1]
        assert (await get(router, "/healthz"))[0] == 200
        assert (await get(router, "/v1/models"))[0] == 404


async def test_a_router_without_workers_is_ready():
    async with running() as router:
        assert (await get(router, "/readyz"))[0] == 200
