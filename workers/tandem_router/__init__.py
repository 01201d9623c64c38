"""Tandem's router: the request path of one InferenceService.

It takes OpenAI-style requests, runs the prefill and the decode leg on engines that share a KV group, and is the only
place that sees TTFT and TPOT as clients do. It never touches KV cache bytes and never parses JSON per token.
"""
