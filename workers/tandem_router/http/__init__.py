"""HTTP/1.1 on both sides, as asyncio protocols over httptools: strict towards clients, quick towards engines."""
