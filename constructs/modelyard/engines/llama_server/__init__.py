"""llama.cpp's llama-server."""

from modelyard.engines.llama_server.engine import LlamaServer

__all__ = ["LlamaServer"]
