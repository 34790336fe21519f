"""Keys: read from the environment only, and kept out of everything that is written, shown or raised."""

import logging
import os
import re
import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from counterbalance.errors import ConfigError, KeyRefusedError

if TYPE_CHECKING:
    from counterbalance.config.vendors import Account

NO_KEY = "none"
"""What the SDKs, which insist on a key, are given for a server that needs none."""

HIDDEN = "[key]"

# Shorter values are no secrets, and taking them out would mangle ordinary words.
_SHORTEST_SECRET = 8
# A value as long as this is not also the name of something in a study.
_SURELY_SECRET = 16

_PATTERNS = re.compile(
    r"\b(?:sk|rk|pk|xai|gsk)[-_][\w*.-]{6,}"
    r"|\bAIza[\w*-]{8,}"
    r"|\bAQ\.[\w*-]{8,}"
    r"|\bhf_[\w*]{8,}"
    r"|(?<=://)[^/@\s]+(?=@)"
    r"|(?i:(?:x-api-key|x-goog-api-key|api-key|authorization)[\"']?\s*[:=]\s*[\"']?(?:bearer\s+)?)[^\s\"',;]+"
    r"|(?i:\bbearer\s+)[^\s\"',;]+"
)

# Narrower than what is redacted, so that no name of a file or a model is taken for a key.
_SURELY = re.compile(
    r"\b(?:sk-|xai-|gsk_)(?=[\w-]*\d)[\w-]{20,}"
    r"|\bAIza[\w-]{30,}"
    r"|\bAQ\.[\w-]{30,}"
    r"|\bhf_[A-Za-z0-9]{30,}"
    r"|(?i:\bbearer\s+\S{8,})"
)

_SDK_LOGGERS = ("openai", "anthropic", "google_genai", "google.genai", "httpx2", "httpcore2", "httpx", "httpcore")

_LOGS_REQUESTS = "it makes the SDK log what is sent and received"
_ADDS_HEADERS = "it adds headers to every request that no record shows"
_OTHER_BACKEND = "it sends the calls to another backend than the one in the study"
_FORBIDDEN = {
    "OPENAI_LOG": _LOGS_REQUESTS,
    "ANTHROPIC_LOG": _LOGS_REQUESTS,
    "OPENAI_CUSTOM_HEADERS": _ADDS_HEADERS,
    "ANTHROPIC_CUSTOM_HEADERS": _ADDS_HEADERS,
    "GOOGLE_GENAI_USE_VERTEXAI": _OTHER_BACKEND,
    "GOOGLE_GENAI_USE_ENTERPRISE": _OTHER_BACKEND,
    "GOOGLE_GENAI_CLIENT_MODE": "it makes the SDK record replies, or replay recorded ones in place of the model's",
    "GOOGLE_API_USE_MTLS_ENDPOINT": _OTHER_BACKEND,
}
_OFF = {"", "0", "false", "no", "off", "never"}


class Redactor(logging.Filter):
    """Takes keys out of texts: those it has been told, and whatever looks like one. Also a filter for log handlers."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets: list[str] = []

    def add(self, secret: str) -> None:
        """Remember a key; values of fewer than eight characters are no keys."""
        if len(secret) >= _SHORTEST_SECRET and secret not in self._secrets:
            self._secrets.append(secret)
            # A key may be the beginning of another.
            self._secrets.sort(key=len, reverse=True)

    def knows(self, text: str) -> bool:
        """Tell whether a text holds a key that was told and is too long to be a name."""
        return any(len(secret) >= _SURELY_SECRET and secret in text for secret in self._secrets)

    def take_out(self, text: str) -> str:
        """Return a text without the keys that were told; cheap, and leaves everything else as it is."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def __call__(self, text: str) -> str:
        """Return a text without the keys that were told, and without what looks like one."""
        return _PATTERNS.sub(HIDDEN, self.take_out(text))

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a log record; none is dropped."""
        record.msg, record.args = self(record.getMessage()), None
        if record.exc_info is not None:
            record.exc_text = self("".join(traceback.format_exception(*record.exc_info)).rstrip())
            record.exc_info = None
        return True


redact = Redactor()
"""The redactor of this process."""


def holds_key(value: object) -> bool:
    """Tell whether a setting, or anything in it, looks like a key or is one that this process knows."""
    if isinstance(value, Mapping):
        return any(holds_key(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return any(map(holds_key, value))
    return isinstance(value, str) and (_SURELY.search(value) is not None or redact.knows(value))


def learn_keys(variables: Iterable[str]) -> None:
    """Know what stands in environment variables, so that it is found and hidden where it was pasted by mistake."""
    for name in variables:
        key = os.environ.get(name, "").strip()
        if len(key) >= _SURELY_SECRET:
            redact.add(key)


def read_key(account: "Account") -> str:
    """Return the key of an account, and have it redacted from then on.

    Raises
    ------
    KeyRefusedError
        If the environment variable is missing, empty, or holds something that cannot be a key.
    """
    if account.key_env is None:
        return NO_KEY
    key = os.environ.get(account.key_env, "").strip()
    where = f"accounts.{account.id}.key_env: the environment variable {account.key_env}"
    if not key:
        raise KeyRefusedError(f"{where} is not set; put the key there (export {account.key_env}=...) and start again")
    redact.add(key)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise KeyRefusedError(f"{where} holds blanks or characters that no key has; copy the key again")
    return key


def refuse_environment(environment: Mapping[str, str] | None = None) -> None:
    """Stop where an environment variable would change what is sent, or write it to a log, without any record of it.

    Raises
    ------
    ConfigError
        With the variable's name, why it is refused, and how to unset it; never with its value.
    """
    environment = os.environ if environment is None else environment
    for name, why in _FORBIDDEN.items():
        if environment.get(name, "").strip().lower() not in _OFF:
            raise ConfigError(f"the environment variable {name} is set: {why}; type `unset {name}` and start again")


def check_base_url(where: str, url: str | None) -> None:
    """Refuse an address that holds credentials: addresses stand in records, logs and the ledger.

    Raises
    ------
    ConfigError
        Naming the key of the study file, never the credentials.
    """
    if url is None:
        return
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"{where}: the address holds credentials or a query, which would end in records and logs; take them out "
            "and name the key's environment variable in the account's `key_env`"
        )


def protect_logs() -> None:
    """Keep keys and prompts out of the log: SDKs speak from warnings on, and every handler redacts."""
    for name in _SDK_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    handlers = list(logging.getLogger().handlers)
    if logging.lastResort is not None:
        handlers.append(logging.lastResort)
    for handler in handlers:
        if redact not in handler.filters:
            handler.addFilter(redact)
