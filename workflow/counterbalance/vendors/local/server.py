"""llama.cpp in this process, driven so that what it says about a prompt depends on that prompt alone.

One slot, one thread, F32 weights and F32 KV cache, flash attention off. In that setting a token's numbers are
bit-identical whether its prompt was computed whole or a cached prefix was reused, as long as more than one token is
computed at a time: a lone token goes through another kernel. `LlamaServer.complete` therefore never lets a prompt's
recomputed tail be shorter than `MIN_TAIL`, and never lets a prompt reuse tokens that the model itself wrote.
"""

import http.client
import importlib
import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from counterbalance.canonical import Json
from counterbalance.errors import VendorError

MIN_TAIL = 8
"""Fewest tokens of a prompt that are computed anew. Two were enough in every trial; eight leaves a margin."""

_FORCE = 1e9
_HTTP_TIMEOUT_S = 60.0


class LlamaServer:
    """A loaded model; open it with ``with``. Calls from several threads wait for each other.

    Parameters
    ----------
    path
        GGUF file with F32 weights.
    context_tokens
        Longest prompt and reply together, in tokens.
    """

    def __init__(self, path: Path, context_tokens: int) -> None:
        self.path = path
        self.context_tokens = context_tokens
        self._busy = threading.Lock()
        self._held: list[int] = []
        self._wrote_beyond = False
        self._key = secrets.token_hex(16)
        self._server: Any = None
        self._address = ("", 0)

    def __enter__(self) -> Self:
        binding = load_binding()
        if not self.path.is_file():
            raise VendorError(f"{self.path}: no such weights file; prepare the weights first")
        try:
            self._server = binding.Server(_parameters(binding, self.path, self.context_tokens, self._key))
        except Exception as error:
            raise VendorError(f"{self.path}: llama.cpp cannot load this file: {error}") from error
        address = urlsplit(self._server.listening_address)
        self._address = (str(address.hostname), int(address.port or 0))
        self._held, self._wrote_beyond = [], False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server = None

    def tokenize(self, text: str, *, specials: bool) -> list[int]:
        """Token ids of a text, with the model's own start token if it has one.

        Parameters
        ----------
        specials
            Whether marks such as ``<|im_end|>`` in the text are control tokens (rendered chats) or mere characters.
        """
        answer = self._post("/tokenize", {"content": text, "add_special": True, "parse_special": specials})
        return [int(token) for token in answer["tokens"]]

    def detokenize(self, token: int) -> str:
        """Text of one token; control tokens are written out."""
        return str(self._post("/detokenize", {"tokens": [token]})["content"])

    def render_chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Text of a conversation in the model's own chat format, ready for the assistant's turn."""
        answer = self._post("/apply-template", {"messages": [dict(message) for message in messages]})
        return str(answer["prompt"])

    def complete(self, prompt: Sequence[int], options: Mapping[str, Json], *, force: int | None = None) -> Json:
        """Continue a prompt of token ids.

        Parameters
        ----------
        prompt
            Token ids, at least one.
        options
            Fields of llama.cpp's completion request.
        force
            A token to write whatever the model prefers; the listed log-probabilities stay the model's own.

        Returns
        -------
        dict
            llama.cpp's answer, in the form of OpenAI's text completions.

        Raises
        ------
        VendorError
            If the prompt is empty or too long, or the answer is not what was asked for.
        """
        with self._busy:
            ids = list(prompt)
            reusable = self._make_reusable(ids)
            body = dict(options) | ({} if force is None else {"logit_bias": [[force, _FORCE]]})
            answer = self._send(ids, body, reuse=reusable > 0)
            reused = int(answer["timings"]["cache_n"])
            if reused > reusable:
                raise VendorError(
                    f"{self.path.name}: llama.cpp reused {reused} tokens of a prompt where at most {reusable} are "
                    "exact; install the pinned version of xllamacpp"
                )
            self._held, self._wrote_beyond = ids, True
            return answer

    def _make_reusable(self, ids: list[int]) -> int:
        """Cut what the slot holds back to what this prompt may reuse; return how many tokens those are."""
        shared = _common_prefix(self._held, ids)
        longest = max(0, len(ids) - MIN_TAIL)
        runs_into_written = self._wrote_beyond and shared == len(self._held)
        if shared <= longest and not runs_into_written:
            return shared
        kept = min(shared, longest)
        if kept > 0:
            # llama.cpp has no command that shortens a slot; another token in that place makes it drop the rest.
            self._send([*ids[:kept], _other_token(ids[kept])], {"max_tokens": 1}, reuse=True)
            self._held, self._wrote_beyond = ids[:kept], False
        return kept

    def _send(self, ids: list[int], body: Mapping[str, Json], *, reuse: bool) -> Json:
        if self._server is None:
            raise VendorError("the local model is not open; use it inside a with block")
        request = {"prompt": ids, "cache_prompt": reuse, **body}
        answer = self._server.handle_completions(request)
        if "error" in answer:
            self._held, self._wrote_beyond = [], False
            raise VendorError(f"the local model refused a prompt of {len(ids)} tokens: {answer['error']['message']}")
        return answer

    def _post(self, path: str, body: Json) -> Json:
        # Straight to the loopback address: proxies named in the environment have no business here.
        connection = http.client.HTTPConnection(*self._address, timeout=_HTTP_TIMEOUT_S)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            raise VendorError(f"the local model's own port does not answer {path}: {error}") from error
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise VendorError(f"the local model refused {path}: {answer}")
        return answer


def load_binding() -> ModuleType:
    """Import llama.cpp's Python binding.

    Raises
    ------
    VendorError
        If it is not installed or cannot be loaded on this machine.
    """
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise VendorError(f"the local vendor needs the Python package xllamacpp: {error}; install it") from error


def _parameters(binding: ModuleType, path: Path, context_tokens: int, key: str) -> Any:
    parameters = binding.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = 1
    parameters.n_gpu_layers = 0
    parameters.fit_params = False
    parameters.warmup = False
    parameters.cache_type_k = binding.ggml_type.GGML_TYPE_F32
    parameters.cache_type_v = binding.ggml_type.GGML_TYPE_F32
    parameters.flash_attn_type = binding.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    # Keep every position of sliding-window models, and no prompts but the slot's own.
    parameters.swa_full = True
    parameters.cache_ram_mib = 0
    parameters.cache_idle_slots = False
    parameters.ui = False
    parameters.verbosity = -1
    # The port is only for this process.
    parameters.api_keys = [key]
    return parameters


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


def _other_token(token: int) -> int:
    return token - 1 if token > 0 else 1
