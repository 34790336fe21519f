"""A model's own tokenizer: prompts to token ids, token ids to texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterbalance.errors import VendorError
from counterbalance.vendors.local import Prompt, own_tokens

_UNREADABLE = "\ufffd"
_WORD_MARK = "▁"


class Tokens:
    """A tokenizer that was loaded from a folder.

    Parameters
    ----------
    transformers
        The library.
    folder
        Holds the tokenizer's files; nothing is fetched.

    Raises
    ------
    VendorError
        If the folder holds no tokenizer that can be used here.
    """

    def __init__(self, transformers: Any, folder: Path) -> None:
        self._folder = folder
        try:
            self._own = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:
            raise VendorError(f"{folder}: the tokenizer cannot be loaded: {error}") from error
        if getattr(self._own, "backend_tokenizer", None) is None:
            raise VendorError(f"{folder}: no fast tokenizer (tokenizer.json); use a model that has one")
        self._texts: dict[int, str] = {}
        last = self.encode("A", specials=False)[-1:]
        if not last or last[0] in self._own.all_special_ids:
            name = self.text(last[0]) if last else "no token at all"
            raise VendorError(
                f"{folder}: the tokenizer ends a text with {name}, so that nothing would be read as its continuation; "
                "use a model that continues texts"
            )

    @property
    def end(self) -> int | None:
        """Id of the token at which writing ends, by the tokenizer."""
        found = self._own.eos_token_id
        return None if found is None else int(found)

    def render(self, prompt: Prompt) -> tuple[str, bool]:
        """Return what the model is shown, and whether control tokens are written out in it.

        Raises
        ------
        VendorError
            For messages, if the tokenizer has no chat template or its template refuses them.
        """
        if isinstance(prompt, str):
            return prompt, False
        if not self._own.chat_template:
            raise VendorError(f"{self._folder}: the tokenizer has no chat template; use `style: plain`")
        messages = [dict(message) for message in prompt]
        try:
            text = self._own.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:
            raise VendorError(f"{self._folder}: the chat template refuses the prompt: {error}") from error
        return str(text), True

    def encode(self, text: str, *, specials: bool) -> list[int]:
        """Return the token ids of a text.

        Parameters
        ----------
        specials
            True for rendered chats, whose marks are control tokens and which lack nothing. Otherwise marks in the
            text are mere characters, and the model's own start token, if it has one, comes first.
        """
        found = self._own(text, add_special_tokens=not specials, split_special_tokens=not specials)
        return [int(token) for token in found["input_ids"]]

    def tail(self, text: str, specials: bool, context: Sequence[int], words: str) -> list[int]:
        """Return the tokens that follow those of a text when words are put after it.

        Raises
        ------
        VendorError
            If there are none, or the joint text splits a token across the text's end.
        """
        return own_tokens(self.encode(text + words, specials=specials), context, text, words)

    def text(self, token: int) -> str:
        """Return the text of one token; a part of a character, and what has no text, by its number."""
        if token not in self._texts:
            self._texts[token] = self._text(token)
        return self._texts[token]

    def written(self, tokens: Sequence[int]) -> str:
        """Return the text of what a model wrote, without control tokens."""
        return str(self._own.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _text(self, token: int) -> str:
        found = str(self._own.decode([token], skip_special_tokens=False, clean_up_tokenization_spaces=False))
        if not found or _UNREADABLE in found:
            return f"<token {token}>"
        raw = self._own.convert_ids_to_tokens(token)
        # Decoders of this kind take the blank away at the beginning of a text.
        return f" {found}" if str(raw).startswith(_WORD_MARK) and not found.startswith(" ") else found
