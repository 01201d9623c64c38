"""An inference engine without a model: vLLM's API, metrics, errors and KV transfer, timed by a model instead of a GPU.

It stands in for GPUs in tests and capacity studies and for nothing else. It must be as strict as the real engine: what
vLLM refuses is refused here, and a misuse of KV parameters shows in the answer's text, so that a comparison finds it.
"""
