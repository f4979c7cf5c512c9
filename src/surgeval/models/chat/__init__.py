"""Chat models: any OpenAI-compatible server, or local transformers weights."""

from surgeval.models.chat.client import ChatOptions, OpenAIChat, open_chat

__all__ = ["ChatOptions", "OpenAIChat", "open_chat"]
