"""Everything that can befall a stream: what a provider sends, and what a caller is to learn.

`ACCIDENTS` holds playbooks of three protocols by name. The outcome is said in the OpenAI shape; the same
conversation in another dialect has the same text, tool calls, stop reason and usage.
"""

from collections.abc import Mapping

from tests.fakes.providers.stream_failure import Accident
from tests.fakes.providers.stream_failures_anthropic import ANTHROPIC
from tests.fakes.providers.stream_failures_ollama import OLLAMA
from tests.fakes.providers.stream_failures_openai import OPENAI

ACCIDENTS: Mapping[str, Accident] = {accident.name: accident for accident in (*OPENAI, *ANTHROPIC, *OLLAMA)}
