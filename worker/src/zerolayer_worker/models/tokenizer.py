"""The model's tokenizer: text to ids, conversations to ids, and ids back to text as they come."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from zerolayer_worker.common.errors import TextTooLongError
from zerolayer_worker.models.chat_template import ChatTemplateError, read_chat_template
from zerolayer_worker.models.folder import ModelFolderError

NORMALISED_CHARS = 4
"""How many characters a normaliser is taken to make one of, at most."""


class ModelTokenizer:
    """Encodes prompts and decodes answers; safe to use from several threads."""

    def __init__(self, folder: Path, max_tokens: int | None = None) -> None:
        """Reads `tokenizer.json` and the chat template.

        Args:
            folder: the model's.
            max_tokens: the model's context. A text that can't fit, since no token stands for more
                characters than the longest one, is refused before the work of tokenising it: several
                seconds and hundreds of bytes of memory for every byte of a megabyte-sized text.

        Raises:
            ModelFolderError: `tokenizer.json` is missing or not readable, or the template is not valid.
        """
        path = folder / "tokenizer.json"
        if not path.exists():
            raise ModelFolderError(f"{path}: file is missing")
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001 - the library raises nothing narrower
            raise ModelFolderError(f"{path}: not a readable tokenizer: {error}") from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._template = read_chat_template(folder)
        self._max_chars = self._chars_of(max_tokens) if max_tokens is not None else None

    @property
    def supports_tools(self) -> bool:
        """Whether the chat template renders tools."""
        return self._template is not None and self._template.supports_tools

    def encode_chat(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> tuple[int, ...]:
        """Token ids of the rendered conversation with the generation prompt.

        Raises:
            ChatTemplateError: the template can't render it, or there is none.
            TextTooLongError: it can't fit into the context.
        """
        if self._template is None:
            raise ChatTemplateError("messages: this model has no chat template; use /v1/completions")
        # The template writes the special tokens itself.
        return self._encode(self._template.render(messages, tools), add_special_tokens=False)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Token ids of plain text, without template.

        Raises:
            TextTooLongError: it can't fit into the context.
        """
        return self._encode(text, add_special_tokens=True)

    def encode_continuation(self, text: str) -> tuple[int, ...]:
        """Token ids of a text that goes on after others.

        Raises:
            TextTooLongError: it can't fit into the context.
        """
        return self._encode(text, add_special_tokens=False)

    def _encode(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        """Only the library's batch call lets other threads run: a long prompt takes it seconds."""
        if self._max_chars is not None and len(text) > self._max_chars:
            raise TextTooLongError(
                f"prompt is too long: {len(text)} characters, more than the model's context can hold"
                f" ({self._max_chars} at the very most)"
            )
        batch = self._tokenizer.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        return tuple(batch[0].ids)

    def _chars_of(self, tokens: int) -> int:
        """The most characters that so many tokens can stand for.

        Byte-level vocabularies write one character for each byte, so a name is never shorter than its text.
        """
        longest = max(map(len, self._tokenizer.get_vocab(with_added_tokens=True)))
        return tokens * longest * (1 if self._tokenizer.normalizer is None else NORMALISED_CHARS)

    def decode(self, token_ids: Sequence[int]) -> str:
        """A whole answer's text, without special tokens."""
        return self._tokenizer.decode(list(token_ids), skip_special_tokens=True)

    def token_text(self, token_id: int) -> str:
        """One token on its own, special tokens by their name; half a character reads U+FFFD."""
        return self._tokenizer.decode([token_id], skip_special_tokens=False)

    def detokenizer(self) -> "Detokenizer":
        """A fresh decoder for one answer."""
        return Detokenizer(self._tokenizer)


class Detokenizer:
    """Turns one answer's tokens into text as they come, whole characters only."""

    __slots__ = ("_stream", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def push(self, token_id: int) -> str:
        """The text that `token_id` completes; empty while a character is unfinished.

        A U+FFFD that the model itself writes looks unfinished too, and comes with what follows it.
        """
        return self._stream.step(self._tokenizer, token_id) or ""
