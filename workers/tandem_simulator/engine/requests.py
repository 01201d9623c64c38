"""Requests of the OpenAI API as vLLM accepts them: unknown fields are ignored, wrong ones refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tandem_simulator.engine.errors import APIError

__all__ = ["ChatRequest", "CompletionRequest", "DetokenizeRequest", "GenerationRequest", "TokenizeRequest"]

_TokenId = Annotated[int, Field(ge=0)]
_SALT_FORBIDDEN = frozenset("@/\\\x00")
_SALT_LIMIT = 128


class _Request(BaseModel):
    model_config = ConfigDict(extra="ignore")

    model: str | None = None


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _ResponseFormat(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str


class GenerationRequest(_Request):
    """What completions and chat completions share."""

    max_tokens: int | None = None
    min_tokens: int = 0
    n: int | None = 1
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logprobs: bool | int | None = None
    prompt_logprobs: int | None = None
    response_format: _ResponseFormat | None = None
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    return_token_ids: bool | None = None
    cache_salt: str | None = Field(None, min_length=1, max_length=1024)
    kv_transfer_params: dict[str, Any] | None = None
    request_id: str | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    def check(self) -> None:
        """Refuse what vLLM refuses beyond the schema, and what a simulator cannot answer.

        Raises:
            APIError: 400, with the field.
        """
        _check_ranges(self)
        _check_salt(self.cache_salt)
        if self.stream_options and not self.stream:
            raise APIError("Stream options can only be defined when `stream=True`.", param="stream_options")
        if any(not stop for stop in self.stops):
            raise APIError("stop cannot contain an empty string.")
        if self.logprobs not in (None, False) or self.prompt_logprobs is not None:
            raise APIError("logprobs are not available: the simulated engine has no probabilities.", param="logprobs")
        if self.response_format is not None and self.response_format.type != "text":
            raise APIError(
                "Only response_format `text` is available: the simulated engine has no grammar.", param="response_format"
            )


class CompletionRequest(GenerationRequest):
    """`POST /v1/completions`."""

    prompt: list[_TokenId] | list[list[_TokenId]] | str | list[str] | None = None
    max_tokens: int | None = 16
    echo: bool | None = False

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("max_tokens") is None:
            return {**data, "max_tokens": cls.model_fields["max_tokens"].default}
        return data

    def prompts(self) -> list[str] | list[list[int]]:
        """The prompts of the batch, one or several.

        Raises:
            APIError: There is none.
        """
        prompt = self.prompt
        if prompt is None or prompt in ("", []):
            raise APIError("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
        if isinstance(prompt, str):
            return [prompt]
        if isinstance(prompt[0], int):
            return [prompt]
        return prompt


class ChatRequest(GenerationRequest):
    """`POST /v1/chat/completions`."""

    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = "none"
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def answer_limit(self) -> int | None:
        """The newer name wins, as in vLLM."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    def check_chat(self) -> None:
        """Refuse what only a chat can have wrong; see `check`.

        Raises:
            APIError: 400, with the field.
        """
        if self.continue_final_message and self.add_generation_prompt:
            raise APIError("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
        if self.tool_choice == "required" or isinstance(self.tool_choice, dict):
            raise APIError("tool_choice must be `none` or `auto`: the simulated engine calls no tools.", param="tool_choice")


class TokenizeRequest(_Request):
    """`POST /tokenize`, of a text or of messages."""

    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    return_token_strs: bool | None = False

    @model_validator(mode="after")
    def _one_of(self) -> "TokenizeRequest":
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("exactly one of `prompt` and `messages` must be given")
        return self


class DetokenizeRequest(_Request):
    """`POST /detokenize`."""

    tokens: list[_TokenId]


def _check_ranges(request: GenerationRequest) -> None:
    limits = (
        ("temperature", request.temperature, 0.0, 2.0),
        ("presence_penalty", request.presence_penalty, -2.0, 2.0),
        ("frequency_penalty", request.frequency_penalty, -2.0, 2.0),
    )
    for name, value, low, high in limits:
        if value is not None and not low <= value <= high:
            raise APIError(f"{name} must be in [{low:g}, {high:g}], got {value}.", param=name)
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise APIError(f"top_p must be in (0, 1], got {request.top_p}.", param="top_p")
    if request.min_tokens < 0:
        raise APIError(f"min_tokens must be greater than or equal to 0, got {request.min_tokens}.")
    if request.n is not None and request.n < 1:
        raise APIError(f"n must be at least 1, got {request.n}.")


def _check_salt(salt: str | None) -> None:
    if salt is not None and (len(salt) > _SALT_LIMIT or _SALT_FORBIDDEN & set(salt)):
        message = (
            f"Parameter 'cache_salt' must be at most {_SALT_LIMIT} characters and must not contain '@', '/', '\\\\', or NUL."
        )
        raise APIError(message, param="cache_salt")
