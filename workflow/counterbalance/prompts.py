"""From an item to the exact bytes a model is sent. Templates are Jinja2; the texts of items are data, never templates.

A template sees `question`, `options` (in slot order, each with `.label` and `.text`), `labels` and `examples` (each
with `.question`, `.options`, `.answer_label`, `.answer_text`); a design may give its templates other variables. It
stands alone: no includes, no imports, nothing random. As usual in Jinja2, one line feed at the very end of the file
does not belong to the prompt; every other character does. A system message is no template: it is sent as the study
file has it.
"""

import hashlib
import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from counterbalance.canonical import Json
from counterbalance.config.models import Experiment, OptionTextRead, Prompt
from counterbalance.errors import ConfigError

_VARIABLES = frozenset({"question", "options", "labels", "examples"})
_IMPURE_FILTERS = ("random",)
_IMPURE_GLOBALS = ("lipsum",)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True)
class PromptOption:
    """An option as a template sees it."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A solved example as a template sees it; options in slot order."""

    question: str
    options: tuple[PromptOption, ...]
    answer_label: str
    answer_text: str


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as canonical JSON text (`{"text": ...}` or `{"messages": [...]}`) and the hash of that text."""

    prompt: str
    sha256: str


class PromptTemplate:
    """A checked template, bound to its experiment's style, system message and solved examples.

    Parameters
    ----------
    path
        The template file.
    name
        Its name in messages.
    experiment
        Its `prompt` gives style and system message; its `read` decides whether the template has to show the options.
    examples
        Solved examples, in the order in which they are shown.
    variables
        Names that a template may use where they are not those of multiple-choice items, each with whether it has to.

    Raises
    ------
    ConfigError
        With file and line, if the template is not valid, uses a variable that does not exist, reads other files, or
        leaves out what the experiment needs.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        experiment: Experiment,
        examples: Sequence[Example] = (),
        *,
        variables: Mapping[str, bool] | None = None,
    ) -> None:
        self._name = name
        self._variables = frozenset(_VARIABLES if variables is None else variables)
        self._settings = experiment.prompt
        self._examples = tuple(examples)
        environment = _Environment(undefined=jinja2.StrictUndefined, autoescape=False)
        for impure in _IMPURE_FILTERS:
            environment.filters.pop(impure, None)
        for impure in _IMPURE_GLOBALS:
            environment.globals.pop(impure, None)
        source = _read_text(path, name)
        try:
            used = self._check(environment.parse(source))
            code = environment.compile(source, filename=name)
        except jinja2.TemplateSyntaxError as error:
            raise ConfigError(f"{name} line {error.lineno}: not a valid template: {error.message}") from error
        if variables is None:
            needed = {"question"} if isinstance(experiment.read, OptionTextRead) else {"question", "options"}
            needed |= {"examples"} if self._examples else set()
        else:
            needed = {name for name, must in variables.items() if must}
        self._check_use(used, needed, experiment)
        self._template = environment.template_class.from_code(environment, code, environment.make_globals(None))

    def render(self, question: str, option_texts: Sequence[str], labels: Sequence[str]) -> RenderedPrompt:
        """Render one prompt.

        Parameters
        ----------
        question
            The stem, as it is.
        option_texts, labels
            In slot order, of equal length.

        Raises
        ------
        ConfigError
            With file and line, if the template cannot be rendered with this item, or renders to nothing.
        """
        options = tuple(map(PromptOption, labels, option_texts))
        values = {"question": question, "options": options, "labels": tuple(labels), "examples": self._examples}
        return self.render_values(values)

    def render_values(self, values: Mapping[str, Any]) -> RenderedPrompt:
        """Render one prompt from the values of the variables.

        Raises
        ------
        ConfigError
            As `render`.
        """
        try:
            text = self._template.render(values)
            prompt = _canonical(_as_value(text, self._settings))
            digest = hashlib.sha256(prompt.encode()).hexdigest()
        # A template is a program: whatever it raises is a fault of its file.
        except Exception as error:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self._name]
            where = f"{self._name} line {lines[-1]}" if lines else self._name
            raise ConfigError(f"{where}: {type(error).__name__}: {error}; there are {self._listed()}") from error
        if not text.strip():
            raise ConfigError(f"{self._name}: renders to nothing for the question {values['question'][:60]!r}")
        return RenderedPrompt(prompt, f"sha256:{digest}")

    def _check(self, tree: nodes.Template) -> set[str]:
        for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
            raise ConfigError(
                f"{self._name} line {node.lineno}: a template stands alone, so that its hash covers the whole prompt; "
                "copy the other file's text into it"
            )
        used = meta.find_undeclared_variables(tree)
        for name in tree.find_all(nodes.Name):
            if name.name in used - self._variables:
                raise ConfigError(
                    f"{self._name} line {name.lineno}: no variable {name.name!r}; there are {self._listed()}"
                )
        return used

    def _check_use(self, used: set[str], needed: set[str], experiment: Experiment) -> None:
        for variable in sorted(needed - used):
            raise ConfigError(
                f"{self._name}: never uses `{variable}`, which experiment {experiment.id!r} needs the model to see"
            )

    def _listed(self) -> str:
        return ", ".join(sorted(self._variables))


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with a short way to the fields of our own frozen objects: four times faster over many prompts."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) in (PromptOption, Example) and attribute in obj.__slots__:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)


def labels_for(k: int, labels: Sequence[str] | None, *, where: str) -> list[str]:
    """Return the labels of k slots: the first k of the declared ones, or A, B, C, ...

    Raises
    ------
    ConfigError
        If there are fewer than k, or one is empty or has white space at its ends or a line break; `where` names the
        item or file.
    """
    if labels is None:
        labels = [chr(ord("A") + slot) for slot in range(26)]
    if k > len(labels):
        raise ConfigError(f"{where}: {k} options but only {len(labels)} labels; add to `prompt.labels`")
    for label in labels[:k]:
        if not label or label != label.strip() or not label.isprintable():
            raise ConfigError(f"{where}: {label!r} cannot be a label; expected visible text without blanks at its ends")
    return list(labels[:k])


def _as_value(text: str, settings: Prompt) -> Json:
    if settings.style == "plain":
        return {"text": text}
    system = [] if settings.system is None else [{"role": "system", "content": settings.system}]
    return {"messages": [*system, {"role": "user", "content": text}]}


def _canonical(value: Json) -> str:
    """Write canonical JSON of values that hold nothing but texts; a test holds it equal to `canonical_json`."""
    return _ENCODER.encode(value)


def _read_text(path: Path, name: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8 ({error}); save it as UTF-8") from error
